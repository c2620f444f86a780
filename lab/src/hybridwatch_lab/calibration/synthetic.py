"""The history detector on finished series: kinds of noise, and the value of more information."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis.change_point.examine import examine
from hybridwatch.metrics import Kind
from hybridwatch_lab.calibration import figure, simulated
from hybridwatch_lab.calibration.figure import at_least, at_most, part, percent
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.rivals import Alarm, Detector, ours
from hybridwatch_lab.calibration.simulated import Array, RecordedNoise

CHANGE: Final = 0.05
NEAR: Final = 5
LENGTHS: Final = (10, 20, 50, 100, 200, 500)
SPREADS: Final = (0.005, 0.01, 0.02, 0.05)
_CHANGES: Final = (0.02, CHANGE, 0.10)
_EDGE: Final = 5
"""Points that a step leaves on either side: fewer are no level yet."""


@dataclass(frozen=True, slots=True)
class SyntheticCase:
    """One series examined twice: as it is, and with a step.

    Attributes:
        change: Size of the step, without sign.
        hit: Whether the step was named.
        luck: Whether its place was named without it.
        alerting: Whether the series without it gave any alarm.
        sure_hit: As ``hit``, confirmed alarms only.
        sure_luck: As ``luck``, confirmed alarms only.
        sure_alerting: As ``alerting``, confirmed alarms only.
    """

    noise: RecordedNoise
    cv: float
    n: int
    change: float
    hit: bool
    luck: bool
    alerting: bool
    sure_hit: bool
    sure_luck: bool
    sure_alerting: bool


def examine_cases(
    detector: Detector, kind: RecordedNoise, cv: float, n: int, change: float, rng: Generator
) -> SyntheticCase:
    """Simulate one series and examine it with a step of either sign and without."""
    drawn = simulated.shape(kind, rng, n)
    place = int(rng.integers(_EDGE, n - _EDGE + 1))
    level = simulated.step(n, place, float(rng.choice((-change, change))))
    loud = detector(simulated.series(kind, drawn, cv, level))
    still = detector(simulated.series(kind, drawn, cv))
    return SyntheticCase(
        noise=kind,
        cv=cv,
        n=n,
        change=change,
        hit=_names(loud, place),
        luck=_names(still, place),
        alerting=bool(still),
        sure_hit=_names(_sure(loud), place),
        sure_luck=_names(_sure(still), place),
        sure_alerting=bool(_sure(still)),
    )


def simulate(lab: Laboratory, detector: Detector = ours) -> tuple[SyntheticCase, ...]:
    """Ask about every kind, spread and length, equally often."""
    cases: list[SyntheticCase] = []
    for kind, change in product(RecordedNoise, _CHANGES):
        rng = lab.rng(f"synthetic {kind.value} {change}")
        lab.on_progress(f"histories: {kind.value}, {percent(change)}")
        times = lab.times(40, 2) if change == CHANGE else lab.times(10, 0)
        for cv, n, _ in product(SPREADS, LENGTHS, range(times)):
            cases.append(examine_cases(detector, kind, cv, n, change, rng))
    return tuple(cases)


def on_finished_series(lab: Laboratory, detector: Detector = ours) -> LabSection:
    """Hit minus luck and the share of null series alerting."""
    cases = simulate(lab, detector)
    chosen = [case for case in cases if case.change == CHANGE]
    figures = (
        figure.gain(
            "history.synthetic.gain",
            f"±{percent(CHANGE)} step named, minus luck",
            [case.hit for case in chosen],
            [case.luck for case in chosen],
            at_least(0.57),
        ),
        figure.gain(
            "history.synthetic.gain_confirmed",
            f"±{percent(CHANGE)} step named, minus luck, confirmed",
            [case.sure_hit for case in chosen],
            [case.sure_luck for case in chosen],
        ),
        figure.share(
            "history.synthetic.null",
            "null series with any alarm",
            [case.alerting for case in cases],
            at_most(0.03),
        ),
        figure.share(
            "history.synthetic.null_confirmed",
            "null series with a confirmed alarm",
            [case.sure_alerting for case in cases],
        ),
    )
    text = (
        f"Seven kinds of noise, CV {', '.join(map(percent, SPREADS))} (binomial shares and "
        f"constants have their own), {', '.join(map(str, LENGTHS))} points, with one step of "
        f"either sign at a random place, {_EDGE} points or more from either end, and the same "
        f"series without it; each combination equally often. A hit is an alarm within {NEAR} "
        "points of the step, luck the same without it. Drift wanders by three standard "
        "deviations from one end to the other. In the tables: hit minus luck for each size of "
        "step, then null series with any alarm."
    )
    tables = (
        _table(
            *("By kind of noise", "noise", [kind.value for kind in RecordedNoise], cases),
            lambda case: case.noise.value,
        ),
        _table(
            "By spread", "CV", list(map(percent, SPREADS)), cases, lambda case: percent(case.cv)
        ),
        _table("By length", "points", [str(n) for n in LENGTHS], cases, lambda case: str(case.n)),
    )
    return LabSection("Histories, finished series", text, figures, tables)


def _table(
    caption: str,
    heading: str,
    names: Sequence[str],
    cases: Iterable[SyntheticCase],
    name_of: Callable[[SyntheticCase], str],
) -> LabTable:
    by_name: dict[str, list[SyntheticCase]] = {name: [] for name in names}
    for case in cases:
        by_name[name_of(case)].append(case)
    header = (
        heading,
        *(f"±{percent(change)}" for change in _CHANGES),
        "null alerting",
        "confirmed",
    )
    rows = [(name, *_cells(some)) for name, some in by_name.items() if some]
    return LabTable(caption, header, tuple(rows))


def _cells(cases: Sequence[SyntheticCase]) -> tuple[str, ...]:
    found = []
    for change in _CHANGES:
        some = [case for case in cases if case.change == change]
        gained = sum(case.hit - case.luck for case in some)
        found.append(f"{gained / len(some):.2f}" if some else "-")
    alerting = part([case.alerting for case in cases])
    return (*found, alerting, part([case.sure_alerting for case in cases]))


def _names(alarms: Iterable[Alarm], place: int) -> bool:
    return any(abs(alarm.index - place) <= NEAR for alarm in alarms)


def _sure(alarms: Iterable[Alarm]) -> tuple[Alarm, ...]:
    return tuple(alarm for alarm in alarms if alarm.confirmed)


_LENGTHS: Final = (20, 50, 100)
_CHANGE: Final = 0.05
_NEAR: Final = 5
_REPEATS: Final = 7
_CALM: Final = 0.03
_DISTURBED: Final = 0.30
_SHARE_DISTURBED: Final = 0.2


@dataclass(frozen=True, slots=True)
class SeriesWithErrors:
    """One series.

    Attributes:
        values: One per run.
        errors: Standard error of each from the repeats within its run.
    """

    values: Array
    errors: Array


Draw = Callable[[Generator, Array], SeriesWithErrors]
Finder = Callable[[SeriesWithErrors], Sequence[int]]


def disturbed_runs(rng: Generator, levels: Array) -> SeriesWithErrors:
    """Runs of seven repeats each, one run in five on a busy machine."""
    busy = rng.random(len(levels)) < _SHARE_DISTURBED
    cv = np.where(busy, _DISTURBED, _CALM)[:, None]
    repeats = levels[:, None] * np.exp(cv * rng.standard_normal((len(levels), _REPEATS)))
    errors = repeats.std(axis=1, ddof=1) / np.sqrt(_REPEATS)
    return SeriesWithErrors(repeats.mean(axis=1), errors)


def shares(rng: Generator, levels: Array) -> SeriesWithErrors:
    """Shares of right answers to 200 questions."""
    drawn = simulated.shape(RecordedNoise.BINOMIAL, rng, len(levels))
    values = simulated.series(RecordedNoise.BINOMIAL, drawn, 0.0, levels)
    return SeriesWithErrors(values, np.zeros(len(levels)))


def of_information(lab: Laboratory) -> LabSection:
    """Hits and null alarms with and without more information for the detector."""
    rows = []
    times = lab.times(200, 3)
    for name, (draw, finders) in _SETTINGS.items():
        lab.on_progress(f"histories: {name}, told more and less")
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
    """Examine one series with a step and without: hit, luck, any alarm without."""
    place = int(rng.integers(_EDGE, n - _EDGE + 1))
    level = simulated.step(n, place, float(rng.choice((-_CHANGE, _CHANGE))))
    state = int(rng.integers(2**32))
    loud, still = (draw(np.random.default_rng(state), lv) for lv in (level, np.ones(n)))
    found, lucky = find(loud), find(still)
    hit, luck = (any(abs(at - place) <= _NEAR for at in some) for some in (found, lucky))
    return hit, luck, bool(lucky)


def _by_values(history: SeriesWithErrors) -> Sequence[int]:
    return [point.index for point in examine(history.values).points]


def _by_errors(history: SeriesWithErrors) -> Sequence[int]:
    return [point.index for point in examine(history.values, spreads=history.errors).points]


def _by_kind(history: SeriesWithErrors) -> Sequence[int]:
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
