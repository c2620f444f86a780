"""How verbs are told which two sides to compare: the arguments and what they stand for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.analysis.verdict import Report
from hybridwatch.cli.judging import Chosen, both_sides, judge
from hybridwatch.errors import ComparisonError
from hybridwatch.record.run import Run
from hybridwatch.store import find_record, read_run

_MARK: Final = "#"

RECORDS_HELP: Final = """RECORD is a record file, the id of a run, or "latest"; ids and "latest" are
looked up in the results folder.
One RECORD of two builds compares these. Two are BASELINE and CONTENDER; of a record of two builds
add which side is meant: RECORD#0 or RECORD#1."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A record as named on the command line.

    Attributes:
        name: File, run id or ``latest``.
        side: Which build, ``None`` when not said.
    """

    name: str
    side: int | None


def takes_records(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the arguments ``records`` and ``results``."""
    verb = click.option(
        "--results",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("results"),
        show_default=True,
        help="Folder in which run ids are looked up.",
    )(verb)
    return click.argument("records", nargs=-1, required=True, metavar="RECORD [RECORD]")(verb)


def report_for(records: tuple[str, ...], results: Path) -> Report:
    """Compare what the command line names.

    Args:
        records: One or two words, each RECORD or RECORD#SIDE.
        results: Folder in which run ids are looked up.

    Raises:
        ComparisonError: The words do not name two sides.
        RecordError: A record cannot be found or read.
    """
    return judge(*sides_for(records, results), results).report


def sides_for(records: tuple[str, ...], results: Path) -> tuple[Chosen, Chosen]:
    """Find the two sides that the command line names; as ``report_for``."""
    if len(records) > 2:
        raise ComparisonError(f"expected one record or two, found {len(records)}")
    wanted = [_wanted(word) for word in records]
    paths = [find_record(results, one.name) for one in wanted]
    runs = [read_run(path) for path in paths]
    if len(runs) == 2:
        left, right = (
            Chosen(path, run, _side(run, one))
            for path, run, one in zip(paths, runs, wanted, strict=True)
        )
        return left, right
    if wanted[0].side is not None:
        raise ComparisonError(f"{records[0]}: one side alone cannot be compared; name a second")
    return both_sides(paths[0], runs[0])


def _wanted(word: str) -> _Wanted:
    name, mark, side = word.rpartition(_MARK)
    if not mark:
        return _Wanted(word, None)
    if side not in {"0", "1"}:
        raise ComparisonError(f"{word}: expected 0 or 1 after {_MARK}, found {side!r}")
    return _Wanted(name, int(side))


def _side(run: Run, wanted: _Wanted) -> int:
    if wanted.side is not None:
        return wanted.side
    if len(run.builds) == 1:
        return 0
    labels = ", ".join(f"{_MARK}{at} is {build.label}" for at, build in enumerate(run.builds))
    raise ComparisonError(
        f"{wanted.name}: holds {len(run.builds)} builds; say which one is meant: {labels}"
    )
