"""Why a verdict is what it is, what a measurement could not have seen, and two curves, in words."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from hybridwatch.analysis.change_review import Blindness, GatedComparison
from hybridwatch.analysis.compare import find_band
from hybridwatch.analysis.power import ENOUGH
from hybridwatch.analysis.verdict import (
    Comparison,
    Design,
    LoadPoint,
    Report,
    SideCurve,
    Spread,
    Tradeoff,
    Verdict,
)
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import MOST_TRIALS, WORTHWHILE_TRIALS, name_of, plural
from hybridwatch.metrics import Kind
from hybridwatch.records.run import Clock

PlaceOf: TypeAlias = Callable[[Report], str]
_LEAST_DIGITS: Final = 3
_MOST_DIGITS: Final = 17
"""With so many digits no two numbers look the same."""
KNOBS: Final[Mapping[str, str]] = {
    "max_concurrency": "requests in flight",
    "request_rate": "requests per second",
}
"""What was turned, in words."""
_RATES: Final[Mapping[Clock, str]] = {"wall": "tok/s", "processor": "tok per processor second"}
_BOUNDS: Final[Mapping[str, str]] = {"ttft": "TTFT", "tpot": "TPOT"}


def blind_sentence(blindness: Blindness, place_of: PlaceOf | None = None) -> str:
    """Say how large a change would have passed unseen, of what, and of how much."""
    spots, of = blindness.spots, blindness.of
    seen = [spot for spot in spots if spot.reach is not None]
    if seen:
        least, worst = seen[0], seen[-1]
        start = f"Could only have seen changes above {_reach(least)} in {_name(least, place_of)}"
        if _reach(worst) != _reach(least):
            start += f", at worst above {_reach(worst)} in {_name(worst, place_of)}"
    else:
        start = f"Could not have seen any change in {_name(spots[0], place_of)}: too few trials"
    counted = f"{len(spots)} of {plural(of, 'comparison')} that can stop a change"
    return f"{start}; nothing is known of {counted}"


def settling(blindness: Blindness) -> str:
    """Say what would settle it."""
    needed = blindness.trials_needed
    if needed is None:
        return f"at least {ENOUGH} trials a side, and a quiet machine"
    if needed > MOST_TRIALS:
        return "a quieter machine: no practical number of trials settles it on this one"
    if needed > WORTHWHILE_TRIALS:
        return f"a quieter machine; on this one it takes about {needed} trials a side, hours"
    return f"about {needed} trials a side, or a quieter machine"


def _reach(spot: GatedComparison) -> str:
    return numbers.size(spot.comparison, spot.reach or 0.0)


def _name(spot: GatedComparison, place_of: PlaceOf | None) -> str:
    place = f" ({place_of(spot.report)})" if place_of else ""
    return f"{name_of(spot.comparison).removesuffix(' median')}{place}"


def because(comparison: Comparison, level: float) -> str:
    """Say how a verdict follows from its numbers.

    It is one sentence that ends with the verdict: ``adjusted p 0.003 < 0.05, and the effect +6.1 %
    is beyond the bound (6.1 > 3 %), in the bad direction: regression``.
    """
    verdict = comparison.verdict
    if verdict is Verdict.BROKEN:
        why = comparison.doubts[0].rstrip(".")
    elif verdict in {Verdict.MISSING, Verdict.FAILED, Verdict.NOT_COMPARABLE}:
        why = " ".join(comparison.doubts) or "The sides measured different things."
        why = why.rstrip(".")
    else:
        is_exact = comparison.design is Design.EXACT
        why = ", and ".join(_exact(comparison) if is_exact else _tested(comparison, level))
    return f"{why}: {verdict.value}"


def against(number: float, bound: float) -> str:
    """Write two numbers with their sign in as few digits as keep it true: never 0.05 < 0.05."""
    right = f"{bound:g}"
    if number == bound:
        return f"{right} = {right}"
    sign = "<" if number < bound else ">"
    for digits in range(_LEAST_DIGITS, _MOST_DIGITS):
        left = f"{number:.{digits}g}"
        if (float(left) < float(right)) is (number < bound) and float(left) != float(right):
            return f"{left} {sign} {right}"
    return f"{number!r} {sign} {bound!r}"


def _exact(comparison: Comparison) -> Iterator[str]:
    sides = comparison.baseline, comparison.contender
    old, new = (side.center if side else 0.0 for side in sides)
    if comparison.metric.kind is not Kind.EXACT:
        yield from _repeated(comparison, old, new)
        return
    if comparison.verdict is Verdict.EQUIVALENT:
        yield f"the worst trial of each side counts {new:g}"
        return
    if comparison.changes:
        yield from _changed(comparison)
        return
    yield f"the contender's worst trial counts {new:g} where the baseline's counts {old:g}"
    if comparison.verdict is Verdict.INCONCLUSIVE:
        yield "both break the contract in numbers that vary from trial to trial"
    else:
        yield f"any difference of an exact count is real, this one {_direction(comparison)}"


def _changed(comparison: Comparison) -> Iterator[str]:
    """Tokens that are not those of the baseline."""
    first = comparison.changes[0]
    counts = comparison.contender.values if comparison.contender else ()
    yield (
        f"the contender answers {plural(len(comparison.changes), 'request')} of "
        f"{plural(len(counts), 'trial')} with other tokens than the baseline"
    )
    left, right, near = first.baseline_logprob, first.contender_logprob, first.baseline_gap
    gap = ""
    if left is not None and right is not None:
        behind = "far" if near is None else f"{near:g} nats"
        gap = f" (logprob {left:g} and {right:g}; on the baseline the contender's token lies "
        gap += f"{behind} behind)"
    yield (
        f"the first of them, request {first.request + 1} of trial {first.trial + 1}, goes another "
        f"way at token {first.position + 1}{gap}"
    )
    yield f"tokens have no noise, this change is {_direction(comparison)}"


def _repeated(comparison: Comparison, old: float, new: float) -> Iterator[str]:
    """A count that never varies within a side."""
    if old == new:
        yield f"every trial of both sides counts {new:g}"
        return
    left, right = _apart(old, new)
    yield f"every trial of the contender counts {right} where each of the baseline's counts {left}"
    if comparison.verdict in {Verdict.EQUIVALENT, Verdict.WORSE_WITHIN}:
        margin = numbers.size(comparison, comparison.metric.margin)
        yield f"the difference is within the margin of {margin}"
    elif comparison.verdict is Verdict.INCONCLUSIVE:
        yield "runs of these builds differ by so much without a change"
    else:
        yield f"what never varies needs no test, this change is {_direction(comparison)}"


def _apart(old: float, new: float) -> tuple[str, str]:
    """Write two numbers in as few digits as distinguish them."""
    for digits in range(_LEAST_DIGITS, _MOST_DIGITS):
        left, right = f"{old:.{digits}g}", f"{new:.{digits}g}"
        if left != right:
            return left, right
    return repr(old), repr(new)


def _tested(comparison: Comparison, level: float) -> Iterator[str]:
    if comparison.p_adjusted is None:
        reason = f" ({comparison.doubts[0].rstrip('.')})" if comparison.doubts else ""
        yield f"no test was made{reason}"
        return
    significant = comparison.p_adjusted < level
    yield f"adjusted p {against(comparison.p_adjusted, level)}"
    if significant:
        yield _size(comparison)
    if comparison.verdict not in {Verdict.REGRESSION, Verdict.IMPROVEMENT}:
        yield _sameness(comparison, level)


def _size(comparison: Comparison) -> str:
    if comparison.effect is None:
        return f"there is no relative change from 0, so any counts, {_direction(comparison)}"
    beyond = abs(comparison.effect) > comparison.relevance
    unit = comparison.metric.kind.change_unit
    sizes = against(100 * abs(comparison.effect), 100 * comparison.relevance)
    where = "beyond" if beyond else "not beyond"
    text = f"the effect {numbers.change(comparison)} is {where} the bound ({sizes} {unit})"
    shown = beyond or comparison.verdict is Verdict.WORSE_WITHIN
    return f"{text}, {_direction(comparison)}" if shown else text


def _sameness(comparison: Comparison, level: float) -> str:
    if comparison.equivalence_p is None:
        return "sameness could not be tested"
    where = "inside" if comparison.equivalence_p < level else "not shown to lie inside"
    margin = numbers.size(comparison, find_band(comparison))
    return f"equivalence p {against(comparison.equivalence_p, level)}, {where} the band of {margin}"


def _direction(comparison: Comparison) -> str:
    old, new = (
        side.center if side else 0.0 for side in (comparison.baseline, comparison.contender)
    )
    worse = comparison.metric.better.is_worse(comparison.effect or new - old)
    is_bad = worse or comparison.verdict is Verdict.REGRESSION
    return f"in the {'bad' if is_bad else 'good'} direction"


def tradeoff_lines(found: Tradeoff) -> tuple[str, ...]:
    """Say what two curves show besides the verdict on their area, a sentence each."""
    return (_crossings(found), *_goodput(found), *_energy(found))


def describe_output(curve: SideCurve) -> str:
    """Name the upright axis: per GPU, or of the engine where there is none."""
    return f"{_RATES[curve.clock]} {'per GPU' if curve.gpus else 'of the engine'}"


def describe_interactivity(curve: SideCurve) -> str:
    """Name the other axis: what one user gets."""
    return f"{_RATES[curve.clock]} per user"


def describe_objective(curve: SideCurve) -> str:
    """Write the objective: ``TTFT up to 100 ms and TPOT up to 15 ms``; empty without one."""
    bounds = (
        f"{name} up to {numbers.duration(curve.slo[metric])}"
        for metric, name in _BOUNDS.items()
        if metric in curve.slo
    )
    return " and ".join(bounds)


def rate(value: float) -> str:
    """Write tokens or requests per second with three digits, without the unit."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _crossings(found: Tradeoff) -> str:
    if found.common is None:
        return "The curves share no interactivity, so no place of one is next to one of the other."
    low, high = map(rate, found.common)
    unit = describe_interactivity(found.baseline)
    between = f"from {low} to {high} {unit}"
    if not found.stretches:
        return f"Neither curve is shown to be above the other anywhere {between}."
    parts = ", ".join(
        f"the {one.better} is above from {rate(one.low)} to {rate(one.high)}"
        for one in found.stretches
    )
    if found.crossings:
        crossed = " and ".join(f"{rate(a)} and {rate(b)}" for a, b in found.crossings)
        return f"The curves cross between {crossed} {unit}: {parts}."
    return f"Compared {between}, and nowhere do the curves cross: {parts}."


