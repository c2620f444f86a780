"""Controls of a sweep: is a planted slow-down told apart on the curve, and is A/A equivalent?"""

from hybridwatch.analysis.control import Control, ControlKind
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.report import report_between
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.metrics.catalogue import CURVE_AREA
from hybridwatch.records.run import Run
from hybridwatch.scenarios.scenario import Scenario


def slow_control(scenario: Scenario, run: Run, healthy: int, slow: int) -> Control:
    """Judge the engine with the planted fault: its curve must be called a regression.

    Args:
        scenario: What was run.
        run: Holds performance trials of both sides.
        healthy: Index of the engine as it is.
        slow: Index of the engine with the fault.
    """
    return _control(scenario, run, (healthy, slow), ControlKind.KNOWN_BAD, Verdict.REGRESSION)


def same_curve_control(scenario: Scenario, run: Run, healthy: int, same: int) -> Control:
    """Judge the healthy engine against itself: the curves must be shown to be the same."""
    return _control(scenario, run, (healthy, same), ControlKind.A_A, Verdict.EQUIVALENT)


def _control(
    scenario: Scenario, run: Run, sides: tuple[int, int], kind: ControlKind, wanted: Verdict
) -> Control:
    left, right = (OneSide(run, side) for side in sides)
    report = report_between(left, right)
    area = next((one for one in report.comparisons if one.metric.id == CURVE_AREA), None)
    told = area is not None and area.verdict is wanted
    return Control(
        scenario=scenario.id,
        fix=scenario.slow_control or scenario.fix,
        kind=kind,
        ok=told and not report.failures,
        metric=CURVE_AREA,
        detail="; ".join((*report.failures, *_lines(area, report, told=told))),
    )


def _lines(area: Comparison | None, report: Report, *, told: bool) -> list[str]:
    if area is None or area.baseline is None or area.contender is None:
        return ["no curve was measured"]
    change = "" if area.effect is None else f" ({area.effect:+.1%})"
    line = (
        f"{CURVE_AREA} {area.baseline.center:.3g} -> {area.contender.center:.3g}{change}, "
        f"{area.verdict.value}"
    )
    crossings = len(report.tradeoff.crossings) if report.tradeoff else 0
    crossed = [f"the curves cross {crossings} times"] if crossings else []
    return [line, *crossed, *(() if told else area.doubts)]
