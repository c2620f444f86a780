"""The trials of one run: every metric of it, with each trial's value."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from statistics import median

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.reduction import reduce_side
from hybridwatch.analysis.subject import Subject, subjects_of
from hybridwatch.history.entry import Entry
from hybridwatch.metrics import Metric


@dataclass(frozen=True, slots=True)
class TrialValue:
    """One trial's value.

    ``side`` 0 is the baseline, ``nth`` counts its values from 0, ``value`` is in base units;
    ``revision`` is the Git commit of the hybridwatch that measured, or ``"unknown"``.
    """

    run_id: str
    started_at: datetime
    build: str
    side: int
    nth: int
    value: float
    record: str
    revision: str
    testbed: str


@dataclass(frozen=True, slots=True)
class SideMedian:
    """The median of one side."""

    build: str
    side: int
    value: float


@dataclass(frozen=True, slots=True)
class Trials:
    """One metric and statistic of one run; over runs it is a ``Series`` of the index.

    Attributes:
        statistic: What each trial was reduced to.
        started_at: When the run began, UTC.
        points: Every trial's value; for a proportion the share of each accuracy trial.
        medians: Of the points, the baseline's first; of a side without points there is none.
    """

    metric: Metric
    statistic: str
    started_at: datetime
    points: tuple[TrialValue, ...]
    medians: tuple[SideMedian, ...]


def load_trials(entry: Entry) -> list[Trials]:
    """Lay out every metric that a run measured, in the order of a report; one build is enough."""
    run = entry.run
    sides = [OneSide(run, side) for side in range(len(run.builds))]
    return [_trials(entry, sides, subject) for subject in subjects_of(sides[0], sides[-1])]


def _trials(entry: Entry, sides: Sequence[OneSide], subject: Subject) -> Trials:
    points = [
        _point(entry, side, nth, value)
        for side in sides
        for nth, value in enumerate(reduce_side(side, subject).by_trial.values())
    ]
    medians = [
        SideMedian(build, side, median(point.value for point in group))
        for (side, build), group in groupby(points, key=lambda point: (point.side, point.build))
    ]
    started_at = entry.run.started_at
    return Trials(subject.metric, subject.statistic, started_at, tuple(points), tuple(medians))


def _point(entry: Entry, side: OneSide, nth: int, value: float) -> TrialValue:
    run = entry.run
    return TrialValue(
        run_id=run.id,
        started_at=run.started_at,
        build=side.build.label,
        side=side.index,
        nth=nth,
        value=value,
        record=entry.path.name,
        revision=run.harness.revision or "unknown",
        testbed=run.testbed.id,
    )
