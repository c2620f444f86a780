"""Where the kill tables lie: one for each build, a line for each cell."""

from pathlib import Path
from typing import Final

from hybridwatch.records.store.files import append_entry, read_entries
from hybridwatch_lab.mutants.cell import MutantCell

FOLDER: Final = "mutants"


def table_file(results: Path, build: str) -> Path:
    """Where the table of a build is kept."""
    return results / FOLDER / f"{build}.jsonl"


def table_files(results: Path) -> list[Path]:
    """Find the tables in a results folder, by name."""
    return sorted((results / FOLDER).glob("*.jsonl"))


def read_cells(path: Path) -> list[MutantCell]:
    """Give the newest cell of each mutant and scenario (``read_entries``)."""
    return read_entries(path, MutantCell)


append_cell = append_entry
