"""How often the runs since which an alert's fault stands hold the first bad one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, median
from typing import Final

import numpy as np

from hybridwatch.analysis.calibration import figure
from hybridwatch.analysis.calibration.figure import at_least, part, percent
from hybridwatch.analysis.change_point.place import FEWEST, find_onset
from hybridwatch_lab.calibration import noise
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.noise import RecordedNoise

KINDS: Final = (
    RecordedNoise.GAUSSIAN,
    RecordedNoise.HEAVY,
    RecordedNoise.BIMODAL,
    RecordedNoise.AUTOCORRELATED,
)
"""Kinds of noise that an effect may have: shares have their own rule, and a drift has no level."""
_BEFORE: Final = (FEWEST, 10, 30, 60)
_SINCE: Final = (1, 3, 10)
_CHANGES: Final = (0.04, 0.06, 0.10)
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
    steps, silent = _steps(lab), _drifts(lab)
    text = (
        f"Effects of runs with a standard error of {percent(_ERROR)}, as {_TRIALS} trials a "
        f"side estimate it. A step of ±{', '.join(map(percent, _CHANGES))} comes after "
        f"{', '.join(map(str, _BEFORE))} runs; {', '.join(map(str, _SINCE))} are seen since. The "
        f"alert is opened by the first run at {_RED:g} standard errors; series without one are "
        "left out. The answer is to hold the first run on the new level. An alert blames no few "
        f"runs where it may have come slowly: drifts lead {', '.join(map(percent, _DRIFTS))} up or "
        f"down within {_DRIFT_RUNS} runs and are asked about at their end."
    )
    told = [one for one in steps if one.width is not None]
    figures = (
        figure.share(
            "history.onset.held",
            "runs that may be the first bad one hold it",
            [one.held for one in told],
            at_least(0.95),
        ),
        figure.share(
            "history.onset.told", "step that names runs", [one.width is not None for one in steps]
        ),
        figure.share("history.onset.drift", "drift that names no runs", silent),
    )
    return LabSection("Alerts, since when", text, figures, _tables(steps))


def _steps(lab: Laboratory) -> list[FoundOnset]:
    found: list[FoundOnset] = []
    for kind in KINDS:
        lab.tell(f"alerts: since when, {kind.value}")
        rng = lab.rng(f"onsets {kind.value}")
        for before, since, change in product(_BEFORE, _SINCE, _CHANGES):
            for _ in range(lab.times(60, 1)):
                n = before + since
                level = float(rng.choice((-change, change))) * (np.arange(n) >= before)
                values = level + _ERROR * noise.shape(kind, rng, n)
                errors = _estimated(rng, n)
                red = np.flatnonzero(np.abs(values[before:]) > _RED * errors[before:])
                if red.size:
                    place = find_onset(values, errors, before + int(red[0]))
                    width = None if place is None else place.last - place.first + 1
                    held = place is not None and place.first <= before <= place.last
                    found.append(FoundOnset(kind, before, since, change, width, held))
    return found


def _drifts(lab: Laboratory) -> list[bool]:
    """Whether each drift named no runs."""
    lab.tell("alerts: since when, drifts")
    rng = lab.rng("onsets drifts")
    silent: list[bool] = []
    for kind, change in product(KINDS, _DRIFTS):
        for _ in range(lab.times(100, 3)):
            n = 20 + _DRIFT_RUNS
            size = float(rng.choice((-change, change)))
            level = size * np.clip(np.arange(n) - 19, 0, None) / _DRIFT_RUNS
            values = level + _ERROR * noise.shape(kind, rng, n)
            silent.append(find_onset(values, _estimated(rng, n), n - 1) is None)
    return silent


def _estimated(rng: np.random.Generator, n: int) -> noise.Array:
    """Standard errors of runs as their trials estimate them."""
    return np.asarray(_ERROR * np.sqrt(rng.chisquare(_TRIALS - 1, n) / (_TRIALS - 1)))


def _tables(steps: Sequence[FoundOnset]) -> tuple[LabTable, ...]:
    groups = {
        "noise": {kind.value: [one for one in steps if one.noise is kind] for kind in KINDS},
        "runs before": {str(n): [one for one in steps if one.before == n] for n in _BEFORE},
        "runs since": {str(n): [one for one in steps if one.since == n] for n in _SINCE},
        "step": {percent(one): [s for s in steps if s.change == one] for one in _CHANGES},
    }
    header = ("held", "names runs", "median width", "mean width", "steps")
    return tuple(
        LabTable(
            f"Runs that may be the first bad one, by {name}",
            (name, *header),
            tuple((row, *_cells(some)) for row, some in rows.items() if some),
        )
        for name, rows in groups.items()
    )


def _cells(steps: Sequence[FoundOnset]) -> tuple[str, ...]:
    told = [one for one in steps if one.width is not None]
    widths = [one.width for one in told if one.width is not None]
    return (
        part([one.held for one in told]),
        part([one.width is not None for one in steps]),
        f"{median(widths):g}" if widths else "-",
        f"{fmean(widths):.1f}" if widths else "-",
        str(len(steps)),
    )
