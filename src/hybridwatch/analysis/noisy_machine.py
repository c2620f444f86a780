"""Times of a machine that its own run calls noisy: the engine's processor time decides.

Neighbours stretch every time, and seven blocks do not average that out. What an engine worked they
stretch far less: waiting for a processor is no part of it. So the processor time is asked first, by
itself; another time or rate is a change only if the processor time changed the same way. Asked in a
fixed order, each test may use the whole level (Maurer, Hothorn and Lehmacher 1995), and since
either direction is news that must not come by chance, the level is that of both together.

What a machine without neighbours would show may be missed by this: an engine that waits longer and
works as much. The comparison then says that it was held back.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hybridwatch.analysis.machine_state import is_noisy_machine
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.pair import build_pair
from hybridwatch.analysis.sign_flips import BlockRow, Tail, flip_p
from hybridwatch.analysis.subject import Subject
from hybridwatch.analysis.verdict import Report, Verdict
from hybridwatch.metrics import Metric, find_metric
from hybridwatch.records.run import Run

DECIDES: Final = "engine_cpu_time"
"""The metric that neighbours stretch least."""

BLOCKS: Final = 20
"""Blocks that show a tenth more work on a noisy machine (lab: ``calibration.noisy_machine``)."""

_DIRECTIONS: Final = 2


def blocks_missing(run: Run) -> int:
    """Say how many more blocks a run of two builds needs; none where its machine was quiet.

    Only the machine is looked at, by its calibration kernel, whose spread stays as it is when the
    sides of a block change places. So the flips stay exact, however often this is asked.
    """
    baseline, contender = (OneSide(run, side) for side in range(2))
    metric = find_metric(DECIDES)
    pair = build_pair(Subject(metric, metric.kind.statistic), baseline, contender)
    if not is_noisy_machine(pair):
        return 0
    return max(0, BLOCKS - min(len(side.trials) for side in pair.sides))


def leaves_work_open(report: Report) -> bool:
    """Whether a report of a noisy machine cannot say if the engine works more."""
    return any(
        one.metric.id == DECIDES and one.restless and one.verdict is Verdict.INCONCLUSIVE
        for one in report.comparisons
    )


def noisy_p(metrics: Sequence[Metric], rows: Sequence[BlockRow]) -> tuple[tuple[Tail, Tail], ...]:
    """Test whether rows of a noisy machine became worse, and whether they became better.

    The rows are of one family. Each has p-values of being worse and of being better; without
    processor time among the rows none is below 1.
    """
    first = [at for at, metric in enumerate(metrics) if metric.id == DECIDES]
    then = [at for at, metric in enumerate(metrics) if metric.id != DECIDES]
    found: dict[int, tuple[Tail, Tail]] = {}
    bars = (1.0, 1.0)
    if first:
        tails = flip_p([rows[at] for at in first])
        found.update(zip(first, (_held_to(pair, (0.0, 0.0)) for pair in tails), strict=True))
        bars = (
            max(worse.adjusted for worse, _ in tails),
            max(better.adjusted for _, better in tails),
        )
    if then:
        tails = flip_p([rows[at] for at in then])
        found.update(zip(then, (_held_to(pair, bars) for pair in tails), strict=True))
    return tuple(found[at] for at in range(len(rows)))


def _held_to(tails: tuple[Tail, Tail], bars: tuple[float, float]) -> tuple[Tail, Tail]:
    worse, better = (
        replace(tail, adjusted=min(1.0, _DIRECTIONS * max(tail.adjusted, bar)))
        for tail, bar in zip(tails, bars, strict=True)
    )
    return worse, better
