"""Reports on equal engines, where there is nothing to find: one run of both, and two runs.

Of two runs each has a luck of its own in every metric, which its trials share. The noise from run
to run is learned from as many earlier runs as the rule asks for, and no more.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis import rank, signed_rank
from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.judge import FALSE_DISCOVERY_RATE, judge_together
from hybridwatch.analysis.pair import Blocks
from hybridwatch.analysis.report import Terms, build_report, report_between
from hybridwatch.analysis.run_noise import FEWEST_RUNS, REACH, learned_noise
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import BY_START, Comparison, Report, Summary, Verdict
from hybridwatch.metrics import Metric
from hybridwatch.records.run import Run
from hybridwatch_lab.calibration import figure, simulated
from hybridwatch_lab.calibration.figure import at_most, part, percent
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.simulated import (
    Array,
    RecordedNoise,
    SimulatedSession,
    rates_run,
    undecided,
)

Judge = Callable[[Run], Report]
"""From a run of two sides to its report."""
Control = Callable[[Sequence[Comparison], float], tuple[Comparison, ...]]
"""From what was found of each metric, and a level, to the verdicts of all."""

Learn = Callable[[Sequence[tuple[Metric, Sequence[float]]]], Sequence[float | None]]
"""From the series of all metrics of a report to the noise of each."""

METRICS: Final = 400
_BLOCKS: Final = (7, 15, 20)
_SPREAD: Final = 0.03
_SHARED: Final = 0.8
_MIXED_SPREADS: Final = (0.01, 0.03, 0.05)
_BOUND: Final = at_most(0.05)


def together(drafts: Sequence[Comparison], level: float) -> tuple[Comparison, ...]:
    """Judge all metrics of a report as it ships."""
    return judge_together(drafts, level)[0]


def of_equal_sides(lab: Laboratory, control: Control = together) -> LabSection:
    """Share of A/A reports with a red metric."""
    reports, metrics = lab.times(25, 2), lab.times(METRICS, 40)
    every: list[Report] = []
    rows = []
    for name, draw in _DRAWS.items():
        cells = [name]
        for pairs in _BLOCKS:
            lab.on_progress(f"A/A reports: {metrics} metrics, {pairs} pairs, {name}")
            rng, session = lab.rng(f"reports {pairs} {name}"), SimulatedSession(pairs)
            # The machine's noise is one series in time; the two sides take turns in it.
            drawn = (draw(rng, metrics, 2 * pairs) for _ in range(reports))
            split = ([whole[:, session.moments(side)] for side in range(2)] for whole in drawn)
            some = [report_on(sides, control=control) for sides in split]
            cells.append(f"{sum(map(_is_red, some))} of {reports}")
            every += some
        rows.append(tuple(cells))
    figures = (
        figure.share("report.any_red", "reports with any red", list(map(_is_red, every)), _BOUND),
        figure.share("report.changed", "reports with any change", list(map(_has_change, every))),
        figure.share(
            "report.gate", "reports that fail the gate", [not gate(r).passed for r in every], _BOUND
        ),
        figure.share(
            "report.same",
            "metrics called equivalent",
            [c.verdict is Verdict.EQUIVALENT for report in every for c in report.comparisons],
        ),
    )
    text = (
        f"Reports of {metrics} rates on two equal sides, interleaved A B B A: all lognormal at "
        f"CV {percent(_SPREAD)}; the same, but four fifths of the variance common to all metrics "
        "of a trial; or a mixture of the seven kinds of noise at CV "
        f"{', '.join(map(percent, _MIXED_SPREADS))}, each one series in time in which the sides "
        "take turns."
    )
    table = LabTable(
        "Reports with any red", ("noise", *(f"{n} pairs" for n in _BLOCKS)), tuple(rows)
    )
    return LabSection("Reports of equal sides", text, figures, (table,))


def report_on(
    sides: Sequence[Array],
    level: float = FALSE_DISCOVERY_RATE,
    control: Control = together,
    starts: Sequence[int] = (),
) -> Report:
    """Make the report of a session with any number of rates.

    Its verdicts are those of ``build_report`` on such a run. What no verdict hangs on is left out:
    the interval alone takes nine tenths of the time.

    Args:
        sides: Two arrays, a metric a row and a trial a column, six or more; positive.
        level: Below it a p-value counts; less than 0.05 for one of several looks.
        control: Judges the metrics together.
        starts: Of each trial the start of the engines that it was made on; none if it was one.
    """
    model = _model(sides[0].shape[1])
    blank = model.comparisons[0]
    drafts = [_draft(blank, left, right, starts) for left, right in zip(*sides, strict=True)]
    comparisons = control(drafts, level)
    return replace(model, comparisons=comparisons, tests=len(drafts))


@cache
def _model(pairs: int) -> Report:
    """Make a report of one metric about which nothing is said yet."""
    return undecided(build_report(rates_run([np.ones((1, pairs))] * 2, SimulatedSession(pairs))))


def _draft(blank: Comparison, left: Array, right: Array, starts: Sequence[int]) -> Comparison:
    blocks = Blocks(tuple(left.tolist()), tuple(right.tolist()), left.size, tuple(starts))
    by_start = blocks.start_ratios
    ratios = by_start or blocks.log_ratios
    return replace(
        blank,
        test=BY_START if by_start else blank.test,
        effect=signed_rank.typical_change(ratios),
        ratios=ratios,
        equivalence_p=signed_rank.equivalence_p(ratios, blank.metric.margin),
    )


def _is_red(report: Report) -> bool:
    return any(one.verdict is Verdict.REGRESSION for one in report.comparisons)


def _has_change(report: Report) -> bool:
    changes = {Verdict.REGRESSION, Verdict.IMPROVEMENT}
    return any(one.verdict in changes for one in report.comparisons)


def _lognormal(rng: Generator, metrics: int, trials: int) -> Array:
    return np.asarray(np.exp(_SPREAD * rng.standard_normal((metrics, trials))))


def _mixed(rng: Generator, metrics: int, trials: int) -> Array:
    kinds = itertools.cycle(itertools.product(RecordedNoise, _MIXED_SPREADS))
    return np.stack(
        [
            simulated.series(kind, simulated.shape(kind, rng, trials), cv)
            for kind, cv in itertools.islice(kinds, metrics)
        ]
    )


def _common(rng: Generator, metrics: int, trials: int) -> Array:
    shared, own = rng.standard_normal((1, trials)), rng.standard_normal((metrics, trials))
    return np.asarray(np.exp(_SPREAD * (np.sqrt(_SHARED) * shared + np.sqrt(1 - _SHARED) * own)))


_DRAWS: Final[Mapping[str, Callable[[Generator, int, int], Array]]] = MappingProxyType(
    {"lognormal": _lognormal, "lognormal, correlated": _common, "mixed": _mixed}
)


RUN_METRICS: Final = 9
BETWEEN: Final = (0.0, 0.03, 0.05)
TRIALS: Final = (7, 20)
_WITHIN: Final = 0.005


def of_two_runs(lab: Laboratory, learn: Learn = learned_noise) -> LabSection:
    """Share of gates that fail between two runs of one engine."""
    reports = lab.times(1000, 60)
    stopped: dict[bool, list[bool]] = {True: [], False: []}
    figures, rows = [], []
    for between in BETWEEN:
        cells = [percent(between)]
        for trials in TRIALS:
            lab.on_progress(f"two runs: {percent(between)} between them, {trials} trials")
            rng = lab.rng(f"two runs {between} {trials}")
            shape = RUN_METRICS, FEWEST_RUNS + 2
            levels = (np.exp(between * rng.standard_normal(shape)) for _ in range(reports))
            made = [unchanged(rng, some, trials) for some in levels]
            for known in (True, False):
                failed = [
                    not gate(report_on_runs(*one, learn=learn if known else None)).passed
                    for one in made
                ]
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
        f"Two runs of one engine, {RUN_METRICS} independent rates, trials of CV {percent(_WITHIN)} "
        "within a run and so much from run to run in each rate. The noise between runs is learned "
        f"from {FEWEST_RUNS} earlier runs, the fewest that count, and a change must exceed "
        f"{REACH:g} times that; or it was not learned, and nothing that was timed stops a gate."
    )
    header = ["between runs"]
    for trials in TRIALS:
        header += [f"{trials} trials, learned", f"{trials} trials, not learned"]
    table = LabTable("Gates that fail", tuple(header), tuple(rows))
    return LabSection("Two runs of one engine", text, tuple(figures), (table,))


def unchanged(rng: Generator, levels: Array, trials: int) -> tuple[Array, Array, Array]:
    """Draw two runs and what came before them.

    ``levels``: of each run, a metric a row, oldest first; the last two are compared.

    Returns:
        A metric a row: the trials of either run, and the medians of the runs before.
    """
    within = np.exp(_WITHIN * rng.standard_normal((*levels.shape, trials)))
    measured = levels[:, :, np.newaxis] * within
    return measured[:, -2], measured[:, -1], np.median(measured[:, :-2], axis=2)


def report_on_runs(
    old: Array, new: Array, earlier: Array, learn: Learn | None = learned_noise
) -> Report:
    """Make the report of two runs.

    Its verdicts are those of ``report_between``; intervals, which take nine tenths of the time,
    and doubts are left out.

    Args:
        old: Trials of the baseline, a metric a row.
        new: The same of the contender.
        earlier: One value per earlier run, a metric a row.
        learn: What they teach; ``None`` where they are not stored.
    """
    model = _runs_model()
    (blank,) = model.comparisons
    series = np.column_stack([earlier, np.median(old, axis=1)]).tolist()
    noises = learn([(blank.metric, some) for some in series]) if learn else [None] * len(series)
    drafts = [_runs_draft(blank, a, b, noise) for a, b, noise in zip(old, new, noises, strict=True)]
    comparisons, tests = judge_together(drafts)
    return replace(model, comparisons=comparisons, tests=tests)


@cache
def _runs_model() -> Report:
    """Make a report of one metric about which nothing is said yet."""
    run = rates_run([np.ones((1, TRIALS[0]))] * 2, SimulatedSession(TRIALS[0]))
    sides = OneSide(run, 0), OneSide(replace(run, id="11111111"), 0)
    return undecided(report_between(*sides, Terms()))


def _runs_draft(blank: Comparison, left: Array, right: Array, noise: float | None) -> Comparison:
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
