"""Controls: is the engine without its fix detected, and does the healthy engine pass?

A scenario that cannot see its own bug proves nothing when it is green, and one that sees bugs in
two equal engines proves nothing when it is red. So each is run against both.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hybridwatch.analysis.report import broken_expectations, report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.metrics import (
    CHANGED_TOKENS,
    CURVE_AREA,
    UNREPEATED_TOKENS,
    WRONG_ANSWERS,
    WRONG_STREAMS,
    WRONG_TOKENS,
    Kind,
)
from hybridwatch.records.run import Phase, Run
from hybridwatch.scenarios.fixes import catalogue
from hybridwatch.scenarios.scenario import Scenario

ENGINE_DIED: Final = "engine_died"
"""Stands where the metric stands in the answer of a control whose engine did not live."""

_TOKENS: Final = frozenset(
    {WRONG_TOKENS, WRONG_ANSWERS, WRONG_STREAMS, UNREPEATED_TOKENS, CHANGED_TOKENS}
)
"""Contracts about what is said; the others are rules of the engine's state."""


class ControlKind(Enum):
    """Against what a scenario was run."""

    KNOWN_BAD = "known-bad"
    A_A = "a-a"


@dataclass(frozen=True, slots=True)
class Control:
    """Whether a scenario did what it must against one other engine: the bad one, or an equal one.

    ``fix`` is the one whose absence it must see, ``metric`` the clearest one that says so.
    """

    scenario: str
    fix: str
    kind: ControlKind
    ok: bool
    metric: str
    detail: str


def known_bad_control(scenario: Scenario, run: Run, healthy: int, bad: int) -> Control:
    """Judge the engine without its fix: it must show the harm that the scenario speaks of.

    The run, of which the trials until it was stopped count, holds contract and accuracy trials of
    both sides; ``healthy`` and ``bad`` are indices into its builds.
    """
    if scenario.harm == "death":
        return _death_control(scenario, run, healthy, bad)
    run = run.so_far()
    report = report_between(OneSide(run, healthy), OneSide(run, bad))
    worse = [c for c in _deterministic(report) if c.verdict is Verdict.REGRESSION]
    breaks = catalogue()[scenario.fix].breaks  # of some it is what is said
    rules = [
        c
        for c in worse
        if c.metric.kind is Kind.EXACT and (c.metric.id not in _TOKENS or c.metric.id == breaks)
    ]
    lines = [c for c in worse if c not in rules]
    # A rule that only some seeds see broken would miss the bug on the others.
    contracts = [c for c in rules if c.contender is not None and all(c.contender.values)]
    found = rules + lines
    silent = scenario.harm == "state"
    troubles = (*report.failures, *_blind(contracts, lines, silent=silent))
    metric = found[0].metric.id if found else WRONG_TOKENS
    return _judged(scenario, ControlKind.KNOWN_BAD, metric, troubles, map(_line, found))


def a_a_control(scenario: Scenario, run: Run, healthy: int, same: int) -> Control:
    """Judge the healthy engine against itself: nothing may differ, and all is as expected."""
    report = report_between(OneSide(run, healthy), OneSide(run, same))
    differing = [
        c
        for c in _deterministic(report)
        if c.verdict in {Verdict.IMPROVEMENT, Verdict.WORSE_WITHIN} or c.verdict.is_bad_news
    ]
    unexpected = [line for side in (healthy, same) for line in _unexpected(scenario, run, side)]
    seeds = sum(t.phase is Phase.CONTRACT for side in (healthy, same) for t in run.measured(side))
    answers = sum(
        c.baseline.n for c in report.comparisons if c.metric.kind is Kind.PROPORTION and c.baseline
    )
    idle = [] if seeds and (answers or scenario.accuracy is None) else ["nothing was looked at"]
    troubles = (*report.failures, *idle, *unexpected, *map(_line, differing))
    calm = f"nothing differs: {seeds} contract trials, {answers} paired answers"
    metric = differing[0].metric.id if differing else WRONG_TOKENS
    return _judged(scenario, ControlKind.A_A, metric, troubles, () if troubles else (calm,))


