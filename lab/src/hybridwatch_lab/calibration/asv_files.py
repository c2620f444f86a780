"""Two files of asv that kept no samples: how often their judgement is wrong.

What one run's interval says of the next run is nothing, so real histories say it: neighbours of a
history are two runs, mostly of code that did not touch the benchmark. Real changes among them count
as false alarms here, so the true rates are lower.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Final

import numpy as np
from asv_runner.statistics import compute_stats
from numpy.random import Generator

from hybridwatch.analysis.judge import FALSE_DISCOVERY_RATE
from hybridwatch.analysis.rank import change_between
from hybridwatch.analysis.report import report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Interval, Report, Verdict
from hybridwatch.records.run import KEPT_CONFIDENCE, Run, Sample
from hybridwatch_lab.calibration import figure
from hybridwatch_lab.calibration.figure import Figure, at_least, at_most, part, percent
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.simulated import Array, SimulatedSession, rates_run

_BENCHMARKS: Final = (1, 14, 40)
"""Of a class, all judged in one report."""
_WITHIN: Final = 0.01
"""How far a median's interval reaches to either side."""
_CHANGES: Final = (0.0, 0.25, 0.5, 1.0)
_SAMPLES: Final = (4, 10, 20, 60)
_SPREADS: Final = (0.02, 0.2)
_REACH: Final = 10
"""Runs that two files lie apart at most."""


def of_asv_files(lab: Laboratory, histories: Mapping[str, Array]) -> LabSection:
    """Report neighbours of real histories as two files, unchanged and with one benchmark slower."""
    lab.on_progress("asv files without samples")
    rng, reports = lab.rng("asv files"), lab.times(500, 25)
    figures: list[Figure] = []
    rows = []
    for count in _BENCHMARKS:
        cells = [f"{count}"]
        for change in _CHANGES:
            made = [_report(histories, count, change, rng) for _ in range(reports)]
            found = [report.comparisons[0].verdict is Verdict.REGRESSION for report in made]
            verdicts = [{one.verdict for one in report.comparisons} for report in made]
            red = [Verdict.REGRESSION in some for some in verdicts]
            cells.append(part(found if change else red))
            if change == 0.0:
                what = f"two asv files, {count} benchmarks, real neighbours: any red"
                name = f"asv_files.any_red.benchmarks_{count}"
                figures.append(figure.share(name, what, red, at_most(FALSE_DISCOVERY_RATE)))
            if count == 1 and change == _CHANGES[-1]:
                what = f"two asv files, +{percent(change)}: red"
                figures.append(figure.share("asv_files.found", what, found, at_least(0.9)))
        rows.append(tuple(cells))
    header = ("benchmarks", "as they are: any red", *(f"+{percent(c)}: red" for c in _CHANGES[1:]))
    text = (
        f"Two runs of {len(histories)} real series, up to {_REACH} runs apart, each value with an "
        f"interval of {percent(_WITHIN)} to either side, benchmarks of one report drawn at random; "
        "as they are, or the first one slower. Real changes are still in them, so fewer reds are "
        "false than are counted. The second table is about one run alone: samples drawn twice from "
        "one lognormal law, the interval that asv makes of them, and the test with no noise "
        "between runs, at 5 %."
    )
    real = LabTable("Two files", header, tuple(rows))
    title = "Files of asv without samples"
    return LabSection(title, text, tuple(figures), (real, _of_one_run(lab)))


def _report(histories: Mapping[str, Array], count: int, change: float, rng: Generator) -> Report:
    series = list(histories.values())
    picked = rng.choice(len(series), count)
    sides = []
    for at in picked:
        first = int(rng.integers(len(series[at]) - _REACH))
        second = first + int(rng.integers(1, _REACH + 1))
        sides.append((series[at][first], series[at][second]))
    old, new = np.array(sides).T
    new[0] *= 1 + change
    baseline, contender = _file(tuple(old.tolist()), "1"), _file(tuple(new.tolist()), "2")
    return report_between(OneSide(baseline, 0), OneSide(contender, 0))


def _file(values: tuple[float, ...], name: str) -> Run:
    samples = tuple(
        Sample(
            f"asv_time.time_{at}",
            (value,),
            interval=(value * (1 - _WITHIN), value * (1 + _WITHIN)),
        )
        for at, value in enumerate(values)
    )
    run = _blank()
    return replace(run, id=name * 8, trials=(replace(run.trials[0], samples=samples),))


@cache
def _blank() -> Run:
    run = rates_run([np.ones((1, 1))] * 2, SimulatedSession(1))
    return replace(run, builds=run.builds[:1], trials=run.trials[:1])


def _of_one_run(lab: Laboratory) -> LabTable:
    rng, times = lab.rng("asv intervals"), lab.times(2000, 40)
    rows = []
    for samples, spread in product(_SAMPLES, _SPREADS):
        told = [_differs(rng, samples, spread) for _ in range(times)]
        rows.append((f"{samples}", percent(spread), part(told)))
    return LabTable("One run twice", ("samples", "CV", "called different"), tuple(rows))


def _differs(rng: Generator, samples: int, spread: float) -> bool:
    medians, intervals = [], []
    for _ in range(2):
        center, stats = compute_stats(np.exp(spread * rng.standard_normal(samples)).tolist(), 1)
        medians.append(center)
        intervals.append(Interval(stats["ci_99_a"], stats["ci_99_b"], KEPT_CONFIDENCE))
    if min(one.low for one in intervals) <= 0:
        return False
    found = change_between(medians[0], medians[1], (intervals[0], intervals[1]), 0.0)
    return found.p_value < FALSE_DISCOVERY_RATE
