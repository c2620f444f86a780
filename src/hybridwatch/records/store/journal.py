"""A table on disk: a line of JSON for each entry, written as soon as the entry is measured."""

import os
from collections.abc import Hashable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from hybridwatch.errors import RecordError


class JournalEntry(BaseModel):
    """What a line is; a later one of the same ``key`` takes its place."""

    @property
    def key(self) -> Hashable:
        """Which entry of the table it is."""
        raise NotImplementedError


_Entry = TypeVar("_Entry", bound=JournalEntry)


def read_entries(path: Path, kind: type[_Entry]) -> list[_Entry]:
    """Give the newest entry of each key, in the order in which they came.

    A last line that was cut short is left out; its entry is measured again. Any other line that is
    no entry is a ``RecordError``.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from None
    newest: dict[Hashable, _Entry] = {}
    for number, line in enumerate(lines, start=1):
        try:
            entry = kind.model_validate_json(line)
        except ValidationError as error:
            if number == len(lines) and not line.endswith("\n"):
                break
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or "line"
            raise RecordError(f"{path}:{number}: {key}: {first['msg']}") from None
        newest.pop(entry.key, None)
        newest[entry.key] = entry
    return list(newest.values())


def append_entry(path: Path, entry: JournalEntry) -> None:
    """Add a line, and return when it would survive a power cut."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if file.tell() and _last_byte(path) != b"\n":
                file.truncate(path.read_bytes().rfind(b"\n") + 1)
            file.write(entry.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror or error}") from error


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)
