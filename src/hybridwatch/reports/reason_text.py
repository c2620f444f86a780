"""Why a verdict is what it is, in one sentence made of the numbers that decided.

And what a measurement could not have seen, and what would settle it.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from hybridwatch.analysis.change_review import Blindness, BlindSpot
from hybridwatch.analysis.compare import COUNT_BAND
from hybridwatch.analysis.power import ENOUGH
from hybridwatch.analysis.verdict import Comparison, Design, Report, TokenChange, Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.labels import MOST_TRIALS, WORTHWHILE_TRIALS, name_of, plural
from hybridwatch.metrics import Kind

PlaceOf: TypeAlias = Callable[[Report], str]
_LEAST_DIGITS: Final = 3
_MOST_DIGITS: Final = 17
"""With so many digits no two numbers look the same."""


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
    return f"{start}; nothing can be told of {counted}"


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


def _reach(spot: BlindSpot) -> str:
    return numbers.size(spot.comparison, spot.reach or 0.0)


def _name(spot: BlindSpot, place_of: PlaceOf | None) -> str:
    place = f" ({place_of(spot.report)})" if place_of else ""
    return f"{name_of(spot.comparison).removesuffix(' median')}{place}"


def because(comparison: Comparison, level: float) -> str:
    """Say how a verdict follows from its numbers.

    It is one sentence that ends with the verdict: ``adjusted p 0.003 < 0.05, and the effect +6.1 %
    is beyond the bound (6.1 > 3 %), in the bad direction: regression``.
    """
    verdict = comparison.verdict
    match verdict:
        case Verdict.BROKEN:
            return f"{comparison.doubts[0].rstrip('.')}: {verdict.value}"
        case Verdict.MISSING | Verdict.FAILED | Verdict.NOT_COMPARABLE:
            reasons = " ".join(comparison.doubts) or "The sides measured different things."
            return f"{reasons.rstrip('.')}: {verdict.value}"
        case Verdict.REGRESSION | Verdict.IMPROVEMENT | Verdict.EQUIVALENT | Verdict.INCONCLUSIVE:
            is_exact = comparison.design is Design.EXACT
            steps = _exact(comparison) if is_exact else _tested(comparison, level)
            return f"{', and '.join(steps)}: {verdict.value}"


def against(number: float, bound: float) -> str:
    """Write two numbers with the sign between them, in as few digits as keep the sign true.

    Never ``0.05 < 0.05``.
    """
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
    yield (
        f"the first of them, request {first.request + 1} of trial {first.trial + 1}, goes another "
        f"way at token {first.position + 1}{_gap(first)}"
    )
    yield f"tokens have no noise, this change is {_direction(comparison)}"


def _gap(change: TokenChange) -> str:
    left, right = change.baseline_logprob, change.contender_logprob
    if left is None or right is None:
        return ""
    near = change.baseline_gap
    behind = "far" if near is None else f"{near:g} nats"
    return (
        f" (logprob {left:g} and {right:g}; on the baseline the contender's token lies {behind} "
        "behind)"
    )


def _repeated(comparison: Comparison, old: float, new: float) -> Iterator[str]:
    """A count that never varies within a side."""
    if old == new:
        yield f"every trial of both sides counts {new:g}"
        return
    left, right = _apart(old, new)
    yield f"every trial of the contender counts {right} where each of the baseline's counts {left}"
    if comparison.verdict is Verdict.EQUIVALENT:
        margin = numbers.size(comparison, comparison.metric.margin)
        yield f"the difference is within the margin of {margin}"
    elif comparison.verdict is Verdict.INCONCLUSIVE:
        yield "runs of these builds differ by so much without a change"
    else:
        yield f"what never varies needs no test, this change is {_direction(comparison)}"


def _apart(old: float, new: float) -> tuple[str, str]:
    """Write two numbers in as few digits as tell them apart."""
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
    if comparison.verdict in {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE}:
        yield _sameness(comparison, level)


def _size(comparison: Comparison) -> str:
    if comparison.effect is None:
        return f"there is no relative change from 0, so any counts, {_direction(comparison)}"
    beyond = abs(comparison.effect) > comparison.relevance
    unit = comparison.metric.kind.change_unit
    sizes = against(100 * abs(comparison.effect), 100 * comparison.relevance)
    where = "beyond" if beyond else "not beyond"
    text = f"the effect {numbers.change(comparison)} is {where} the bound ({sizes} {unit})"
    return f"{text}, {_direction(comparison)}" if beyond else text


def _sameness(comparison: Comparison, level: float) -> str:
    if comparison.equivalence_p is None:
        return "sameness could not be tested"
    where = "inside" if comparison.equivalence_p < level else "not shown to lie inside"
    margin = numbers.size(comparison, render_band(comparison))
    return f"equivalence p {against(comparison.equivalence_p, level)}, {where} the band of {margin}"


def _direction(comparison: Comparison) -> str:
    return f"in the {'bad' if comparison.verdict is Verdict.REGRESSION else 'good'} direction"


def render_band(comparison: Comparison) -> float:
    """Give the half-width of the band in which two sides count as the same."""
    return comparison.metric.margin or COUNT_BAND
