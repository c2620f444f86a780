"""Where a change is placed: the detector's places and drifts, and the runs that an alert blames."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, median
from typing import Final

import numpy as np

from hybridwatch.analysis.change_point import History
from hybridwatch.analysis.change_point.examine import examine
from hybridwatch.analysis.change_point.place import FEWEST, find_onset
from hybridwatch.metrics import Kind
from hybridwatch_lab.calibration import figure, simulated
from hybridwatch_lab.calibration.figure import Figure, at_least, at_most, part, percent
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.simulated import Array, RecordedNoise

KINDS: Final = tuple(
    kind for kind in RecordedNoise if kind not in {RecordedNoise.CONSTANT, RecordedNoise.DRIFT}
)
"""Kinds of noise about a level: without any there is no doubt, and a drift has no level."""
_LENGTHS: Final = (20, 50, 100, 200)
_SPREADS: Final = (0.01, 0.02, 0.05)
_CHANGES: Final = (0.02, 0.05, 0.10)
_EDGE: Final = 5
_NEAR: Final = 5
_PAR: Final = 0.55
"""Of the misplaced changes, how many may lie on one side."""
_DRIFT: Final = 0.08
_NIGHTS: Final = 40
_CV: Final = 0.01
_AROUND: Final = ((50, 0), (30, 20), (50, 20))
"""Nights before and behind a drift."""


@dataclass(frozen=True, slots=True)
class PlacedChange:
    """A change of ``size`` standard deviations that was found among ``n`` points.

    It was placed so many points ``late``, or early where that is negative; the range of ``width``
    places ``held`` the true one or not.
    """

    noise: RecordedNoise
    n: int
    size: float
    late: int
    width: int
    held: bool


@dataclass(frozen=True, slots=True)
class DriftOutcome:
    """The detector's outcome for one drift: whether it is named as one, without a step.

    The range of its beginning has ``width`` points if a drift is named; ``held`` says whether the
    true beginning is in it.
    """

    noise: RecordedNoise
    is_named: bool
    width: int | None
    held: bool


def of_places(lab: Laboratory) -> LabSection:
    """Coverage, width and bias of the places; drifts taken for steps, and steps for drifts."""
    placed, taken, still = _placed(lab)
    wandered = [
        one for kind in KINDS if kind is not RecordedNoise.BINOMIAL for one in _drifts(lab, kind)
    ]
    text = (
        f"Series of {', '.join(map(str, _LENGTHS))} points with one step of "
        f"±{', '.join(map(percent, _CHANGES))} at a random place, {_EDGE} points or more from "
        f"either end, CV {', '.join(map(percent, _SPREADS))} (binomial shares have their own). "
        "Counted is the change point nearest to the step, where any was found; its range of places "
        f"is to hold the true one. A step is called a drift if a drift is told around it and no "
        f"change point within {_NEAR} points; the same noise is shown without the step too. Drifts "
        f"lead {percent(_DRIFT)} up or down within {_NIGHTS} points at CV {percent(_CV)}, with "
        f"{', '.join(f'{a} points before and {b} behind' for a, b in _AROUND)} in turn."
    )
    figures = _figures(placed, taken, still, wandered)
    return LabSection("Histories, where it changed", text, figures, _tables(placed, wandered))


def _figures(
    placed: Sequence[PlacedChange],
    taken: Sequence[bool],
    still: Sequence[bool],
    wandered: Sequence[DriftOutcome],
) -> tuple[Figure, ...]:
    astray = [one.late < 0 for one in placed if one.late]
    return (
        figure.share(
            "history.place.held",
            "range of places holds the true one",
            [one.held for one in placed],
            at_least(0.95),
        ),
        figure.share("history.place.exact", "placed exactly", [not one.late for one in placed]),
        figure.share(
            "history.place.early", "misplaced changes placed early", astray, at_most(_PAR)
        ),
        figure.share(
            "history.place.late",
            "misplaced changes placed late",
            [not early for early in astray],
            at_most(_PAR),
        ),
        figure.share("history.drift.step", "step called a drift", taken, at_most(0.03)),
        figure.share("history.drift.null", "noise alone called a drift", still, at_most(0.02)),
        figure.share(
            "history.drift.told",
            "drift told as one, and no step",
            [one.is_named for one in wandered],
            at_least(0.9),
        ),
        figure.share(
            "history.drift.held",
            "range of its beginning holds the true one",
            [one.held for one in wandered if one.width is not None],
        ),
    )


def _placed(lab: Laboratory) -> tuple[list[PlacedChange], list[bool], list[bool]]:
    """Ask about steps.

    Returns:
        The changes that were found; of every series in which anything was found, whether the step
        was called a drift; of every series without its step, whether a drift was told.
    """
    placed: list[PlacedChange] = []
    taken: list[bool] = []
    still: list[bool] = []
    for kind in KINDS:
        lab.on_progress(f"histories: places, {kind.value}")
        rng = lab.rng(f"places {kind.value}")
        for n, cv, change in product(_LENGTHS, _SPREADS, _CHANGES):
            for _ in range(lab.times(40, 1)):
                drawn = simulated.shape(kind, rng, n)
                place = int(rng.integers(_EDGE, n - _EDGE + 1))
                level = simulated.step(n, place, float(rng.choice((-change, change))))
                found = _examined(kind, simulated.series(kind, drawn, cv, level))
                still.append(bool(_examined(kind, simulated.series(kind, drawn, cv)).drifts))
                if found.points or found.drifts:
                    taken.append(_is_drift(found, place))
                if found.points:
                    point = min(found.points, key=lambda one: abs(one.index - place))
                    late, width = point.index - place, point.last - point.first + 1
                    held = point.first <= place <= point.last
                    placed.append(PlacedChange(kind, n, change / cv, late, width, held))
    return placed, taken, still


def _is_drift(found: History, place: int) -> bool:
    near = any(abs(point.index - place) <= _NEAR for point in found.points)
    return not near and any(one.index <= place <= one.end for one in found.drifts)


def _examined(kind: RecordedNoise, values: Array) -> History:
    return examine(values, kind=Kind.PROPORTION if kind is RecordedNoise.BINOMIAL else None)


def _drifts(lab: Laboratory, kind: RecordedNoise) -> Iterator[DriftOutcome]:
    lab.on_progress(f"histories: drift, {kind.value}")
    rng = lab.rng(f"drift {kind.value}")
    for turn in range(lab.times(150, 3)):
        before, behind = _AROUND[turn % len(_AROUND)]
        n = before + _NIGHTS + behind
        size = float(rng.choice((-_DRIFT, _DRIFT)))
        level = 1 + size * np.clip((np.arange(n) - before + 1) / _NIGHTS, 0, 1)
        found = examine(simulated.series(kind, simulated.shape(kind, rng, n), _CV, level))
        drift = max(found.drifts, key=lambda one: abs(one.effect), default=None)
        yield DriftOutcome(
            kind,
            drift is not None and not found.points,
            None if drift is None else drift.last - drift.first + 1,
            drift is not None and drift.first <= before <= drift.last,
        )


def _tables(
    placed: Sequence[PlacedChange], wandered: Sequence[DriftOutcome]
) -> tuple[LabTable, ...]:
    header = ("held", "exact", "early", "late", "median width", "mean width", "changes")
    by_size = {
        "below 2": [one for one in placed if one.size < 2],
        "2 to 4": [one for one in placed if 2 <= one.size < 4],
        "4 and more": [one for one in placed if one.size >= 4],
    }
    tables = {
        "noise": {kind.value: [one for one in placed if one.noise is kind] for kind in KINDS},
        "points": {str(n): [one for one in placed if one.n == n] for n in _LENGTHS},
        "step, in CV": {
            name: [one for one in some if one.noise is not RecordedNoise.BINOMIAL]
            for name, some in by_size.items()
        },
    }
    return (
        *(
            LabTable(
                f"Places, by {name}",
                (name, *header),
                tuple((row, *_cells(some)) for row, some in rows.items() if some),
            )
            for name, rows in tables.items()
        ),
        LabTable(
            f"A drift of {percent(_DRIFT)} over {_NIGHTS} points",
            ("noise", "told, and no step", "beginning held", "median width"),
            tuple(
                _drift_row(kind, wandered) for kind in KINDS if kind is not RecordedNoise.BINOMIAL
            ),
        ),
    )


def _cells(placed: Sequence[PlacedChange]) -> tuple[str, ...]:
    widths = [one.width for one in placed]
    return (
        part([one.held for one in placed]),
        part([not one.late for one in placed]),
        part([one.late < 0 for one in placed]),
        part([one.late > 0 for one in placed]),
        f"{median(widths):g}",
        f"{fmean(widths):.1f}",
        str(len(placed)),
    )


def _drift_row(kind: RecordedNoise, wandered: Sequence[DriftOutcome]) -> tuple[str, ...]:
    some = [one for one in wandered if one.noise is kind]
    widths = [one.width for one in some if one.width is not None]
    return (
        kind.value,
        part([one.is_named for one in some]),
        part([one.held for one in some if one.width is not None]) if widths else "-",
        f"{median(widths):g}" if widths else "-",
    )


_ONSET_KINDS: Final = (
    RecordedNoise.GAUSSIAN,
    RecordedNoise.HEAVY,
    RecordedNoise.BIMODAL,
    RecordedNoise.AUTOCORRELATED,
)
"""Kinds of noise that an effect may have: shares have their own rule, and a drift has no level."""
_BEFORE: Final = (FEWEST, 10, 30, 60)
_SINCE: Final = (1, 3, 10)
_ONSET_CHANGES: Final = (0.04, 0.06, 0.10)
_ERROR: Final = 0.0075
_TRIALS: Final = 10
_RED: Final = 3.0
"""Standard errors from which a run counts as the red one that opened the alert."""
_DRIFTS: Final = (0.045, 0.08)
_DRIFT_RUNS: Final = 15


@dataclass(frozen=True, slots=True)
class FoundOnset:
    """What was answered to a step, with so many runs ``before`` and ``since`` it."""

    noise: RecordedNoise
    before: int
    since: int
    change: float
    width: int | None
    held: bool


def of_onsets(lab: Laboratory) -> LabSection:
    """Coverage and width of the runs that may be the first bad one, and drifts that blame none."""
    steps, silent = _steps(lab), _onset_drifts(lab)
    text = (
        f"Effects of runs with a standard error of {percent(_ERROR)}, as {_TRIALS} trials a "
        f"side estimate it. A step of ±{', '.join(map(percent, _ONSET_CHANGES))} comes after "
        f"{', '.join(map(str, _BEFORE))} runs; {', '.join(map(str, _SINCE))} are seen since. The "
        f"alert is opened by the first run at {_RED:g} standard errors; series without one are "
        "left out. The answer is to hold the first run on the new level. An alert blames no few "
        f"runs where it may have come slowly: drifts lead {', '.join(map(percent, _DRIFTS))} up or "
        f"down within {_DRIFT_RUNS} runs and are asked about at their end."
    )
    is_named = [one for one in steps if one.width is not None]
    figures = (
        figure.share(
            "history.onset.held",
            "runs that may be the first bad one hold it",
            [one.held for one in is_named],
            at_least(0.95),
        ),
        figure.share(
            "history.onset.told", "step that names runs", [one.width is not None for one in steps]
        ),
        figure.share("history.onset.drift", "drift that names no runs", silent),
    )
    return LabSection("Alerts, since when", text, figures, _onset_tables(steps))


def _steps(lab: Laboratory) -> list[FoundOnset]:
    found: list[FoundOnset] = []
    for kind in _ONSET_KINDS:
        lab.on_progress(f"alerts: since when, {kind.value}")
        rng = lab.rng(f"onsets {kind.value}")
        for before, since, change in product(_BEFORE, _SINCE, _ONSET_CHANGES):
            for _ in range(lab.times(60, 1)):
                n = before + since
                level = float(rng.choice((-change, change))) * (np.arange(n) >= before)
                values = level + _ERROR * simulated.shape(kind, rng, n)
                errors = _estimated(rng, n)
                red = np.flatnonzero(np.abs(values[before:]) > _RED * errors[before:])
                if red.size:
                    place = find_onset(values, errors, before + int(red[0]))
                    width = None if place is None else place.last - place.first + 1
                    held = place is not None and place.first <= before <= place.last
                    found.append(FoundOnset(kind, before, since, change, width, held))
    return found


def _onset_drifts(lab: Laboratory) -> list[bool]:
    """Whether each drift named no runs."""
    lab.on_progress("alerts: since when, drifts")
    rng = lab.rng("onsets drifts")
    silent: list[bool] = []
    for kind, change in product(_ONSET_KINDS, _DRIFTS):
        for _ in range(lab.times(100, 3)):
            n = 20 + _DRIFT_RUNS
            size = float(rng.choice((-change, change)))
            level = size * np.clip(np.arange(n) - 19, 0, None) / _DRIFT_RUNS
            values = level + _ERROR * simulated.shape(kind, rng, n)
            silent.append(find_onset(values, _estimated(rng, n), n - 1) is None)
    return silent


def _estimated(rng: np.random.Generator, n: int) -> simulated.Array:
    """Standard errors of runs as their trials estimate them."""
    return np.asarray(_ERROR * np.sqrt(rng.chisquare(_TRIALS - 1, n) / (_TRIALS - 1)))


def _onset_tables(steps: Sequence[FoundOnset]) -> tuple[LabTable, ...]:
    groups = {
        "noise": {kind.value: [one for one in steps if one.noise is kind] for kind in _ONSET_KINDS},
        "runs before": {str(n): [one for one in steps if one.before == n] for n in _BEFORE},
        "runs since": {str(n): [one for one in steps if one.since == n] for n in _SINCE},
        "step": {percent(one): [s for s in steps if s.change == one] for one in _ONSET_CHANGES},
    }
    header = ("held", "names runs", "median width", "mean width", "steps")
    return tuple(
        LabTable(
            f"Runs that may be the first bad one, by {name}",
            (name, *header),
            tuple((row, *_onset_cells(some)) for row, some in rows.items() if some),
        )
        for name, rows in groups.items()
    )


def _onset_cells(steps: Sequence[FoundOnset]) -> tuple[str, ...]:
    is_named = [one for one in steps if one.width is not None]
    widths = [one.width for one in is_named if one.width is not None]
    return (
        part([one.held for one in is_named]),
        part([one.width is not None for one in steps]),
        f"{median(widths):g}" if widths else "-",
        f"{fmean(widths):.1f}" if widths else "-",
        str(len(steps)),
    )
