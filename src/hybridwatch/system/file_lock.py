"""One process at a time does what a file stands for."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def claimed(file: Path, *, wait: bool = False) -> Iterator[bool]:
    """Claim a file; the kernel ends the claim of a process that ends, however it ends.

    The file is made, and stays. Yields whether no other process has it; with ``wait`` it waits
    until none has.
    """
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
