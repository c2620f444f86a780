"""The trials of one run: every metric of it, with each trial's value."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.pair import reduce_side
from hybridwatch.analysis.subject import Subject, list_subjects
from hybridwatch.history.entry import Entry


@dataclass(frozen=True, slots=True)
class SideTrials:
    """One metric of one side.

    Attributes:
        side: 0 is the baseline.
        values: Of each trial, in base units, never empty; for a proportion the trial's share.
    """

    side: int
    build: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of the values."""
        return median(self.values)


@dataclass(frozen=True, slots=True)
class Trials:
    """One metric of one run; over runs it is a ``Series`` of the index.

    Attributes:
        sides: The baseline first; a side without a value is left out.
    """

    subject: Subject
    entry: Entry
    sides: tuple[SideTrials, ...]


def load_trials(entry: Entry) -> list[Trials]:
    """Lay out every metric that a run measured, in the order of a report; one build is enough."""
    run = entry.run
    sides = [OneSide(run, side) for side in range(len(run.builds))]
    return [
        Trials(subject, entry, tuple(_values(sides, subject)))
        for subject in list_subjects(sides[0], sides[-1])
    ]


def _values(sides: Iterable[OneSide], subject: Subject) -> Iterator[SideTrials]:
    for side in sides:
        if values := tuple(reduce_side(side, subject).by_trial.values()):
            yield SideTrials(side.index, side.build.label, values)
