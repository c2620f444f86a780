"""The alerts of a store: its bad news, the controls that were not caught, what people decided."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.index import Index
from hybridwatch.record.role import Role
from hybridwatch.triage import CONTROL, Alert, Judged, Question, Story, answered, stories_of
from hybridwatch.triage.database import open_triage
from hybridwatch.views.controls import ControlRun, Sight, controls_of
from hybridwatch.views.judged import judged_from
from hybridwatch.views.screens.screen import Source

_SAYS: Final[Mapping[Sight | None, Verdict]] = {
    Sight.MISSED: Verdict.FAILED,
    Sight.CAUGHT: Verdict.EQUIVALENT,
}
"""What a control says as a verdict: one that could not be asked says nothing."""


def alerts_here(source: Source) -> tuple[Alert, ...]:
    """Derive every alert of a store, as ``alerts_of`` orders them.

    Raises:
        TriageError: What people decided cannot be read.
    """
    checkout = source.checkout()
    controls = controls_of(source.index, checkout.scenarios)
    stories = [*_stories(source.index, checkout.policy)]
    stories += stories_of(judged_controls(controls), checkout.policy)
    with open_triage(source.results, source.triage) as triage:
        decided = triage.decisions()
    return answered(stories, decided, source.now)


@lru_cache(maxsize=1)
def _stories(index: Index, policy: Policy) -> tuple[Story, ...]:
    """What an index says never changes, and every view of the alerts asks for it."""
    return stories_of(judged_from(index), policy)


def judged_controls(controls: Sequence[ControlRun]) -> Iterator[Judged]:
    """Yield what known-bad controls say: one that is not caught has failed.

    The regressions in them are wanted and no news; that there are none would be.
    """
    for control in controls:
        verdict = _SAYS.get(control.sight)
        if control.role is Role.KNOWN_BAD and verdict is not None:
            question = Question(control.scenario, CONTROL, "", *control.builds, control.testbed)
            yield Judged(question, verdict, None, control.run, control.started_at)
