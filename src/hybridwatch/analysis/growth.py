"""Which functions of an engine take more of its time than on the other side: sampled stacks.

A function's share is that of the samples whose innermost Python frame is in it: C code counts for
its caller. Samples of one pass depend on each other, so passes are counted: the k-th ones of both
sides are a block of the joint test of times (``signed_rank.flip_p``), over all functions. Of equal
engines it names any function in at most 5 % of profiles.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from hybridwatch.analysis.signed_rank import BlockRow, flip_p
from hybridwatch.records.store.verdicts import Passes

LEAST: Final = 0.005
"""Share that a function must have on one side to be tested."""
_MOST: Final = 5
_LEVEL: Final = 0.05
_LINE: Final = re.compile(r":\d+\)$")


@dataclass(frozen=True, slots=True)
class Growth:
    """A function at its busiest line, its most frequent caller (or ""), and by how much it grew.

    ``share`` is of the engine's time: 0.05 for 5 points.
    """

    frame: str
    caller: str
    share: float


def without_line(frame: str) -> str:
    """Name a function and its file: another release has it at another line."""
    return _LINE.sub(")", frame)


def find_growth(baseline: Passes, contender: Passes) -> tuple[Growth, ...]:
    """Name up to five functions whose share grew beyond noise, that with the most first."""
    before, after = compute_shares(baseline), compute_shares(contender)
    grown = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in {**before, **after}}
    tested = sorted(n for n in grown if max(before.get(n, 0.0), after.get(n, 0.0)) >= LEAST)
    blocks = [tuple(map(_shares, both)) for both in zip(baseline, contender, strict=False)]
    if not (blocks and tested):
        return ()
    steps = ((new.get(n, 0.0) - old.get(n, 0.0) for old, new in blocks) for n in tested)
    tails = flip_p([BlockRow(tuple(row), shares_variance=False) for row in steps])
    found = [n for n, (worse, _) in zip(tested, tails, strict=True) if worse.adjusted <= _LEVEL]
    found = sorted(found, key=grown.__getitem__, reverse=True)[:_MOST]
    return tuple(Growth(*_place(name, contender), grown[name]) for name in found)


def compute_shares(side: Passes) -> dict[str, float]:
    """Give each function's own share, the mean over the passes."""
    passes = list(map(_shares, side))
    names = {name for one in passes for name in one}
    return {name: fmean(one.get(name, 0.0) for one in passes) for name in names}


def _shares(stacks: Mapping[tuple[str, ...], int]) -> dict[str, float]:
    counted = Counter[str]()
    for stack, samples in stacks.items():
        counted[without_line(stack[-1])] += samples
    return {name: samples / counted.total() for name, samples in counted.items()}


def _place(name: str, side: Passes) -> tuple[str, str]:
    """Give the line of a function with the most samples, and the function that called it most."""
    lines, callers = Counter[str](), Counter[str]()
    for stack, samples in (one for stacks in side for one in stacks.items()):
        if without_line(stack[-1]) == name:
            lines[stack[-1]] += samples
            callers["".join(map(without_line, stack[-2:-1]))] += samples
    return lines.most_common(1)[0][0], callers.most_common(1)[0][0]


def growth_lines(grown: Sequence[Growth], code: Callable[[str], str] = str) -> list[str]:
    """Say what takes more of the engine's time, a line each; ``code`` marks the engine's code."""
    return [
        f"+{100 * one.share:.1f} % of engine time in {code(one.frame)}"
        + (f", called by {code(one.caller)}" if one.caller else "")
        for one in grown
    ] or ["no function takes more of the engine's time than chance explains"]
