"""Which files of a store were thrown away on purpose: ``pruned.jsonl``, a line for each."""

import json
import os
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError

PRUNED: Final = "pruned.jsonl"


def note_pruned(results: Path, file: str, digest: str, what: str, now: datetime) -> None:
    """Note a file that is about to be removed; the note reaches the disk first.

    Args:
        results: The results folder.
        file: Path below it.
        digest: SHA-256 of its bytes.
        what: Kind of the file.
        now: With a time zone.

    Raises:
        OSError: It cannot be written.
    """
    at = now.astimezone(UTC).isoformat(timespec="seconds")
    line = json.dumps({"file": file, "sha256": digest, "what": what, "at": at})
    with (results / PRUNED).open("a", encoding="utf-8") as notes:
        notes.write(f"{line}\n")
        notes.flush()
        os.fsync(notes.fileno())


def pruned_files(results: Path) -> frozenset[str]:
    """Name the files that were removed, by their paths below the results folder.

    Raises:
        RecordError: The notes cannot be read.
    """
    path = results / PRUNED
    try:
        status = path.stat()
    except OSError:
        return frozenset()
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, _written_ns: int, _size: int) -> frozenset[str]:
    try:
        # A process that was killed has left the beginning of a line at most.
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        return frozenset(json.loads(line)["file"] for line in lines if line)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from None
