"""Reading and judging many records on all processors.

Workers are plain processes that are handed records and give back rows, by pickles over pipes
between programs of our own. ``multiprocessing`` would run the caller's main script once more in
each, and that of a dashboard's page is no module that could be run so.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain
from queue import SimpleQueue
from typing import Final, TypeAlias

from hybridwatch.database.reading import RecordRows, read_rows
from hybridwatch.database.stamps import Listed
from hybridwatch.system.guard import end_with_parent

Named: TypeAlias = tuple[str, Listed]
"""A record's name and where it lies."""

_WORTH_IT: Final = 50
"""New records from which on other processes, which take seconds to start, are worth it."""
_AT_A_TIME: Final = 8
"""Records that a process is handed at once."""


def judged_by_all(
    records: Sequence[Named], say: Callable[[int, int], None]
) -> Iterator[RecordRows]:
    """Read and judge records, each as ``read_rows``, in their order.

    ``say`` is called with how many are read, and how many there are.
    """
    processes = os.cpu_count() or 1
    if processes == 1 or len(records) < _WORTH_IT:
        yield from _counted(map(_read, records), len(records), say)
        return
    parts = [records[at : at + _AT_A_TIME] for at in range(0, len(records), _AT_A_TIME)]
    with ExitStack() as ending, ThreadPoolExecutor(processes) as threads:
        workers: SimpleQueue[_Worker] = SimpleQueue()
        for _ in range(processes):
            worker = _Worker()
            ending.callback(worker.end)
            workers.put(worker)

        def read(part: Sequence[Named]) -> list[RecordRows]:
            worker = workers.get()
            try:
                return worker.read(part)
            finally:
                workers.put(worker)

        found = threads.map(read, parts)
        yield from _counted(chain.from_iterable(found), len(records), say)


class _Worker:
    """A process that reads and judges what it is handed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def read(self, part: Sequence[Named]) -> list[RecordRows]:
        """Give the rows of some records; they are read here if the process is gone."""
        pipes = self._process
        assert pipes.stdin is not None  # noqa: S101 (as it was started)
        assert pipes.stdout is not None  # noqa: S101
        try:
            pickle.dump(list(part), pipes.stdin)
            pipes.stdin.flush()
            rows: list[RecordRows] = pickle.load(pipes.stdout)  # noqa: S301 (our own process)
        except (OSError, EOFError, pickle.UnpicklingError):
            return [_read(record) for record in part]
        return rows

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def _counted(
    found: Iterable[RecordRows], total: int, say: Callable[[int, int], None]
) -> Iterator[RecordRows]:
    for done, rows in enumerate(found, start=1):
        say(done, total)
        yield rows


def _read(record: Named) -> RecordRows:
    return read_rows(*record)


def _work(parent: int) -> None:
    """Answer the parent until it ends, however it does; interrupts are its business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
    # What is printed while records are read must not get among the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            part: list[Named] = pickle.load(sys.stdin.buffer)  # noqa: S301 (our own process)
        except EOFError:
            return
        pickle.dump([_read(record) for record in part], answers)
        answers.flush()


if __name__ == "__main__":
    _work(int(sys.argv[1]))
