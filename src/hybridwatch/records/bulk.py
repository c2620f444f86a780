"""The file beside a record: JSON lines, each with something of one trial."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from hybridwatch.records.bounds import Client, Count, Digest, Place, Whole
from hybridwatch.records.completion import Completion
from hybridwatch.records.part import FileName, IfKnown, RecordPart
from hybridwatch.records.run import Answer, Curve, Trial


@dataclass(frozen=True, slots=True)
class BulkFile(RecordPart):
    """The reference from a record to the file beside it."""

    file: FileName
    sha256: Digest
    lines: Count


@dataclass(frozen=True, slots=True)
class BulkLine(RecordPart):
    """An answer, the completions or a client result of one trial.

    A client result that names a ``point`` is of that point of a curve.
    """

    trial: Place
    point: IfKnown[Whole] = None
    answer: IfKnown[Answer] = None
    client_result: IfKnown[Client] = None
    completions: IfKnown[Annotated[tuple[Completion, ...], Field(min_length=1)]] = None


class BulkOfTrial:
    """The lines of one trial, gathered."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.client_result: Mapping[str, Any] | None = None
        self.completions: tuple[Completion, ...] = ()
        self.of_points: dict[int, Mapping[str, Any]] = {}

    def add(self, line: BulkLine) -> None:
        """Take one line in.

        Raises:
            ValueError: The line holds none or several of its kinds, or a second client result or
                list of completions.
        """
        kinds = (line.answer, line.client_result, line.completions)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("expected one of answer, client_result, completions")
        if line.point is not None:
            self._add_point(line.point, line)
            return
        if line.answer is not None:
            self.answers.append(line.answer)
        elif line.completions is not None:
            if self.completions:
                raise ValueError(f"completions: a second list for trial {line.trial}")
            self.completions = line.completions
        elif self.client_result is not None:
            raise ValueError(f"client_result: a second one for trial {line.trial}")
        else:
            self.client_result = line.client_result

    def _add_point(self, point: int, line: BulkLine) -> None:
        if line.client_result is None:
            raise ValueError("expected client_result beside point")
        if point in self.of_points:
            raise ValueError(f"client_result: a second one for point {point} of trial {line.trial}")
        self.of_points[point] = line.client_result

    def beside(self, trial: Trial) -> Trial:
        """Give a trial of the record with its lines; ``ValueError`` for one of a missing point."""
        points = len(trial.curve.points) if trial.curve else 0
        if stray := [point for point in self.of_points if point >= points]:
            raise ValueError(
                f"client_result: expected a point less than {points} of trial {trial.index}, "
                f"found {stray[0]}"
            )
        return replace(
            trial,
            curve=self._with_results(trial.curve) if trial.curve else None,
            answers=tuple(self.answers),
            client_result=self.client_result,
            completions=self.completions,
        )

    def _with_results(self, curve: Curve) -> Curve:
        points = (
            replace(one, client_result=self.of_points.get(at))
            for at, one in enumerate(curve.points)
        )
        return replace(curve, points=tuple(points))
