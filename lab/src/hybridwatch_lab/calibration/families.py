"""``python -m hybridwatch_lab.calibration.families``: false alarms and power of families of tests.

Reports on an unchanged engine as a scenario gives them, twelve timed metrics and three tasks: each
family alone promises at most one red report in twenty. A command of its own, which leaves the
document of the calibration and its times as they are. Then one of nine timed metrics gets 5 %
slower, beside eight that do not: once with noise of its own in each metric, once with as much of it
in common as the metrics of recorded runs have.
"""

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.judge import judge_together
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.metrics import Kind
from hybridwatch.records.store import list_records, read_run
from hybridwatch_lab.calibration.accuracy import two_sides
from hybridwatch_lab.calibration.figure import at_most, percent, share
from hybridwatch_lab.calibration.laboratory import Laboratory
from hybridwatch_lab.calibration.reports import report_on
from hybridwatch_lab.calibration.simulated import answers_run

_FEWEST_METRICS: Final = 5
_FEWEST_BLOCKS: Final = 7
"""Below these the correlations of a run say little."""


def correlations_in(results: Path) -> Iterator[float]:
    """Give for each run of a store how strongly its times and rates move together.

    Metrics of one trial see the same steps. A family of metrics that move together costs each of
    them less power.

    Yields:
        The mean absolute correlation of two metrics' log ratios within blocks, from 0 to 1; nothing
        for runs of few blocks or metrics.
    """
    for record in list_records(results):
        run = read_run(record)
        if len(run.builds) != 2:
            continue  # compared with another record, block by block with none
        ratios = [one.ratios for one in build_report(run).comparisons if _is_timed(one)]
        blocks = max(map(len, ratios), default=0)
        rows = np.array([row for row in ratios if len(row) == blocks and np.ptp(row)])
        if len(rows) < _FEWEST_METRICS or blocks < _FEWEST_BLOCKS:
            continue
        pairs = np.corrcoef(rows)[np.triu_indices(len(rows), 1)]
        yield float(np.abs(pairs).mean())


def _is_timed(comparison: Comparison) -> bool:
    return bool(comparison.ratios) and comparison.metric.kind is not Kind.COUNT


TIMED: Final = 12
TASKS: Final = 3
PAIRS: Final = 10
DOCUMENTS: Final = 200
CHURN: Final = 0.06
SPREADS: Final = (0.03, 0.15)
"""Of a quiet machine, and of one on which noise alone often passes the margin."""
BOUND: Final = at_most(0.05)
NINE: Final = 9
BLOCKS: Final = (7, 10)
_SLOWER: Final = 1.05

RESULTS: Final = Path("results")
_SEED: Final = 1
_REPORTS: Final = 2000
_ANY: Final = "any"
_GATE: Final = "gate"


def unchanged(rng: Generator, spread: float) -> Report:
    """Simulate a report on two equal sides.

    ``spread``: standard deviation of the logarithm of each timed trial; metrics are independent,
    which gives the most false alarms.
    """
    answers = [_draft(rng) for _ in range(TASKS)]

    def control(drafts: Sequence[Comparison], level: float) -> tuple[Comparison, ...]:
        return judge_together([*answers, *drafts], level)[0]

    sides = [np.exp(spread * rng.standard_normal((TIMED, PAIRS))) for _ in range(2)]
    return report_on(sides, control=control)


def false_alarms(rng: Generator, spread: float, reports: int) -> Counter[str]:
    """Count the reports on unchanged engines that are red.

    Returns:
        How many are red in each family, in ``any``, and how many fail the ``gate``.
    """
    found: Counter[str] = Counter()
    for _ in range(reports):
        report = unchanged(rng, spread)
        red = {one.family for one in report.comparisons if one.verdict is Verdict.REGRESSION}
        found.update(red)
        found[_ANY] += bool(red)
        found[_GATE] += not gate(report).passed
    return found


@dataclass(frozen=True, slots=True)
class DetectionCounts:
    """What reports with one change among nine metrics say; counts of reports."""

    found: int
    others: int
    unchanged: int