def _goodput(found: Tradeoff) -> Iterator[str]:
    best = [(side, side.best_goodput) for side in (found.baseline, found.contender)]
    known = [(side, point) for side, point in best if point is not None]
    if len(known) == len(best):
        texts = [
            f"{rate(middle)} req/s at {_load(side, point)}"
            if (middle := _middle(point.goodput))
            else "none at any load"
            for side, point in known
        ]
        yield f"Goodput with {describe_objective(found.baseline)}: {_both_sides(texts)}"


def _energy(found: Tradeoff) -> Iterator[str]:
    least = []
    for side in (found.baseline, found.contender):
        measured = [point for point in side.points if point.joules_per_token is not None]
        if not measured:
            return
        point = min(measured, key=lambda one: _middle(one.joules_per_token))
        least.append(f"{rate(_middle(point.joules_per_token))} J at {_load(side, point)}")
    yield f"Least energy per token: {_both_sides(least)}"


def cost_line(report: Report, price_per_hour: float | None) -> str:
    """Say what a million output tokens of the timed load cost on a machine; empty if unknown."""
    found = next((one for one in report.comparisons if one.metric.id == "output_throughput"), None)
    sides = (found.baseline, found.contender) if found else ()
    per_hour = [3600 * side.center / 1e6 for side in sides if side and side.center > 0]
    if price_per_hour is None or len(per_hour) < 2:
        return ""
    texts = [f"{price_per_hour / millions:.3g}" for millions in per_hour]
    start = f"At {price_per_hour:g} per hour a million output tokens cost"
    return f"{start} {_both_sides(texts)}"


def _both_sides(sides: list[str]) -> str:
    return f"{sides[0]} (baseline), {sides[1]} (contender)."


def _load(side: SideCurve, point: LoadPoint) -> str:
    return f"{point.load:g} {KNOBS.get(side.knob, side.knob)}"


def _middle(spread: Spread | None) -> float:
    return 0.0 if spread is None else spread.middle
