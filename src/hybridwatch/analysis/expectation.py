"""What a scenario expects of a healthy engine, held against one side of a run."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import fmean
from typing import Final

from hybridwatch.analysis.doubt import about_breach
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.metrics import Kind, Metric
from hybridwatch.records.identity import Expected
from hybridwatch.records.run import Run
from hybridwatch.scenarios.scenario import Expect

NOTHING: Final = Expected({}, {})
_CLAIMS: Final = frozenset({Verdict.IMPROVEMENT, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE})
"""Verdicts by which a side that is wrong would pass."""


def broken_expectations(run: Run, side: int, expect: Expect) -> tuple[str, ...]:
    """List what a side did not fulfil, one line each; empty when it is as expected.

    Args:
        run: The run.
        side: Index of the build to look at.
        expect: The scenario's expectations; a metric without a value breaks its expectation.
    """
    values = _values(run, side)
    reasons = {m: why for trial in run.measured(side) for m, why in trial.unsupported.items()}
    return (
        *_broken(values, reasons, expect.exactly, "exactly", exact=True),
        *_broken(values, reasons, expect.at_least, "at least", exact=False),
    )


def bound_of(metric: Metric, expected: Expected) -> tuple[float | None, bool]:
    """Give what is expected of a metric, and whether exactly that; ``None`` where nothing is.

    Every contract counts broken rules, so 0 is expected of it whatever the scenario says.
    """
    exactly = expected.exactly.get(metric.id, 0.0 if metric.kind is Kind.EXACT else None)
    return expected.at_least.get(metric.id) if exactly is None else exactly, exactly is not None


def held_to(expected: Expected, comparison: Comparison) -> Comparison:
    """Call a comparison broken whose contender breaks what its scenario expects.

    Whatever it says of the change: a regression is bad news already, and what has no value to hold
    against the bound keeps its verdict.
    """
    metric, new = comparison.metric, comparison.contender
    bound, exact = bound_of(metric, expected)
    if bound is None or new is None or comparison.statistic != metric.kind.statistic:
        return comparison
    if comparison.verdict not in _CLAIMS or not is_wrong(metric, new.center, bound, exact=exact):
        return comparison
    old = None if comparison.baseline is None else comparison.baseline.center
    both = old is not None and is_wrong(metric, old, bound, exact=exact)
    words = f"{'exactly' if exact else 'at least'} {bound:g}"
    breach = about_breach(words, old, new.center, both=both)
    return replace(
        comparison,
        verdict=Verdict.BROKEN,
        doubts=(breach, *comparison.doubts),
        trials_needed=None,
    )


def is_wrong(metric: Metric, found: float, bound: float, *, exact: bool) -> bool:
    """Whether a center is not what is expected; arguments as ``bound_of`` gives them."""
    return found != bound if exact else metric.better.is_worse(found - bound)


def _values(run: Run, side: int) -> Mapping[str, list[float]]:
    collected: dict[str, list[float]] = {}
    for trial in run.measured(side):
        for sample in trial.samples:
            collected.setdefault(sample.metric, []).extend(sample.values)
    return collected


def _broken(
    values: Mapping[str, list[float]],
    reasons: Mapping[str, str],
    bounds: Mapping[str, float],
    words: str,
    *,
    exact: bool,
) -> Iterator[str]:
    for metric, bound in bounds.items():
        found = values.get(metric)
        if not found:
            why = f" ({reasons[metric]})" if metric in reasons else ""
            yield f"{metric}: expected {words} {bound:g}, found no value{why}"
        elif exact and any(value != bound for value in found):
            worst = max(found, key=lambda value: abs(value - bound))
            yield f"{metric}: expected {words} {bound:g}, found {worst:g}"
        elif not exact and fmean(found) < bound:
            yield f"{metric}: expected {words} {bound:g}, found {fmean(found):.4g}"
