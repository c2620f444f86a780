"""Two answers to one request: the same, apart by rounding, or different.

Greedy answers part at one token, and everything behind it continues from another text. Rounding can
part them only where both tokens were nearly as likely: a *near tie*. Up to the token at which they
part, and everywhere if they do not, the logarithms of the chosen tokens must agree as well: a small
model that is sure of its answer says the same from a damaged state, but is less sure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import quantiles
from typing import Final, NamedTuple

from hybridwatch.records.run import NEAR_TIE_FLOAT32, NEAR_TIE_HALF
from hybridwatch.server_check.answer import Answer

MOST: Final = 0.5
"""No server is granted a wider margin, in nats: a damaged one would ask for it."""
_TIMES_NOISE: Final = 4.0
"""Rounding seen in a few answers says little about the worst of a thousand."""
_SHIFT: Final = 0.05
"""Nats that the logarithm of a chosen token may move at least: a state may be kept in half
precision beside weights in float32."""
_TIMES_MARGIN: Final = 4.0
_GRID: Final = 1024
"""Steps a nat: logits of half precision lie on such a grid or a coarser one."""
_OFF_GRID: Final = 0.05
_ENOUGH: Final = 20


class Likeness(Enum):
    """What two answers are to each other."""

    SAME = "same"
    ROUNDING = "within rounding"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


class Comparison(NamedTuple):
    """How two answers agree.

    Attributes:
        position: Where they part; ``None`` if they do not.
        gap: The larger of how far each side held the other's token behind its own, in nats;
            ``None`` if they do not part or if a side did not name the token.
        shift: How far the logarithms of the tokens that both chose are apart at most, in nats.
    """

    likeness: Likeness
    position: int | None = None
    gap: float | None = None
    shift: float = 0.0


@dataclass(frozen=True, slots=True)
class Rule:
    """What counts as rounding.

    Attributes:
        margin: Nats up to which two tokens are a near tie.
        strict: Whether nothing does: an engine that promises batch invariance rounds alike.
    """

    margin: float
    strict: bool = False

    @property
    def largest_shift(self) -> float:
        """Nats that the logarithm of one token may move."""
        return max(_SHIFT, _TIMES_MARGIN * self.margin)

    def compare(self, one: Answer, other: Answer) -> Comparison:
        """Compare two answers to one request."""
        if one.is_nan or other.is_nan:
            same = one.is_nan and other.is_nan
            return Comparison(Likeness.SAME if same else Likeness.DIFFERENT)
        is_text_known = one.text is not None or other.text is not None
        if is_text_known and not (one.tokens and other.tokens):
            return self._by_text(one, other)
        at = position_of_parting(one, other)
        shift = _shift(one, other, at)
        if at is None:
            return Comparison(self._without_parting(one, other, shift), shift=shift)
        gap = _gap(one, other, at)
        if self.strict or shift > self.largest_shift:
            likeness = Likeness.DIFFERENT
        elif not (one.logprobs and other.logprobs):
            likeness = Likeness.UNKNOWN
        else:
            near = (gap if gap is not None else _least_gap(one, other, at)) <= self.margin
            likeness = Likeness.ROUNDING if near else Likeness.DIFFERENT
        return Comparison(likeness, at, gap, shift)

    def _without_parting(self, one: Answer, other: Answer, shift: float) -> Likeness:
        texts = {one.text, other.text} - {None}
        moved = shift > (0 if self.strict else self.largest_shift)
        return Likeness.DIFFERENT if moved or len(texts) > 1 else Likeness.SAME

    def _by_text(self, one: Answer, other: Answer) -> Comparison:
        if one.text == other.text:
            return Comparison(Likeness.SAME)
        return Comparison(Likeness.DIFFERENT if self.strict else Likeness.UNKNOWN)


def position_of_parting(one: Answer, other: Answer) -> int | None:
    """Find the first position at which two answers differ; ``None`` when they are equal."""
    if one.tokens == other.tokens:
        return None
    pairs = enumerate(zip(one.tokens, other.tokens, strict=False))
    shorter = min(len(one.tokens), len(other.tokens))
    return next((at for at, (left, right) in pairs if left != right), shorter)


def _shift(one: Answer, other: Answer, until: int | None) -> float:
    pairs = list(zip(one.logprobs, other.logprobs, strict=False))[:until]
    return max((abs(left - right) for left, right in pairs), default=0.0)


def _gap(one: Answer, other: Answer, at: int) -> float | None:
    """The larger gap of both sides; ``None`` where one does not name the other's token."""
    gaps = [_behind(side, at, against) for side, against in ((one, other), (other, one))]
    known = [gap for gap in gaps if gap is not None]
    return max(known) if len(known) == len(gaps) else None


def _behind(side: Answer, at: int, against: Answer) -> float | None:
    if at >= len(side.logprobs) or at >= len(against.tokens) or at >= len(side.top):
        return None
    found = side.top[at].get(against.tokens[at])
    return None if found is None else max(0.0, side.logprobs[at] - found)


def _least_gap(one: Answer, other: Answer, at: int) -> float:
    """How far a token that is not named, or an end that has no name, lies behind at least."""
    ends = at >= min(len(one.tokens), len(other.tokens))
    least = 0.0
    for side in (one, other):
        if at < len(side.top):
            behind = sorted(max(0.0, side.logprobs[at] - value) for value in side.top[at].values())
            least = max(least, *(behind[1:2] if ends else behind[-1:]), 0.0)
    return least


def learn_margin(pairs: Iterable[tuple[Answer, Answer]]) -> float:
    """Learn from answers to equal requests how far rounding alone moves this server's logarithms.

    Of each pair the largest difference counts, of all pairs the upper quartile: a fault that
    damages some of them must not widen the margin. Logits of half precision show by their gaps,
    all multiples of a power of two; such a server gets the margin of half precision at least.
    """
    known = list(pairs)
    shifts = [_shift(one, other, position_of_parting(one, other)) for one, other in known]
    typical = quantiles(shifts, n=4)[2] if len(shifts) > 1 else 0.0
    least = NEAR_TIE_HALF if is_half([one for one, _ in known]) else NEAR_TIE_FLOAT32
    return min(MOST, max(least, _TIMES_NOISE * typical))


def is_half(answers: Sequence[Answer]) -> bool:
    """Whether the gaps between likely tokens lie on the grid of half precision."""
    gaps = [
        values[0] - values[1]
        for answer in answers
        for values in (sorted(top.values(), reverse=True) for top in answer.top)
        if len(values) > 1
    ]
    on_grid = sum(abs(gap * _GRID - round(gap * _GRID)) < _OFF_GRID for gap in gaps)
    return len(gaps) >= _ENOUGH and on_grid > len(gaps) * 0.9
