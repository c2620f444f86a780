"""What it is worth to tell the history detector more than the values: the repeats, the kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis.calibration.figure import part, percent
from hybridwatch.analysis.change_point.examine import examine
from hybridwatch.metrics import Kind
from hybridwatch_lab.calibration import noise
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.noise import Array, RecordedNoise

_LENGTHS: Final = (20, 50, 100)
_CHANGE: Final = 0.05
_NEAR: Final = 5
_EDGE: Final = 5
_REPEATS: Final = 7
_CALM: Final = 0.03
_DISTURBED: Final = 0.30
_SHARE_DISTURBED: Final = 0.2


@dataclass(frozen=True, slots=True)
class ToldHistory:
    """One series.

    Attributes:
        values: One per run.
        errors: Standard error of each from the repeats within its run.
    """

    values: Array
    errors: Array


Draw = Callable[[Generator, Array], ToldHistory]
Finder = Callable[[ToldHistory], Sequence[int]]


def disturbed_runs(rng: Generator, levels: Array) -> ToldHistory:
    """Runs of seven repeats each, one run in five on a busy machine."""
    busy = rng.random(len(levels)) < _SHARE_DISTURBED
    cv = np.where(busy, _DISTURBED, _CALM)[:, None]
    repeats = levels[:, None] * np.exp(cv * rng.standard_normal((len(levels), _REPEATS)))
    errors = repeats.std(axis=1, ddof=1) / np.sqrt(_REPEATS)
    return ToldHistory(repeats.mean(axis=1), errors)


def shares(rng: Generator, levels: Array) -> ToldHistory:
    """Shares of right answers to 200 questions."""
    drawn = noise.shape(RecordedNoise.BINOMIAL, rng, len(levels))
    values = noise.series(RecordedNoise.BINOMIAL, drawn, 0.0, levels)
    return ToldHistory(values, np.zeros(len(levels)))


def of_telling(lab: Laboratory) -> LabSection:
    """Hits and null alarms with and without what the detector can be told."""
    rows = []
    times = lab.times(200, 3)
    for name, (draw, finders) in _SETTINGS.items():
        lab.tell(f"histories: {name}, told more and less")
        for knowledge, find in finders.items():
            rng = lab.rng(f"telling {name}")
            cells = [_outcome(draw, find, n, rng) for n, _ in product(_LENGTHS, range(times))]
            hits, lucks, alarms = (list(column) for column in zip(*cells, strict=True))
            rows.append((name, knowledge, part(hits), part(lucks), part(alarms)))
    text = (
        f"Finished series of {', '.join(map(str, _LENGTHS))} points, ±{percent(_CHANGE)} at a "
        f"random place, {times * len(_LENGTHS)} of each. A disturbed run is the mean of "
        f"{_REPEATS} repeats at CV {percent(_DISTURBED)}, any other at {percent(_CALM)}."
    )
    header = ("series", "given", "hit", "luck", "null alerting")
    table = LabTable("The same series, given to the detector in two ways", header, tuple(rows))
    return LabSection("Histories, what more information is worth", text, (), (table,))


def _outcome(draw: Draw, find: Finder, n: int, rng: Generator) -> tuple[bool, bool, bool]:
    """Ask about one series with a step and without: hit, luck, any alarm without."""
    place = int(rng.integers(_EDGE, n - _EDGE + 1))
    level = noise.step(n, place, float(rng.choice((-_CHANGE, _CHANGE))))
    state = int(rng.integers(2**32))
    loud, still = (draw(np.random.default_rng(state), lv) for lv in (level, np.ones(n)))
    found, lucky = find(loud), find(still)
    hit, luck = (any(abs(at - place) <= _NEAR for at in some) for some in (found, lucky))
    return hit, luck, bool(lucky)


def _by_values(history: ToldHistory) -> Sequence[int]:
    return [point.index for point in examine(history.values).points]


def _by_errors(history: ToldHistory) -> Sequence[int]:
    return [point.index for point in examine(history.values, spreads=history.errors).points]


def _by_kind(history: ToldHistory) -> Sequence[int]:
    return [point.index for point in examine(history.values, kind=Kind.PROPORTION).points]


_SETTINGS: Final[Mapping[str, tuple[Draw, Mapping[str, Finder]]]] = MappingProxyType(
    {
        "one run in five disturbed": (
            disturbed_runs,
            {"values": _by_values, "values and their standard errors": _by_errors},
        ),
        "shares of 200 answers": (
            shares,
            {"values": _by_values, "values and that they are shares": _by_kind},
        ),
    }
)
