"""Two runs of one engine whose noise is not normal: false gates, and changes that are found.

Each metric has its own luck in each run: usual, with long tails, with a spike now and then, in one
of two modes, on a slow drift, or after a change of level in the history. Rates, so what is slower
is lower. Beside the shipped rule stands the one before it, five times the median step.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.run_noise import FEWEST_RUNS, learned_noise
from hybridwatch.analysis.verdict import Report
from hybridwatch.metrics import Metric
from hybridwatch_lab.calibration import figure
from hybridwatch_lab.calibration.figure import at_level, at_most, part, percent
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.reports import (
    RUN_METRICS,
    TRIALS,
    Learn,
    report_on_runs,
    unchanged,
)
from hybridwatch_lab.calibration.simulated import Array

_APART: Final = 0.06
"""Of the two modes, as logarithms."""
_SPIKE: Final = 0.1
"""The median spike; half of them are between 7 and 14 %."""
_BENCHMARKS: Final = (1, 9, 40)
"""Of real histories, all judged in one report."""
_FOUND: Final = 0.8
_NORMAL: Final = 1.4826
"""Median absolute deviation times this is the standard deviation of normal noise."""

Luck = Callable[[Generator, tuple[int, int]], Array]
"""How much slower each metric (a row) of each run (a column, oldest first) is, as logarithms."""


def _usual(rng: Generator, shape: tuple[int, int], spread: float) -> Array:
    return spread * rng.standard_normal(shape)


def _long_tails(rng: Generator, shape: tuple[int, int]) -> Array:
    return 0.02 * rng.standard_t(3, shape)


def _spikes(rng: Generator, shape: tuple[int, int], often: float) -> Array:
    size = _SPIKE * np.exp(0.5 * rng.standard_normal(shape))
    return np.where(rng.random(shape) < often, size, 0.0) + _usual(rng, shape, 0.01)


def _modes(rng: Generator, shape: tuple[int, int], slow: float) -> Array:
    return np.where(rng.random(shape) < slow, _APART, 0.0) + _usual(rng, shape, 0.005)


def _in_common(rng: Generator, shape: tuple[int, int], luck: Luck) -> Array:
    return luck(rng, (1, shape[1])) + _usual(rng, shape, 0.003)


def _drift(rng: Generator, shape: tuple[int, int], whole: float) -> Array:
    ways = rng.choice((-1.0, 1.0), (shape[0], 1))
    return ways * np.linspace(0, whole, shape[1]) + _usual(rng, shape, 0.02)


def _change_of_level(rng: Generator, shape: tuple[int, int], size: float) -> Array:
    """Between the third and the third last of the earlier runs, in each metric at its own place."""
    places = rng.integers(3, shape[1] - 4, (shape[0], 1))
    ways = rng.choice((-1.0, 1.0), (shape[0], 1))
    return ways * size * (np.arange(shape[1]) >= places) + _usual(rng, shape, 0.02)


_rare_spikes: Final = partial(_spikes, often=0.05)
WORLDS: Final[Mapping[str, Luck]] = MappingProxyType(
    {
        "normal, 1 %": partial(_usual, spread=0.01),
        "normal, 3 %": partial(_usual, spread=0.03),
        "normal, 5 %": partial(_usual, spread=0.05),
        "long tails (t3, 2 %)": _long_tails,
        "spikes, 1 run in 20": _rare_spikes,
        "spikes of all metrics at once": partial(_in_common, luck=_rare_spikes),
        "two modes, 50:50": partial(_modes, slow=0.5),
        "two modes, 80:20 slow": partial(_modes, slow=0.2),
        "two modes, 95:5 slow": partial(_modes, slow=0.05),
        "drift of 6 %": partial(_drift, whole=0.06),
        "drift of 20 %": partial(_drift, whole=0.2),
        "change of 6 % in the history": partial(_change_of_level, size=0.06),
        "change of 20 % in the history": partial(_change_of_level, size=0.2),
    }
)


def five_median_steps(series: Sequence[tuple[Metric, Sequence[float]]]) -> list[float | None]:
    """Give the noise of each metric by itself, by the median step between neighbours."""
    steps = (np.abs(np.diff(np.log(centers))) for _, centers in series)
    return [float(_NORMAL * np.median(some) / np.sqrt(2)) for some in steps]


_HEADER: Final = ("gates that fail", "found", "median step: gates that fail", "median step: found")


def of_unlike_runs(lab: Laboratory, learn: Learn = learned_noise) -> LabSection:
    """False gates of two runs by how runs scatter, and the smallest change that is found."""
    figures, rows = [], []
    shape = RUN_METRICS, FEWEST_RUNS + 2
    for world, luck in WORLDS.items():
        lab.on_progress(f"two runs, {world}")
        rng = lab.rng(f"unlike runs {world}")
        levels = (np.exp(-luck(rng, shape)) for _ in range(lab.times(1000, 60)))
        failed, cells = _judge_each(rng, levels, learn)
        rows.append((world, *cells))
        what = f"gates that fail, runs unchanged: {world}"
        figures.append(figure.share(f"unlike_runs.stopped.{world}", what, failed, at_most(0.05)))
    text = (
        f"Two runs of one engine, {RUN_METRICS} independent rates, {TRIALS[0]} trials each, and "
        f"{FEWEST_RUNS} earlier runs, the fewest that count. In each metric runs scatter normally; "
        "with Student's t of 3 degrees; by 1 % with a slow spike (lognormal, median 10 %); in two "
        "modes 6 % apart, by 0.5 % within; by 2 % about a drift over all runs, or after a lasting "
        f"change somewhere in the history. *Found* is the loss that takes a rate beyond its bound "
        f"{percent(_FOUND)} of the time. Beside it stands a rule that takes five times 1.4826 "
        "times the median step between neighbours over √2, each metric by itself."
    )
    table = LabTable("By how runs scatter", ("runs", *_HEADER), tuple(rows))
    return LabSection("Two runs whose noise is not normal", text, tuple(figures), (table,))


def of_real_runs(lab: Laboratory, histories: Mapping[str, Array]) -> LabSection:
    """The same of neighbours in real histories, with the runs before them."""
    figures, rows = [], []
    series, runs = list(histories.values()), FEWEST_RUNS + 2
    for count in (one for one in _BENCHMARKS if one <= len(series)):
        lab.on_progress(f"two runs, {count} real series")
        rng = lab.rng(f"real runs {count}")
        levels = (_stretches(rng, series, count, runs) for _ in range(lab.times(600, 25)))
        failed, cells = _judge_each(rng, levels, learned_noise)
        rows.append((f"{count}", *cells))
        what = f"gates that fail, real neighbours, {count} benchmarks"
        name = f"real_runs.stopped.benchmarks_{count}"
        # Of runs that are alike it spends its 1 in 21 whole, and real changes come on top.
        figures.append(figure.share(name, what, failed, at_level(0.05)))
    text = (
        f"Neighbours of {len(series)} real series of asv and the {FEWEST_RUNS} runs before them, "
        "series drawn at random for each report, times taken as rates; the rest as above. Real "
        "changes are still in them, so fewer gates fail falsely than are counted."
    )
    table = LabTable("By benchmarks in a report", ("benchmarks", *_HEADER), tuple(rows))
    return LabSection("Two runs of real histories", text, tuple(figures), (table,))


def _stretches(rng: Generator, series: Sequence[Array], count: int, runs: int) -> Array:
    picked = [series[at] for at in rng.choice(len(series), count, replace=False)]
    starts = [int(rng.integers(one.size - runs + 1)) for one in picked]
    return np.stack([1 / one[at : at + runs] for one, at in zip(picked, starts, strict=True)])


def _judge_each(
    rng: Generator, levels: Iterable[Array], learn: Learn
) -> tuple[list[bool], tuple[str, ...]]:
    """Say of each pair of runs whether the gate fails, and the cells of a row."""
    made = [unchanged(rng, some, TRIALS[0]) for some in levels]
    stopped, cells = [], []
    for rule in (learn, five_median_steps):
        judged = [report_on_runs(*one, rule) for one in made]
        stopped.append([not gate(report).passed for report in judged])
        found = float(np.quantile([_to_be_red(report) for report in judged], _FOUND))
        cells += [part(stopped[-1]), percent(round(found, 3))]
    return stopped[0], tuple(cells)


def _to_be_red(report: Report) -> float:
    """Give the loss that would have made the first rate worse than its bound allows."""
    first = report.comparisons[0]
    assert first.effect is not None  # noqa: S101 - both runs have values
    return 1 - (1 - first.relevance) / (1 + first.effect)
