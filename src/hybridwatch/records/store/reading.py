"""Reading a file that somebody else may have put there: a plain one, and of a size that fits.

Both are looked at before the file is opened: opening a pipe waits until somebody writes to it, and
a device or a file of gigabytes would be read without end.
"""

import os
import stat
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError

_NOUNS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def read_file(path: Path, most: int) -> bytes:
    """Read a regular file, or what a link to one leads to.

    Args:
        path: The file.
        most: Bytes it may have.

    Raises:
        RecordError: It is no regular file, or larger; in one line, which does not name it.
        OSError: It cannot be read.
    """
    size = _checked(path.stat(), most)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        _checked(os.fstat(descriptor), most)  # another one may have taken its place
        content = file.read(size + 1)
        if len(content) > size:  # it grew
            content += file.read(most + 1 - len(content))
    if len(content) > most:
        raise RecordError(_too_large(most, len(content)))
    return content


def _checked(status: os.stat_result, most: int) -> int:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise RecordError(f"expected a regular file, found {_NOUNS.get(kind, 'something else')}")
    if status.st_size > most:
        raise RecordError(_too_large(most, status.st_size))
    return status.st_size


def _too_large(most: int, found: int) -> str:
    return f"expected at most {most} bytes, found {found}"
