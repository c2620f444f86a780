"""One process at a time does what a file stands for."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def claimed(file: Path, *, wait: bool = False) -> Iterator[bool]:
    """Claim a file; the kernel ends the claim of a process that ends, however it ends.

    Args:
        file: Which; it is made, and stays.
        wait: Whether to wait until nobody else has it.

    Yields:
        Whether nobody else has it.

    Raises:
        OSError: It cannot be made.
    """
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
