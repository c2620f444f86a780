"""Tokens across sides: which requests does the contender answer otherwise than the baseline?

Answers are compared at the first position that differs. A difference is a *near tie* and does not
count if on each side the other side's token lies behind the chosen one by at most
``compute_bound`` nats: rounding alone decides there. With *one arithmetic* (the same files of the
engine, arguments, machine, in float32 on a CPU) rounding differs only by which requests share a
step; with *two* every sum may be rounded otherwise, so the bound is wider.

Requests that the baseline itself answers otherwise than without graphs are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import TokenChange
from hybridwatch.records.run import (
    NEAR_TIE_ONE_ARITHMETIC,
    Completion,
    Phase,
    Trial,
    near_tie_within,
    position_of_parting,
)

_PLANTED: Final = "planted"
_FILES: Final = ("release", "lock_digest", "wheel_digest", "code_digest")
_Value = TypeVar("_Value", int, float)


class ChangedTokens(NamedTuple):
    """What two sides' contract trials say together, and in how many ``requests`` of all of them.

    ``counts`` are the changes of each pair of trials. ``wrong_before`` requests were left out
    because the baseline's own tokens are wrong. Differences up to ``bound`` nats are near ties.
    ``one_arithmetic`` is whether the sides round alike but for who shares a step.
    """

    counts: tuple[float, ...]
    requests: int
    changes: tuple[TokenChange, ...]
    near_ties: tuple[TokenChange, ...]
    wrong_before: int
    bound: float
    one_arithmetic: bool


def tokens_across(baseline: OneSide, contender: OneSide) -> ChangedTokens | None:
    """Compare the tokens of two sides; ``None`` where no pair of trials has any that are right."""
    bound = compute_bound(baseline, contender)
    counts: list[float] = []
    changes: list[TokenChange] = []
    near_ties: list[TokenChange] = []
    requests = wrong_before = 0
    for number, old, new in _pairs(baseline, contender):
        pairs = zip(old.completions, new.completions, strict=False)
        alike = [
            (place, one, other)
            for place, (one, other) in enumerate(pairs)
            if one.prompt == other.prompt  # a turn that follows another answer has another one
        ]
        right = [(place, one, other) for place, one, other in alike if not one.is_wrong]
        wrong_before += len(alike) - len(right)
        if not right:
            continue
        requests += len(right)
        differing = [
            replace(change_between(one, other), trial=number, request=place)
            for place, one, other in right
            if one.tokens != other.tokens
        ]
        real = [change for change in differing if not is_near_tie(change, bound)]
        near_ties += [change for change in differing if is_near_tie(change, bound)]
        changes += real
        counts.append(float(len(real)))
    if not counts:
        return None
    is_one = is_one_arithmetic(baseline, contender)
    return ChangedTokens(
        tuple(counts), requests, tuple(changes), tuple(near_ties), wrong_before, bound, is_one
    )


def compute_bound(baseline: OneSide, contender: OneSide) -> float:
    """Say up to how many nats a difference between two sides may be rounding."""
    if is_one_arithmetic(baseline, contender):
        return NEAR_TIE_ONE_ARITHMETIC
    return near_tie_within({side.build.flags.get("dtype") for side in (baseline, contender)})


def is_one_arithmetic(baseline: OneSide, contender: OneSide) -> bool:
    """Whether two sides round alike but for who shares a step, as far as a record says."""
    left, right = baseline.build, contender.build
    return (
        left.accelerator == right.accelerator == "cpu"
        and baseline.run.testbed == contender.run.testbed
        and all(getattr(left, name) == getattr(right, name) for name in _FILES)
        and _arguments(baseline) == _arguments(contender)
        and left.flags.get("dtype") == "float32"
    )


def is_near_tie(change: TokenChange, bound: float) -> bool:
    """Whether each side held the other side's token for as likely as its own, but for rounding."""
    gaps = change.baseline_gap, change.contender_gap
    return all(gap is not None and gap <= bound for gap in gaps)


def _arguments(side: OneSide) -> dict[str, str]:
    return {name: text for name, text in side.build.flags.items() if name != _PLANTED}


def _pairs(baseline: OneSide, contender: OneSide) -> Iterator[tuple[int, Trial, Trial]]:
    """Pair the contract trials by their number, since each number has prompts of its own."""
    sides = (side.planned(Phase.CONTRACT) for side in (baseline, contender))
    for number, (old, new) in enumerate(zip(*sides, strict=False)):
        if old.completions and new.completions:
            yield number, old, new


def change_between(one: Completion, other: Completion) -> TokenChange:
    """Find where two answers of one prompt part, which they must."""
    position = position_of_parting(one, other)
    if position is None:
        raise ValueError("equal answers do not part")
    left, right = _at(one.tokens, position), _at(other.tokens, position)
    return TokenChange(
        trial=0,
        request=0,
        position=position,
        baseline=left,
        contender=right,
        baseline_logprob=_at(one.logprobs, position),
        contender_logprob=_at(other.logprobs, position),
        baseline_gap=None if right is None else one.gap(position, right),
        contender_gap=None if left is None else other.gap(position, left),
    )


def _at(values: Sequence[_Value], position: int) -> _Value | None:
    return values[position] if position < len(values) else None
