"""Reads ``docs/calibration.json``, which a program wrote."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hybridwatch.analysis.calibration.figure import Bound, Figure, FigureForm, FigurePromise
from hybridwatch.errors import ExportError

_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Calibration:
    """How often our rules are right, as ``docs/calibration.json`` tells it.

    Attributes:
        command: What made it.
        sections: Figures under the title of their question.
    """

    command: str
    sections: tuple[tuple[str, tuple[Figure, ...]], ...]

    @property
    def promised(self) -> tuple[Figure, ...]:
        """The figures that have a bound."""
        return tuple(f for _, figures in self.sections for f in figures if f.bound is not None)


def read_calibration(path: Path) -> Calibration | None:
    """Read what was measured of our own rules; ``None`` where there is no such file.

    Raises:
        ExportError: The file is there and does not hold what it should.
    """
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ExportError(f"{path}: expected a calibration as JSON: {error}") from None
    try:
        if document["schema_version"] != _SCHEMA:
            raise ExportError(
                f"{path}: schema version: expected {_SCHEMA}, found {document['schema_version']!r}"
            )
        sections = tuple(
            (str(section["title"]), tuple(map(_figure, section["figures"])))
            for section in document["sections"]
        )
        return Calibration(str(document["command"]), sections)
    except (KeyError, TypeError, ValueError) as error:
        raise ExportError(f"{path}: no calibration: {type(error).__name__}: {error}") from None


def _figure(entry: Mapping[str, Any]) -> Figure:
    limit = entry["bound"]
    return Figure(
        id=str(entry["id"]),
        what=str(entry["what"]),
        value=_number(entry["value"]),
        low=_number(entry["low"]),
        high=_number(entry["high"]),
        simulations=int(entry["simulations"]),
        form=FigureForm(entry["form"]),
        bound=None if limit is None else Bound(float(limit), FigurePromise(entry["bound_is"])),
    )


def _number(value: float | None) -> float:
    """Give a number; what could not be measured is written as null."""
    return math.nan if value is None else float(value)
