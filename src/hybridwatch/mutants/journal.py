"""The kill table on disk: a line for each cell, written as soon as the cell is measured."""

import os
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from hybridwatch.errors import RecordError
from hybridwatch.mutants.cell import Cell

FOLDER: Final = "mutants"


def table_file(results: Path, build: str) -> Path:
    """Where the table of a build is kept."""
    return results / FOLDER / f"{build}.jsonl"


def table_files(results: Path) -> list[Path]:
    """Find the tables in a results folder, by name."""
    return sorted((results / FOLDER).glob("*.jsonl"))


def read_cells(path: Path) -> list[Cell]:
    """Give the newest cell of each mutant and scenario, in the order in which they came.

    A last line that was cut short is left out; its cell is measured again.

    Raises:
        RecordError: The file cannot be read, or another line is no cell.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from None
    newest: dict[tuple[str, str, str], Cell] = {}
    for number, line in enumerate(lines, start=1):
        try:
            cell = Cell.model_validate_json(line)
        except ValidationError as error:
            if number == len(lines) and not line.endswith("\n"):
                break
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or "line"
            raise RecordError(f"{path}:{number}: {key}: {first['msg']}") from None
        newest.pop(cell.key, None)
        newest[cell.key] = cell
    return list(newest.values())


def append_cell(path: Path, cell: Cell) -> None:
    """Add a line, and return when it would survive a power cut.

    Raises:
        RecordError: The file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if file.tell() and _last_byte(path) != b"\n":
                file.truncate(path.read_bytes().rfind(b"\n") + 1)
            file.write(cell.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror or error}") from error


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)
