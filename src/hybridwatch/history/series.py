"""Histories: every metric of a scenario over its runs, with each trial's value in it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from statistics import median

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.reduction import reduce_side
from hybridwatch.analysis.subject import Subject, subjects_of
from hybridwatch.history.entry import Entry
from hybridwatch.metric import Kind, Metric
from hybridwatch.record.run import Run


@dataclass(frozen=True, slots=True)
class Point:
    """One trial's value.

    Attributes:
        run_id: Which run.
        position: The run's place in time among the series' runs, from 0.
        started_at: When that run began, UTC.
        build: Label of the engine build.
        side: 0 the baseline, 1 the contender.
        nth: Place among the side's values, from 0.
        value: Base units.
        record: File name of the record.
        revision: Git commit of the hybridwatch that measured, or ``"unknown"``.
        testbed: Its id.
    """

    run_id: str
    position: int
    started_at: datetime
    build: str
    side: int
    nth: int
    value: float
    record: str
    revision: str
    testbed: str


@dataclass(frozen=True, slots=True)
class Level:
    """The median of one side of one run."""

    position: int
    build: str
    side: int
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """One metric and statistic of one scenario, over runs in time.

    Attributes:
        metric: What was measured.
        statistic: What each trial was reduced to.
        runs: Start of each run, in order; a point's ``position`` is an index into it.
        points: Every trial's value; for a proportion the share of each accuracy trial.
        levels: Medians of the points, in order of time.
    """

    metric: Metric
    statistic: str
    runs: tuple[datetime, ...]
    points: tuple[Point, ...]
    levels: tuple[Level, ...]


def series_of(entries: Sequence[Entry]) -> list[Series]:
    """Lay out the history of every metric that some runs measured.

    Args:
        entries: Oldest first; only runs that may be laid beside each other.

    Returns:
        One series per metric and statistic, in the order of the newest report; single-build runs
        count too.
    """
    subjects = dict.fromkeys(
        subject for entry in reversed(entries) for subject in subjects_of(*_sides(entry.run))
    )
    return [_series(entries, subject) for subject in subjects]


def label_of(metric: Metric, statistic: str) -> str:
    """Name a series as ``sentence.name_of`` names its comparison."""
    return f"{metric.id} {statistic}" if metric.kind is Kind.TIME else metric.id


def levels_by_build(series: Series) -> dict[tuple[str, int], list[Level]]:
    """Group a series' medians into the lines that a figure draws, one per build and side.

    An A/A run has two sides of one label; they stay two lines.
    """
    lines: dict[tuple[str, int], list[Level]] = defaultdict(list)
    for level in series.levels:
        lines[(level.build, level.side)].append(level)
    return dict(lines)


def _series(entries: Sequence[Entry], subject: Subject) -> Series:
    values = {entry.path: [_values(side, subject) for side in _all(entry.run)] for entry in entries}
    holding = [entry for entry in entries if any(values[entry.path])]
    points = [
        _point(entry, position, side, nth, value)
        for position, entry in enumerate(holding)
        for side, found in enumerate(values[entry.path])
        for nth, value in enumerate(found)
    ]
    levels = [
        Level(position, build, side, median(point.value for point in group))
        for (position, side, build), group in groupby(
            points, key=lambda point: (point.position, point.side, point.build)
        )
    ]
    runs = tuple(entry.run.started_at for entry in holding)
    return Series(subject.metric, subject.statistic, runs, tuple(points), tuple(levels))


def _all(run: Run) -> list[OneSide]:
    return [OneSide(run, side) for side in range(len(run.builds))]


def _sides(run: Run) -> tuple[OneSide, OneSide]:
    return OneSide(run, 0), OneSide(run, len(run.builds) - 1)


def _values(side: OneSide, subject: Subject) -> Sequence[float]:
    if subject.metric.kind is not Kind.PROPORTION:
        return reduce_side(side, subject).values
    # A comparison looks at documents; what has a history is each trial's share of right ones.
    return [
        sum(sample.values) / len(sample.values)
        for trial in side.trials(subject.phase)
        for sample in trial.samples
        if sample.metric == subject.metric.id and sample.values
    ]


def _point(entry: Entry, position: int, side: int, nth: int, value: float) -> Point:
    run = entry.run
    return Point(
        run_id=run.id,
        position=position,
        started_at=run.started_at,
        build=run.builds[side].label,
        side=side,
        nth=nth,
        value=value,
        record=entry.path.name,
        revision=run.harness.revision or "unknown",
        testbed=run.testbed.id,
    )
