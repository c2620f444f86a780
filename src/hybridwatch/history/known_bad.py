"""Known-bad controls among what a verb judges."""

from collections.abc import Sequence
from typing import Final

from hybridwatch.analysis.detection import (
    NOTHING,
    DetectionPromise,
    KnownBad,
    find_known_bad,
    find_promise,
    is_control,
)
from hybridwatch.analysis.verdict import Report
from hybridwatch.errors import HybridwatchError, ScenarioError
from hybridwatch.scenarios.fixes import NO_FIX
from hybridwatch.scenarios.load import find
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home_or_shipped

MUTANTS_ALONE: Final = "no known-bad side: the mutants are its control"
"""What is said of a scenario that looks for no bug that is known."""


def with_known_bad(scenarios: Sequence[Scenario]) -> tuple[list[Scenario], str]:
    """Separate scenarios with a fix to take out, and a text on others; raise if none has one."""
    found = [scenario for scenario in scenarios if scenario.fix != NO_FIX]
    left = [scenario.id for scenario in scenarios if scenario.fix == NO_FIX]
    text = f"{MUTANTS_ALONE}: {', '.join(left)}" if left else ""
    if not found:
        raise ScenarioError(f"--known-bad: nothing to compare: {text}")
    return found, text


def known_bad_in(report: Report) -> KnownBad | None:
    """Say what a report showed as a known-bad control; ``None`` for one that is none."""
    return find_known_bad(report, _promised(report.scenario.id)) if is_control(report) else None


def _promised(scenario_id: str) -> DetectionPromise:
    try:
        found = find(home_or_shipped() / "scenarios", (scenario_id,))
    except HybridwatchError:
        return NOTHING  # a record from elsewhere may be of a scenario that is not here
    return next((find_promise(one) for one in found if one.id == scenario_id), NOTHING)
