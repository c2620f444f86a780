"""Segments on disk: folders of Parquet files, each made whole and never changed.

``<results>/.index/<rules>/<generation>-<token>/{records,runs,values,verdicts}.parquet``

There is no manifest and no lock. What an index holds is the union of its segments; where two hold
one record, the higher generation counts, then the later name, so that every process chooses alike.
A segment gets its name in one step when it is whole. Nothing waits for the disk: after a power
failure a segment may be cut short, which checksums show, and its records are read again.
"""

import contextlib
import os
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from hybridwatch.index.tables import RECORDS, SCHEMAS, Tables
from hybridwatch.store.atomic_file import hidden

INDEX: Final = ".index"

_ABANDONED_S: Final = 3600
"""A writer needs a second for a segment; a half one of this age has none any more."""

_UNUSED_S: Final = 7 * 86_400
"""An index by other rules is kept as long as somebody opens it: two versions may share a store."""


class DamagedError(Exception):
    """A segment is not what this version writes; caught where segments are gathered."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What lies in a folder.

    Attributes:
        path: The folder; ``None`` for one that could not be written.
        tables: All of it.
    """

    path: Path | None
    tables: Tables

    @property
    def generation(self) -> int:
        """How often its rows have been put together anew."""
        return int(self.path.name.partition("-")[0]) if self.path else 0

    @property
    def records(self) -> list[str]:
        """The records that it speaks of."""
        names: list[str] = self.tables[RECORDS]["record"].to_pylist()
        return names


def make_home(results: Path, rules: str) -> Path:
    """Make the folder of an index, and clear away what nobody needs.

    Args:
        results: The results folder.
        rules: As ``rules_digest`` gives it.

    Raises:
        OSError: It cannot be made.
    """
    root = results / INDEX
    home = root / rules
    home.mkdir(parents=True, exist_ok=True)
    os.utime(home)
    ignore = root / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")  # no repository that a store lies in should have to know
    _sweep(root, home)
    return home


def list_segments(home: Path) -> list[Path]:
    """List what lies in an index, what counts most first."""
    try:
        found = [path for path in home.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda path: path.name, reverse=True)


def write_segment(home: Path, tables: Tables, generation: int = 0) -> Segment:
    """Add a segment.

    Args:
        home: As ``make_home`` gives it.
        tables: What it shall hold.
        generation: Higher than that of every segment whose rows it repeats.

    Raises:
        OSError: It cannot be written. Nothing is left behind then.
    """
    half = home / hidden("half")
    try:
        half.mkdir()
        for name, table in tables.items():
            parquet.write_table(
                table, half / f"{name}.parquet", compression="zstd", write_page_checksum=True
            )
        path = half.rename(home / f"{generation:06d}-{secrets.token_hex(8)}")
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return Segment(path, tables)


def read_segment(path: Path) -> Segment:
    """Read a segment back.

    Raises:
        FileNotFoundError: Another process has put its rows elsewhere meanwhile.
        DamagedError: It is not whole, or was never one of ours.
    """
    try:
        tables = {name: _read_table(path, name) for name in SCHEMAS}
        segment = Segment(path, tables)
        _ = segment.generation
    except (OSError, pa.ArrowException, ValueError) as error:
        if not os.path.lexists(path):
            raise FileNotFoundError(path) from error
        raise DamagedError(f"{path}: {error}") from error
    return segment


def remove(path: Path) -> None:
    """Throw a segment away, or whatever lies there, at once for every reader."""
    gone = path.with_name(hidden("gone"))
    with contextlib.suppress(OSError):  # another process was faster, or nobody may
        path.rename(gone)
        if gone.is_dir() and not gone.is_symlink():
            shutil.rmtree(gone, ignore_errors=True)
        else:
            gone.unlink()


def _read_table(path: Path, name: str) -> pa.Table:
    table = parquet.read_table(path / f"{name}.parquet", page_checksum_verification=True)
    if not table.schema.equals(SCHEMAS[name]):
        raise ValueError(f"{name}: other columns than ours")
    return table


def _sweep(root: Path, home: Path) -> None:
    for path in home.glob(".*.tmp"):
        if _age_s(path) > _ABANDONED_S:
            shutil.rmtree(path, ignore_errors=True)
    for other in root.iterdir():
        if other.is_dir() and other != home and _age_s(other) > _UNUSED_S:
            shutil.rmtree(other, ignore_errors=True)


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
