"""Two runs of an unchanged engine: how often does a gate stop, whatever lies between runs?

Each run has a luck of its own in every metric, which its trials share. The noise from run to run is
learned from as many earlier runs as the rule asks for, and no more.
"""

from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis import rank
from hybridwatch.analysis.calibration import figure
from hybridwatch.analysis.calibration.figure import at_most, part, percent
from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.judge import judge_together
from hybridwatch.analysis.noise import FEWEST_RUNS, REACH, learned_noise
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.report import Terms, report_between
from hybridwatch.analysis.verdict import Comparison, Report, Summary
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.noise import Array
from hybridwatch_lab.calibration.simulated import SimulatedSession, rates_run, undecided

METRICS: Final = 9
BETWEEN: Final = (0.0, 0.03, 0.05)
TRIALS: Final = (7, 20)
_WITHIN: Final = 0.005
_BOUND: Final = at_most(0.05)


def of_two_runs(lab: Laboratory) -> LabSection:
    """Share of gates that fail between two runs of one engine."""
    reports = lab.times(1000, 60)
    stopped: dict[bool, list[bool]] = {True: [], False: []}
    figures, rows = [], []
    for between in BETWEEN:
        cells = [percent(between)]
        for trials in TRIALS:
            lab.tell(f"two runs: {percent(between)} between them, {trials} trials")
            rng = lab.rng(f"two runs {between} {trials}")
            made = [unchanged(rng, between, trials) for _ in range(reports)]
            for known in (True, False):
                failed = [not gate(report_on(*one, known=known)).passed for one in made]
                stopped[known] += failed
                cells.append(part(failed))
                if known:
                    figures.append(
                        figure.share(
                            f"two_runs.stopped.noise_{between:g}.trials_{trials}",
                            f"gates that fail, {percent(between)} between runs, {trials} trials",
                            failed,
                            _BOUND,
                        )
                    )
        rows.append(tuple(cells))
    figures.append(
        figure.share(
            "two_runs.stopped.nothing_learned",
            "gates that fail where no noise was learned",
            stopped[False],
            _BOUND,
        )
    )
    text = (
        f"Two runs of one engine, {METRICS} independent rates, trials of CV {percent(_WITHIN)} "
        "within a run and so much from run to run in each rate. The noise between runs is learned "
        f"from {FEWEST_RUNS} earlier runs, the fewest that count, and a change must exceed "
        f"{REACH:g} times that; or it was not learned, and nothing that was timed stops a gate."
    )
    header = ["between runs"]
    for trials in TRIALS:
        header += [f"{trials} trials, learned", f"{trials} trials, not learned"]
    table = LabTable("Gates that fail", tuple(header), tuple(rows))
    return LabSection("Two runs of one engine", text, tuple(figures), (table,))


def unchanged(rng: Generator, between: float, trials: int) -> tuple[Array, Array, Array]:
    """Draw two runs and what came before them.

    Args:
        rng: Where from.
        between: Standard deviation of a metric's logarithm from run to run.
        trials: Of a run.

    Returns:
        A metric a row: the trials of either run, and the levels of the runs before.
    """
    levels = np.exp(between * rng.standard_normal((METRICS, FEWEST_RUNS + 2)))
    within = np.exp(_WITHIN * rng.standard_normal((2, METRICS, trials)))
    earlier = np.exp(_WITHIN * rng.standard_normal((METRICS, FEWEST_RUNS, trials)))
    centers = levels[:, 2:] * np.median(earlier, axis=2)
    return levels[:, :1] * within[0], levels[:, 1:2] * within[1], centers


def report_on(old: Array, new: Array, earlier: Array, *, known: bool = True) -> Report:
    """Make the report of two runs.

    Its verdicts are those of ``report_between``; intervals, which take nine tenths of the time,
    and doubts are left out.

    Args:
        old: Trials of the baseline, a metric a row.
        new: The same of the contender.
        earlier: One value per earlier run, a metric a row.
        known: Whether the earlier runs are stored.
    """
    model = _model()
    (blank,) = model.comparisons
    drafts = [
        _draft(blank, a, b, learned_noise(before.tolist()) if known else None)
        for a, b, before in zip(old, new, earlier, strict=True)
    ]
    comparisons, tests = judge_together(drafts)
    return replace(model, comparisons=comparisons, tests=tests)


@cache
def _model() -> Report:
    """Make a report of one metric about which nothing is said yet."""
    run = rates_run([np.ones((1, TRIALS[0]))] * 2, SimulatedSession(TRIALS[0]))
    sides = OneSide(run, 0), OneSide(replace(run, id="11111111"), 0)
    return undecided(report_between(*sides, Terms()))


def _draft(blank: Comparison, left: Array, right: Array, noise: float | None) -> Comparison:
    old, new = left.tolist(), right.tolist()
    metric = blank.metric
    return replace(
        blank,
        effect=float(np.median(new) / np.median(old) - 1),
        baseline=_summary(old),
        contender=_summary(new),
        p_value=rank.rank_p(old, new),
        equivalence_p=rank.equivalence_p(old, new, metric.margin),
        relevance=metric.bound if noise is None else max(metric.bound, REACH * noise),
        noise=noise,
        of_unknown_runs=noise is None,
    )


def _summary(values: list[float]) -> Summary:
    return Summary(float(np.median(values)), tuple(values))
