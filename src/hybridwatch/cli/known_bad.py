"""Known-bad controls among what a verb judges."""

from hybridwatch.analysis.sight import (
    NOTHING,
    KnownBad,
    Promise,
    is_control,
    known_bad_of,
    promise_of,
)
from hybridwatch.analysis.verdict import Report
from hybridwatch.engine.builds import home
from hybridwatch.errors import HybridwatchError
from hybridwatch.scenario.load import find


def known_bad_in(report: Report) -> KnownBad | None:
    """Say what a report showed as a known-bad control; ``None`` for one that is none."""
    return known_bad_of(report, _promised(report.scenario.id)) if is_control(report) else None


def _promised(scenario_id: str) -> Promise:
    try:
        found = find(home() / "scenarios", (scenario_id,))
    except HybridwatchError:
        return NOTHING  # a record from elsewhere may be of a scenario that is not here
    return next((promise_of(one) for one in found if one.id == scenario_id), NOTHING)