def detection_of_one(rng: Generator, blocks: int, shared: float, reports: int) -> DetectionCounts:
    """Slow one of nine timed metrics down by 5 %, CV 3 % a side, and judge the report.

    ``shared``: share of the noise that all metrics of a trial have in common; 0 is the hardest.
    """
    found = others = unchanged_red = 0
    for _ in range(reports):
        sides = [
            np.exp(
                SPREADS[0]
                * (
                    np.sqrt(shared) * rng.standard_normal((1, blocks))
                    + np.sqrt(1 - shared) * rng.standard_normal((NINE, blocks))
                )
            )
            for _ in range(2)
        ]
        unchanged_red += any(_reds(report_on(sides)))
        sides[1][0] /= _SLOWER  # rates: less is worse
        first, *rest = _reds(report_on(sides))
        found, others = found + first, others + any(rest)
    return DetectionCounts(found, others, unchanged_red)


def _reds(report: Report) -> list[bool]:
    return [one.verdict is Verdict.REGRESSION for one in report.comparisons]


def main() -> int:
    """Parse the command line, simulate, print; 1 if a family is red too often."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_lab.calibration.families")
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--reports", type=int, default=_REPORTS)
    parser.add_argument("--results", type=Path, default=RESULTS, help="runs, for their noise")
    options = parser.parse_args()
    recorded = list(correlations_in(options.results))
    if not recorded:
        parser.error(f"--results: expected runs of seven blocks and more in {options.results}")
    in_common = round(float(np.median(recorded)), 2)
    sys.stdout.write(
        f"the timed metrics of {len(recorded)} runs in {options.results} have "
        f"{percent(in_common)} of their noise in common (median)\n"
    )
    lab = Laboratory(options.seed, quick=False, on_progress=lambda _: None)
    refuted = [_print_false_alarms(lab, spread, options.reports) for spread in SPREADS]
    for blocks, shared in itertools.product(BLOCKS, (0.0, in_common)):
        _print_detection(lab, blocks, shared, options.reports)
    return int(any(refuted))


def _print_false_alarms(lab: Laboratory, spread: float, reports: int) -> bool:
    """Print how many reports are red, and say whether that refutes the promise of a family."""
    found = false_alarms(lab.rng(f"families {spread}"), spread, reports)
    families = ("accuracy", "speed")
    listed = ", ".join(f"{name} {percent(found[name] / reports)}" for name in families)
    sys.stdout.write(
        f"{reports} reports, {TIMED} timed metrics at CV {percent(spread)}, {TASKS} tasks of "
        f"{DOCUMENTS} documents at {percent(CHURN)} churn: red in {listed}, in any family "
        f"{percent(found[_ANY] / reports)}; the gate fails {percent(found[_GATE] / reports)}\n"
    )
    outcomes = ([True] * found[name] + [False] * (reports - found[name]) for name in families)
    return any(share("red", "red", some, BOUND).refuted for some in outcomes)


def _print_detection(lab: Laboratory, blocks: int, shared: float, reports: int) -> None:
    detection = detection_of_one(lab.rng(f"one {blocks} {shared}"), blocks, shared, reports)
    counts = detection.found, detection.others, detection.unchanged
    found, others, unchanged_red = (percent(count / reports) for count in counts)
    sys.stdout.write(
        f"+5 % in one of {NINE} metrics, {blocks} blocks, {percent(shared)} of the noise in "
        f"common: found {found}, another one red {others}; unchanged, any red {unchanged_red}\n"
    )


def _draft(rng: Generator) -> Comparison:
    """A task about which nothing has been said yet."""
    (judged,) = build_report(answers_run(two_sides(rng, DOCUMENTS, CHURN, 0.0))).comparisons
    return replace(judged, verdict=Verdict.INCONCLUSIVE, p_adjusted=None, p_holm=None, doubts=())


if __name__ == "__main__":
    sys.exit(main())
