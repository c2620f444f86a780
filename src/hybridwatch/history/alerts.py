"""The alerts of a store: its bad news, the controls that were not caught, what people decided."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

from hybridwatch.analysis.alert_timeline import (
    CONTROL,
    AlertQuestion,
    JudgedMetric,
    Timeline,
    build_timelines,
)
from hybridwatch.analysis.alerts import Alert, AlertGroup, answered, group_alerts
from hybridwatch.analysis.detection import Detection
from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.decisions import open_triage
from hybridwatch.database.queries import Index
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.controls import ControlRun, KnownScenarios, controls_among, known_in
from hybridwatch.history.judged import judged_from
from hybridwatch.history.runs import list_contenders
from hybridwatch.records.role import Role

_VERDICTS: Final[Mapping[Detection | None, Verdict]] = {
    Detection.MISSED: Verdict.FAILED,
    Detection.CAUGHT: Verdict.EQUIVALENT,
}
"""What a control says as a verdict: one that could not be judged says nothing."""


@dataclass(frozen=True, slots=True)
class Timelines:
    """What the verdicts of a store say.

    Attributes:
        everything: Everything that was ever bad.
        bad_in: The same by the runs in which it was.
    """

    everything: tuple[Timeline, ...]
    bad_in: Mapping[str, tuple[Timeline, ...]]


def find_alerts(
    results: Path, index: Index, checkout: Checkout, now: datetime, triage: str = ""
) -> tuple[Alert, ...]:
    """Derive every alert of a store, as ``answered`` orders them.

    What was put off until a moment is compared with ``now``, which has a time zone. ``triage`` is
    the URL of the database of decisions; empty for the file next to the records.

    Raises:
        TriageError: What people decided cannot be read.
    """
    with open_triage(results, triage) as database:
        decided = database.decisions()
    return answered(find_timelines(index, checkout).everything, decided, now)


def find_groups(
    results: Path, index: Index, checkout: Checkout, now: datetime, triage: str = ""
) -> tuple[AlertGroup, ...]:
    """Derive every alert as ``find_alerts`` does, those of one cause together."""
    # A label may be the same for many commits: the release goes with it.
    builds = {run: " ".join(build) for run, build in list_contenders(index).items()}
    return group_alerts(find_alerts(results, index, checkout, now, triage), builds)


def find_timelines(index: Index, checkout: Checkout) -> Timelines:
    """Tell what the verdicts of a store say, whatever people decided."""
    return _timelines(index, checkout.policy, known_in(checkout.scenarios))


@lru_cache(maxsize=1)  # what an index says never changes, and every view of the alerts asks
def _timelines(index: Index, policy: Policy, known: frozenset[KnownScenarios]) -> Timelines:
    judged = (*judged_from(index), *judged_controls(controls_among(index, known)))
    timelines = build_timelines(judged, policy)
    bad_in: defaultdict[str, list[Timeline]] = defaultdict(list)
    for timeline in timelines:
        for run_verdict in timeline.run_verdicts:
            if run_verdict.cause is not None:
                bad_in[run_verdict.run_id].append(timeline)
    return Timelines(timelines, {run: tuple(found) for run, found in bad_in.items()})


def judged_controls(controls: Sequence[ControlRun]) -> Iterator[JudgedMetric]:
    """Yield what known-bad controls say: one that is not caught has failed.

    The regressions in them are wanted and no news; that there are none would be.
    """
    for control in controls:
        verdict = _VERDICTS.get(control.detection)
        if control.role is Role.KNOWN_BAD and verdict is not None:
            question = AlertQuestion(control.scenario, CONTROL, "", *control.lines, control.testbed)
            yield JudgedMetric(question, verdict, None, control.run, control.started_at)
