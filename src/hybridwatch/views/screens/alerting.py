"""The alerts of a store: its bad news, the controls that were not caught, what people decided."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from hybridwatch.analysis.sight import Sight
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.index import Index
from hybridwatch.record.role import Role
from hybridwatch.triage import Alert, Judged, Matter, alerts_of
from hybridwatch.triage.database import open_triage
from hybridwatch.views.controls import ControlRun, controls_of
from hybridwatch.views.judged import judged_from
from hybridwatch.views.screens.screen import Source

CONTROL: Final = "known-bad control"
"""Stands where the metric stands in the alert of a control that was not caught."""

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
    judged = [*_news(source.index), *judged_controls(controls)]
    with open_triage(source.results, source.triage) as triage:
        decided = triage.decisions()
    return alerts_of(judged, decided, source.now, checkout.policy)


@lru_cache(maxsize=1)
def _news(index: Index) -> tuple[Judged, ...]:
    """What an index says never changes, and every view of the alerts asks for it."""
    return tuple(judged_from(index))


def judged_controls(controls: Sequence[ControlRun]) -> Iterator[Judged]:
    """Yield what known-bad controls say: one that is not caught has failed.

    The regressions in them are wanted and no news; that there are none would be.
    """
    for control in controls:
        verdict = _SAYS.get(control.sight)
        if control.role is Role.KNOWN_BAD and verdict is not None:
            matter = Matter(control.scenario, CONTROL, "", *control.builds, testbed=control.testbed)
            yield Judged(matter, verdict, None, control.run, control.started_at)
