"""What a run says: a point for each metric, statistic and side."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.pair import compute_summary, reduce_side
from hybridwatch.analysis.subject import Subject, list_subjects
from hybridwatch.errors import ExportError
from hybridwatch.records.identity import EngineBuild
from hybridwatch.records.run import Run


@dataclass(frozen=True, slots=True)
class ExportedPoint:
    """One metric and statistic of one side of a run.

    Attributes:
        side: Index into its builds.
        values: By trial: its index, and the number it was reduced to. Base units.
        center: What a report shows of them.
    """

    run: Run
    side: int
    subject: Subject
    values: tuple[tuple[int, float], ...]
    center: float

    @property
    def build(self) -> EngineBuild:
        """What was measured."""
        return self.run.builds[self.side]

    @property
    def name(self) -> str:
        """Metric and statistic in one word, such as ``ttft_p99``."""
        return f"{self.subject.metric.id}_{self.subject.statistic}"

    @property
    def low_high(self) -> tuple[float, float]:
        """The smallest and the largest trial."""
        numbers = [value for _, value in self.values]
        return min(numbers), max(numbers)


def build_points(run: Run) -> Iterator[ExportedPoint]:
    """Lay out a run; metrics of which no trial has a value are left out."""
    for side in range(len(run.builds)):
        own = OneSide(run, side)
        for subject in list_subjects(own, own):
            reduced = reduce_side(own, subject)
            summary = compute_summary(subject.metric, reduced.values)
            if summary is not None:
                values = tuple(reduced.by_trial.items())
                yield ExportedPoint(run, side, subject, values, summary.center)


def render_time(run: Run) -> datetime:
    """Say where a run stands in a history: by its commit where that is known, else by its start."""
    committed = run.source.committed_at if run.source else None
    return committed or run.started_at


def one_each(runs: Iterable[Run]) -> list[ExportedPoint]:
    """Lay out runs for a form that knows no time: one value under each name.

    Raises:
        ExportError: Two runs are of one scenario, testbed and build.
    """
    found: dict[tuple[str, str, str, str], ExportedPoint] = {}
    for run in runs:
        for point in build_points(run):
            key = run.scenario.id, run.testbed.id, point.build.label, point.name
            other = found.setdefault(key, point)
            # The sides of an A/A run are one build, and the first speaks.
            if other.run is not run:
                raise ExportError(
                    f"{', '.join(key[:3])}: this form holds one run each, found {other.run.id} "
                    f"and {run.id}: name one, or latest"
                )
    return list(found.values())
