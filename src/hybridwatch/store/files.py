"""Writing runs so that a reader never sees half of one.

The bulk comes first and the record last: the record is the commit point, and a bulk without a
record (a killed process) is seen by nobody. How one file is written whole is ``whole``'s business.
"""

import contextlib
from pathlib import Path

from hybridwatch.errors import RecordError
from hybridwatch.record.codec import encode
from hybridwatch.record.naming import BULK_SUFFIX, RECORD_SUFFIX
from hybridwatch.record.run import Run
from hybridwatch.store.layout import RECORDS, folder_of
from hybridwatch.store.whole import create, hidden, make_folder


def write_run(results: Path, run: Run) -> Path:
    """Add a run to the store.

    Args:
        results: The results folder; made when missing.
        run: The run.

    Returns:
        The path of its record. When this returns, the files have reached the disk.

    Raises:
        RecordError: The run cannot be encoded, the folder cannot be written, or the run is there
            already. Nothing of the run is left behind then.
    """
    encoded = encode(run)
    folder = folder_of(results, run)
    record = folder / (encoded.stem + RECORD_SUFFIX)
    bulk = folder / (encoded.stem + BULK_SUFFIX)
    make_folder(folder)
    made: list[Path] = []
    try:
        if encoded.bulk is not None:
            create(bulk, encoded.bulk, made)
        create(record, encoded.record, made)
    except FileExistsError as error:
        _remove(made)
        raise RecordError(
            f"{folder}: run {run.id} is there already; records never change"
        ) from error
    except OSError as error:
        _remove(made)
        raise RecordError(f"{folder}: cannot be written: {error.strerror or error}") from error
    except BaseException:
        _remove(made)  # an interrupt (Ctrl-C) must not leave half a run either
        raise
    return record


def check_writable(results: Path) -> None:
    """Find out before hours of measuring whether the outcome can be kept.

    Args:
        results: The results folder; made when missing.

    Raises:
        RecordError: A file could not be made or removed there.
    """
    folder = results / RECORDS
    make_folder(folder)
    probe = folder / hidden("writable")
    try:
        probe.write_bytes(b"hybridwatch")
        probe.unlink()
    except OSError as error:
        raise RecordError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _remove(made: list[Path]) -> None:
    for path in reversed(made):  # the record before the bulk it names
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
