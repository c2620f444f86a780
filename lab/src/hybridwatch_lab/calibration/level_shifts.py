"""``python -m hybridwatch_lab.calibration.level_shifts FOLDER``: F1 on series that people marked.

``FOLDER`` is a checkout of github.com/alan-turing-institute/TCPD, in which five people marked the
changes of each series. No rule was tuned on it. F1 is that of van den Burg and Williams, "An
Evaluation of Change Point Detection Algorithms", arXiv:2003.06222: precision against all marks,
recall averaged over people, 5 points off at most, and a change at point 0 that all find.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from hybridwatch.analysis.change_point import HistoryState
from hybridwatch.analysis.change_point.examine import examine
from hybridwatch.errors import HistoryError
from hybridwatch_lab.calibration.rivals import Detector, divisive, steps_of_asv
from hybridwatch_lab.calibration.simulated import Array

SERIES: Final = ("nile", *(f"quality_control_{number}" for number in range(1, 6)), "well_log")
"""Of TCPD's, those whose level shifts as that of a benchmark does."""
MARGIN: Final = 5

Marks = Mapping[str, Sequence[int]]
"""First points of new levels, by who marked them."""
Finder = Callable[[Array], Sequence[int]]


def confirmed(values: Array) -> Sequence[int]:
    """Change points that the detector stands by, and no drift: the F1 that counts."""
    return [one.index for one in examine(values).points if one.state is HistoryState.CONFIRMED]


def suspected_too(values: Array) -> Sequence[int]:
    """All change points."""
    return [one.index for one in examine(values).points]


def drifts_too(values: Array) -> Sequence[int]:
    """Confirmed change points, and the middle of each drift as one more."""
    middles = [(one.index + one.end) // 2 for one in examine(values).drifts]
    return [*confirmed(values), *middles]


def as_rival(rule: Detector) -> Finder:
    """All that a rule in use elsewhere claims."""
    return lambda values: [one.index for one in rule(values)]


FINDERS: Final[Mapping[str, Finder]] = MappingProxyType(
    {
        "confirmed": confirmed,
        "suspected too": suspected_too,
        "drifts too": drifts_too,
        "Otava, t at 0.001": as_rival(divisive),
        "asv publish": as_rival(steps_of_asv),
        "nothing": lambda _: (),
    }
)


def compute_f1(marks: Marks, found: Sequence[int]) -> float:
    """Hold what was found against what each person marked."""
    claims = {0, *found}
    people = [{0, *own} for own in marks.values()]
    precision = _count_hits(set[int]().union(*people), claims) / len(claims)
    recall = float(np.mean([_count_hits(own, claims) / len(own) for own in people]))
    return 2 * precision * recall / (precision + recall)


def _count_hits(marked: set[int], claims: set[int]) -> int:
    """Marks with a claim near them; each claim serves one mark."""
    left = set(claims)
    hits = 0
    for mark in sorted(marked):
        nearest = min(left, key=lambda claim: abs(claim - mark), default=None)
        if nearest is not None and abs(nearest - mark) <= MARGIN:
            left.remove(nearest)
            hits += 1
    return hits


def read_series(folder: Path) -> Iterator[tuple[str, Array, Marks]]:
    """Give each series with its marks, in the order of ``SERIES``."""
    try:
        marks = json.loads((folder / "annotations.json").read_text(encoding="utf-8"))
        for name in SERIES:
            file = folder / "datasets" / name / f"{name}.json"
            (series,) = json.loads(file.read_text(encoding="utf-8"))["series"]
            yield name, np.asarray(series["raw"], dtype=np.float64), marks[name]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HistoryError(f"{folder}: expected a checkout of TCPD: {error!r}") from error


def write_table(series: Sequence[tuple[str, Array, Marks]]) -> str:
    """F1 of each finder in each series, and its mean, as Markdown."""
    rows = [f"| series | {' | '.join(FINDERS)} |", "|---|" + "--:|" * len(FINDERS)]
    scores = [
        [compute_f1(marks, find(values)) for find in FINDERS.values()]
        for _, values, marks in series
    ]
    names = [f"`{name}`" for name, *_ in series]
    for name, row in zip((*names, "mean"), (*scores, np.mean(scores, axis=0)), strict=True):
        rows.append(f"| {name} | {' | '.join(f'{score:.3f}' for score in row)} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Parse the command line and print the table; 2 if the folder is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="checkout of TCPD")
    try:
        sys.stdout.write(write_table(list(read_series(parser.parse_args().folder))))
    except HistoryError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
