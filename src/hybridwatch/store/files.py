"""Writing runs so that a reader never sees half of one.

Each file is made under a hidden name in its final folder, flushed to the disk, and then given its
name in one step. The bulk comes first and the record last: the record is the commit point, and a
bulk without a record (a killed process) is seen by nobody.
"""

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError
from hybridwatch.record.codec import encode
from hybridwatch.record.naming import BULK_SUFFIX, RECORD_SUFFIX
from hybridwatch.record.run import Run
from hybridwatch.store.layout import RECORDS, folder_of

_NO_LINKS: Final = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV}
"""How file systems without hard links refuse one."""


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
    _make_folder(folder)
    made: list[Path] = []
    try:
        if encoded.bulk is not None:
            _create(bulk, encoded.bulk, made)
        _create(record, encoded.record, made)
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
    _make_folder(folder)
    probe = folder / _hidden("writable")
    try:
        probe.write_bytes(b"hybridwatch")
        probe.unlink()
    except OSError as error:
        raise RecordError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sync_folder(folder.parent)
    except OSError as error:
        raise RecordError(f"{folder}: cannot be made: {error.strerror or error}") from error


def _create(path: Path, content: bytes, made: list[Path]) -> None:
    """Make a file appear whole under a name nothing has yet; note it in ``made``."""
    temporary = path.with_name(_hidden("half"))
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _give_name(temporary, path)
        made.append(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _give_name(temporary: Path, path: Path) -> None:
    # A rename would silently replace a file of that name; a hard link refuses to.
    try:
        path.hardlink_to(temporary)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        temporary.rename(path)


def _sync_folder(folder: Path) -> None:
    # The name itself is only safe once the folder is on the disk.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(made: list[Path]) -> None:
    for path in reversed(made):  # the record before the bulk it names
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _hidden(purpose: str) -> str:
    # Leading dot and own suffix: no listing takes it for a record.
    return f".{purpose}-{secrets.token_hex(8)}.tmp"