def _death_control(scenario: Scenario, run: Run, healthy: int, bad: int) -> Control:
    """Judge an engine that must live through no contract trial without its fix.

    Sides may share the process that the bad one ends: each trial looks first if its engine is
    there.
    """
    trials = [one for one in run.trials if one.phase is Phase.CONTRACT and one.side == bad]
    died = [one.failure for one in trials if one.failure and one.failure.engine_died]
    lived = len(trials) - len(died)
    ill = [trial.failure.reason for trial in run.failed(healthy) if trial.failure]
    troubles = [f"the healthy engine failed: {reason}" for reason in ill]
    if lived or not trials:
        troubles.append(f"without the fix the engine lived through {lived} contract trials")
    lines = [f"the engine died in {len(died)} of {len(trials)} trials"]
    lines += [died[0].reason] if died else []
    return _judged(scenario, ControlKind.KNOWN_BAD, ENGINE_DIED, troubles, lines)


def _judged(
    scenario: Scenario,
    kind: ControlKind,
    metric: str,
    troubles: Sequence[str],
    facts: Iterable[str],
) -> Control:
    detail = "; ".join((*troubles, *facts))
    return Control(scenario.id, scenario.fix, kind, not troubles, metric, detail)


def _deterministic(report: Report) -> Iterator[Comparison]:
    # Times of two equal engines differ by chance.
    return (c for c in report.comparisons if not c.metric.kind.has_noise)


def _blind(
    contracts: Sequence[Comparison], lines: Sequence[Comparison], *, silent: bool
) -> Iterator[str]:
    if not contracts:
        yield "no contract is broken in every seed without the fix"
    if not lines and not silent:
        yield "neither tokens nor answers are wrong without the fix"


def _unexpected(scenario: Scenario, run: Run, side: int) -> Iterator[str]:
    for line in broken_expectations(run, side, scenario.expect):
        if line.startswith(("contract.", "accuracy.")):
            yield f"the healthy engine is not as expected: {line}"


def _line(comparison: Comparison) -> str:
    left, right = comparison.baseline, comparison.contender
    if left is None or right is None:
        return f"{comparison.metric.id}: {comparison.verdict.value}"
    name, p_value = comparison.metric.id, comparison.p_adjusted
    if comparison.metric.kind is Kind.EXACT:
        seeds = sum(value > left.center for value in right.values)
        return f"{name} {left.center:g} -> {right.center:g}, {seeds} of {right.n} seeds"
    share = f"{name} {left.center:.1%} -> {right.center:.1%}, n = {right.n}"
    return share if p_value is None else f"{share}, adjusted p {p_value:.1g}"


def slow_control(scenario: Scenario, run: Run, healthy: int, slow: int) -> Control:
    """Judge the engine with the planted fault: its curve must be called a regression."""
    return _control(scenario, run, (healthy, slow), ControlKind.KNOWN_BAD, {Verdict.REGRESSION})


def same_curve_control(scenario: Scenario, run: Run, healthy: int, same: int) -> Control:
    """Judge the healthy engine against itself: all within the margin, one in 20 worse by chance."""
    same_enough = {Verdict.EQUIVALENT, Verdict.WORSE_WITHIN}
    return _control(scenario, run, (healthy, same), ControlKind.A_A, same_enough)


def _control(
    scenario: Scenario, run: Run, sides: tuple[int, int], kind: ControlKind, wanted: Set[Verdict]
) -> Control:
    left, right = (OneSide(run, side) for side in sides)
    report = report_between(left, right)
    area = next((one for one in report.comparisons if one.metric.id == CURVE_AREA), None)
    is_shown = area is not None and area.verdict in wanted
    return Control(
        scenario=scenario.id,
        fix=scenario.slow_control or scenario.fix,
        kind=kind,
        ok=is_shown and not report.failures,
        metric=CURVE_AREA,
        detail="; ".join((*report.failures, *_lines(area, report, is_shown=is_shown))),
    )


def _lines(area: Comparison | None, report: Report, *, is_shown: bool) -> list[str]:
    if area is None or area.baseline is None or area.contender is None:
        return ["no curve was measured"]
    change = "" if area.effect is None else f" ({area.effect:+.1%})"
    line = (
        f"{CURVE_AREA} {area.baseline.center:.3g} -> {area.contender.center:.3g}{change}, "
        f"{area.verdict.value}"
    )
    crossings = len(report.tradeoff.crossings) if report.tradeoff else 0
    crossed = [f"the curves cross {crossings} times"] if crossings else []
    return [line, *crossed, *(() if is_shown else area.doubts)]
