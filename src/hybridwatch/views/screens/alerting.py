"""The alerts of a store: its bad news, the controls that were not caught, what people decided."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.sight import Sight
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.index import Index
from hybridwatch.record.role import Role
from hybridwatch.triage import CONTROL, Alert, Judged, Question, Ruling, Story, answered, stories_of
from hybridwatch.triage.database import open_triage
from hybridwatch.views.address import address
from hybridwatch.views.controls import (
    ControlRun,
    Known,
    controls_among,
    known_in,
)
from hybridwatch.views.document import Cell, Inline, Link, When
from hybridwatch.views.judged import judged_from
from hybridwatch.views.numbers import age
from hybridwatch.views.screens.pair import rows_in
from hybridwatch.views.screens.screen import Source

LONGEST_LINE: Final = 160
"""Characters of one line of a list; pages of their own show all."""
_SAYS: Final[Mapping[Sight | None, Verdict]] = {
    Sight.MISSED: Verdict.FAILED,
    Sight.CAUGHT: Verdict.EQUIVALENT,
}
"""What a control says as a verdict: one that could not be asked says nothing."""


def alerts_here(source: Source) -> tuple[Alert, ...]:
    """Derive every alert of a store, as ``answered`` orders them.

    Raises:
        TriageError: What people decided cannot be read.
    """
    with open_triage(source.results, source.triage) as triage:
        decided = triage.decisions()
    return answered(stories_here(source), decided, source.now)


def stories_here(source: Source) -> tuple[Story, ...]:
    """Tell what the verdicts of a store say, whatever people decided."""
    return _told(source).stories


def stories_with(run_id: str, source: Source) -> tuple[Story, ...]:
    """Tell the stories in which a run was bad."""
    return _told(source).bad_in.get(run_id, ())


@dataclass(frozen=True, slots=True)
class _Told:
    """What the verdicts of a store say.

    Attributes:
        stories: Everything that was ever bad.
        bad_in: The same by the runs in which it was.
    """

    stories: tuple[Story, ...]
    bad_in: Mapping[str, tuple[Story, ...]]


def _told(source: Source) -> _Told:
    checkout = source.checkout()
    return _told_in(source.index, checkout.policy, known_in(checkout.scenarios))


@lru_cache(maxsize=1)  # what an index says never changes, and every view of the alerts asks
def _told_in(index: Index, policy: Policy, known: frozenset[Known]) -> _Told:
    judged = (*judged_from(index), *judged_controls(controls_among(index, known)))
    stories = stories_of(judged, policy)
    bad_in: defaultdict[str, list[Story]] = defaultdict(list)
    for story in stories:
        for ruling in story.rulings:
            if ruling.cause is not None:
                bad_in[ruling.run_id].append(story)
    return _Told(stories, {run: tuple(found) for run, found in bad_in.items()})


def engine_said(run_id: str, source: Source) -> str:
    """Say why an engine failed as the headline of its run does; empty where that is not known."""
    row = rows_in(source.index).get(run_id)
    said = row.said if row else ""
    return said if len(said) <= LONGEST_LINE else said[:LONGEST_LINE].rstrip() + "…"


def since(ruling: Ruling, source: Source) -> Cell:
    """Say when a run was, which it was, and of which release the engine was that it measured."""
    when = When(ruling.started_at, age(ruling.started_at, source.now))
    return Cell(when, run_line(ruling, source))


def run_line(ruling: Ruling, source: Source) -> tuple[Inline, ...]:
    """Name a run and the release of its contender."""
    link = Link(f"run\N{NO-BREAK SPACE}{ruling.run_id}", address("run", run=ruling.run_id))
    release = _releases(source.index).get(ruling.run_id, "")
    return (link, f" of {release}") if release else (link,)


@lru_cache(maxsize=1)
def _releases(index: Index) -> Mapping[str, str]:
    """The release of each run's contender."""
    runs = index.runs()
    last = runs[runs["side"] == runs["sides"] - 1]
    return dict(zip(last["run"], last["release"], strict=True))


def judged_controls(controls: Sequence[ControlRun]) -> Iterator[Judged]:
    """Yield what known-bad controls say: one that is not caught has failed.

    The regressions in them are wanted and no news; that there are none would be.
    """
    for control in controls:
        verdict = _SAYS.get(control.sight)
        if control.role is Role.KNOWN_BAD and verdict is not None:
            question = Question(control.scenario, CONTROL, "", *control.builds, control.testbed)
            yield Judged(question, verdict, None, control.run, control.started_at)
