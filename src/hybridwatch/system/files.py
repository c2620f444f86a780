"""One file, whole or not at all, and claimed by one process at a time.

It is made under a hidden name in its final folder, flushed to the disk, and then given its name in
one step, unless another file has that name. ``put`` alone takes the place of another.
"""

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError

_NO_LINKS: Final = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV}
"""How file systems without hard links refuse one."""
_WAITING: Final = 8
"""Files whose way to the disk is waited for at a time: a file system that keeps a journal writes
together what waits together."""


@contextmanager
def named_errors(path: Path, failed: str = "cannot be written") -> Iterator[None]:
    """Make of an ``OSError`` within a ``RecordError`` that names the path, and what failed."""
    try:
        yield
    except OSError as error:
        raise RecordError(f"{path}: {failed}: {error.strerror or error}") from error


def make_folder(folder: Path) -> None:
    """Make a folder, and see that its name reaches the disk."""
    with named_errors(folder, "cannot be made"):
        folder.mkdir(parents=True, exist_ok=True)
        _sync(folder.parent)


def create_all(files: Sequence[tuple[Path, bytes]], made: list[Path]) -> None:
    """Make files appear whole under new names, in their order, in folders that are there.

    Something that has a name stays, with a ``FileExistsError``. ``made`` gets each path the moment
    its file has its name, whatever happens then. The disk is waited for together.
    """
    halves = [path.with_name(hidden("half")) for path, _ in files]
    try:
        for half, (_, content) in zip(halves, files, strict=True):
            with half.open("xb") as file:
                file.write(content)
        with ThreadPoolExecutor(_WAITING) as waiting:
            list(waiting.map(_sync, halves))  # raises what a wait raised
        for half, (path, _) in zip(halves, files, strict=True):
            _give_name(half, path)
            made.append(path)
    finally:
        for half in halves:
            half.unlink(missing_ok=True)
    for folder in {path.parent for path, _ in files}:
        _sync(folder)  # a name itself is only safe once the folder is on the disk


def put(path: Path, content: bytes) -> None:
    """Make a file whole, also in place of an older one, which stays at an ``OSError``."""
    half = path.with_name(hidden("half"))
    try:
        with half.open("xb") as file:
            file.write(content)
        _sync(half)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
    _sync(path.parent)


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


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


HALVES: Final = ".half-*.tmp"
"""Pattern of the names of files that are not whole."""


def hidden(purpose: str) -> str:
    """Make up a file name that no listing takes for a record: leading dot, own suffix."""
    return f".{purpose}-{secrets.token_hex(8)}.tmp"


@contextmanager
def claimed_folder(folder: Path) -> Iterator[None]:
    """Wait until no other claims a folder, and claim it; where its file system cannot, go on."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # NFS, for one, locks only what is open for writing
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def claimed(file: Path, *, wait: bool = False) -> Iterator[bool]:
    """Claim a file until this process ends; yields whether it could. With ``wait`` it can."""
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
