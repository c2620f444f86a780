"""Writing runs so that a reader never sees half of one.

The bulk comes first and the record last: the record is the commit point, and a bulk without a
record (a killed process) is never read. How one file is written whole is ``whole``'s business.
"""

import contextlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from hybridwatch.errors import RecordError
from hybridwatch.records.codec import Encoded, encode
from hybridwatch.records.naming import BULK_SUFFIX, RECORD_SUFFIX
from hybridwatch.records.run import Run
from hybridwatch.records.store.layout import RECORDS, find_folder
from hybridwatch.records.store.mirror import adding, mirror_at
from hybridwatch.system.atomic_file import create_all, hidden, make_folder


def write_run(results: Path, run: Run) -> Path:
    """Add a run to the store and give the path of its record.

    When this returns, the files have reached the disk.

    Raises:
        RecordError: The run cannot be encoded, the folder cannot be written, or the run is there
            already. Nothing of the run is left behind then.
    """
    return write_all(results, [(run, encode(run))])[0]


def write_all(results: Path, runs: Sequence[tuple[Run, Encoded]]) -> list[Path]:
    """Add runs whose bytes are there already, all of them or none; as ``write_run``."""
    bulks: list[tuple[Path, bytes]] = []
    records: list[tuple[Path, bytes]] = []
    for run, encoded in runs:
        folder = find_folder(results, run)
        records.append((folder / (encoded.stem + RECORD_SUFFIX), encoded.record))
        if encoded.bulk is not None:
            bulks.append((folder / (encoded.stem + BULK_SUFFIX), encoded.bulk))
    for folder in {path.parent for path, _ in records}:
        make_folder(folder)
    made: list[Path] = []
    written = [path for path, _ in (*bulks, *records)]
    try:
        # An interrupt (Ctrl-C) must not leave half a run either.
        with adding(results, written), ExitStack() as on_error:
            on_error.callback(_remove, made)
            create_all(bulks, made)
            create_all(records, made)
            on_error.pop_all()
    except FileExistsError as error:
        names = " or ".join(run.id for run, _ in runs)
        raise RecordError(
            f"{records[0][0].parent}: run {names} is there already; records never change"
        ) from error
    except OSError as error:
        where = records[0][0].parent
        raise RecordError(f"{where}: cannot be written: {error.strerror or error}") from error
    return [path for path, _ in records]


def check_writable(results: Path) -> None:
    """Find out before hours of measuring if the outcome can be kept; ``RecordError`` if not."""
    folder = results / RECORDS
    make_folder(folder)
    probe = folder / hidden("writable")
    try:
        probe.write_bytes(b"hybridwatch")
        probe.unlink()
    except OSError as error:
        raise RecordError(f"{folder}: cannot be written: {error.strerror or error}") from error
    if mirror := mirror_at(results):
        mirror.check_writable()


def _remove(made: list[Path]) -> None:
    for path in reversed(made):  # the record before the bulk it names
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
