"""Small stores for the tests of the database."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from hybridwatch.database.queries import Index, open_index
from hybridwatch.records.store import write_run
from tests.builders import STARTED, a_run, noisy


def add(results: Path, number: int, *, slower: float = 1.0, **changes: Any) -> Path:
    """Store the run of a night; later numbers are later nights."""
    run = a_run(
        {
            "ttft": noisy(0.1, seed=number),
            "contract.padded_rows_prefilling": (0.0, 0.0),
            "accuracy.recall": "1110",
        },
        {
            "ttft": noisy(0.1 * slower, seed=number + 1000),
            "contract.padded_rows_prefilling": (0.0, 0.0),
            "accuracy.recall": "1111",
        },
        id=f"{number:08x}",
        started_at=STARTED + timedelta(days=number),
        **changes,
    )
    return write_run(results, run)


@dataclass
class Opened:
    """An index, and what was said while it was brought up to date."""

    index: Index
    said: list[tuple[int, int]] = field(default_factory=list)

    @property
    def read(self) -> int:
        """How many records were read."""
        return self.said[-1][0]

    @property
    def runs(self) -> set[str]:
        return set(self.index.runs()["run"])


def opened(results: Path, *, rebuild: bool = False) -> Opened:
    said: list[tuple[int, int]] = []
    index = open_index(results, lambda *step: said.append(step), rebuild=rebuild)
    return Opened(index, said)
