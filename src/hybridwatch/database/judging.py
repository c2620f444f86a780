"""Reading and judging many records on all processors."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from hybridwatch.database.reading import RecordRows, read_rows
from hybridwatch.database.stamps import Listed
from hybridwatch.process.guard import end_with_parent

_WORTH_IT: Final = 50
"""New records from which on other processes, which take seconds to start, are worth it."""
_AT_A_TIME: Final = 8
"""Records that a process is handed at once."""


def judged_by_all(
    records: Sequence[tuple[str, Listed]], say: Callable[[int, int], None]
) -> Iterator[RecordRows]:
    """Read and judge records, each as ``read_rows``, in their order.

    Args:
        records: Their names, and where they lie.
        say: Called with how many are read, and how many there are.
    """
    processes = os.cpu_count() or 1
    if processes == 1 or len(records) < _WORTH_IT:
        yield from _counted(map(_read, records), len(records), say)
        return
    # Not by fork: whoever calls may have threads, whose locks a copy would wait for for ever.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        processes, context, initializer=_begin, initargs=(os.getpid(),)
    ) as pool:
        found = pool.map(_read, records, chunksize=_AT_A_TIME)
        yield from _counted(found, len(records), say)


def _counted(
    found: Iterator[RecordRows], total: int, say: Callable[[int, int], None]
) -> Iterator[RecordRows]:
    for done, rows in enumerate(found, start=1):
        say(done, total)
        yield rows


def _read(record: tuple[str, Listed]) -> RecordRows:
    return read_rows(*record)


def _begin(parent: int) -> None:
    """End with whoever wants the rows, however that ends; an interrupt is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
