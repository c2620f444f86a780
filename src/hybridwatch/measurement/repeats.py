"""Counts requests that were asked twice and answered otherwise: ``contract.unrepeated_tokens``."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from hybridwatch.records.trial_parts import Completion, near_tie_within, position_of_parting
from hybridwatch.scenarios.expansion import PlannedWave


def unrepeated(
    waves: Sequence[PlannedWave], answered: Sequence[Completion], dtype: str
) -> int | None:
    """Count the requests of waves that ask again whose tokens are other ones than the first time.

    ``dtype`` is of the engine's weights: chunks and neighbours may be others the second time, so a
    difference that rounding can make does not count. ``None`` comes when no wave asks again.
    """
    if not any(wave.again for wave in waves):
        return None
    bound = near_tie_within({dtype})
    return sum(is_another(one, other, bound) for one, other in _pairs(waves, answered))


def _pairs(
    waves: Sequence[PlannedWave], answered: Sequence[Completion]
) -> Iterator[tuple[Completion, Completion]]:
    """Give what was said to each request the first time and again."""
    begins = accumulate((len(wave.requests) for wave in waves), initial=0)
    placed = zip(waves, begins, strict=False)
    for (first, begin), (second, begin_again) in pairwise(placed):
        if not second.again:
            continue
        for at, requests in enumerate(zip(first.requests, second.requests, strict=True)):
            if all(request.abort_at_step is None for request in requests):
                yield answered[begin + at], answered[begin_again + at]


def is_another(one: Completion, other: Completion, bound: float) -> bool:
    """Whether two answers to one request part where neither held both tokens for as likely.

    ``bound`` is in nats: up to that a difference is a near tie, which rounding can decide.
    """
    at = position_of_parting(one, other)
    if at is None:
        return False
    if at >= min(len(one.tokens), len(other.tokens)):
        return True
    gaps = one.gap(at, other.tokens[at]), other.gap(at, one.tokens[at])
    return any(gap is None or gap > bound for gap in gaps)
