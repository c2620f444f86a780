"""Files of other tools as ingest reads them, and what stands in the runs that come of them."""

from pathlib import Path
from typing import Any

from hybridwatch.formats.read import read as formats
from hybridwatch.formats.read.document import parse
from hybridwatch.formats.read.foreign import ForeignInput
from hybridwatch.records.run import Run
from tests.shipped import FOREIGN

MADE_UP = FOREIGN / "made-up"


def read(path: Path, given: ForeignInput | None = None) -> list[Run]:
    return formats.read_foreign(parse(path, path.read_bytes()), given or ForeignInput())


def only(path: Path, given: ForeignInput | None = None) -> Run:
    (run,) = read(path, given)
    return run


def companion(path: Path) -> str | None:
    return formats.companion(parse(path, path.read_bytes()))


def samples(run: Run, trial: int = 0) -> dict[str, tuple[float, ...]]:
    return {
        f"{sample.metric} {sample.statistic or ''}".strip(): sample.values
        for sample in run.trials[trial].samples
    }


def unknown(run: Run) -> tuple[str, ...]:
    assert run.source is not None
    return run.source.unknown


GONE = "(gone)"
"""Instead of a value: what is taken out."""


def put_at(told: Any, changes: dict[str, Any]) -> None:
    """Change JSON at paths such as ``benchmarks/0/metrics``."""
    for path, value in changes.items():
        where, *way = told, *(int(part) if part.isdigit() else part for part in path.split("/"))
        for part in way[:-1]:
            where = where[part]
        if value == GONE:
            del where[way[-1]]
        else:
            where[way[-1]] = value
