"""Writes what a verb was asked to write."""

from contextlib import suppress
from pathlib import Path

from hybridwatch.errors import ExportError


def write_file(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all; folders on the way are made.

    Raises:
        ExportError: It cannot be written.
    """
    half = path.with_name(f".{path.name}.half")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(content)
        half.replace(path)
    except OSError as error:
        with suppress(OSError):
            half.unlink()
        raise ExportError(f"{path}: cannot be written: {error.strerror or error}") from error
