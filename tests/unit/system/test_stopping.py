"""A request to stop is heard whatever becomes of its exception; real processes, real signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.waiting import LIMIT_S, has_ended, main_thread_rests, wait_until

OWNER = """
import os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from hybridwatch.system import stopping
from hybridwatch.system.guarded import GuardedProcess
from hybridwatch.system.stopping import stoppable

def start():
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    return GuardedProcess(command, Path(sys.argv[1]), {})

class Dropped:
    def __del__(self):
        print("there", flush=True)
        time.sleep(600)

class Lock:
    # As an HTTP client's: an exception before __enter__ returns leaves it taken.
    lock = threading.Lock()

    def __enter__(self):
        self.lock.acquire()
        if not stopping._stop.requested:
            print("there", flush=True)
        while not stopping._stop.requested:
            time.sleep(0.01)

    def __exit__(self, *_):
        self.lock.release()

stopping.PATIENCE_S = float(sys.argv[2])
try:
    with stoppable():
        started = start()
"""

REPLACED_BY_AN_ERROR = """
        print("there", flush=True)
        while True:
            try:
                try:
                    started.wait(600)
                finally:
                    raise OSError
            except OSError:
                started = start()
"""
BEHIND_A_THREAD = """
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(started.wait, 600)
            print("there", flush=True)
            waiting.result()
"""
TAKING_A_LOCK = """
        lock = Lock()
        try:
            while started.exit_status is None:
                with lock:
                    pass
        finally:
            with lock:
                started.stop()
"""
TURNED_INTO_AN_ERROR = """
        print("there", flush=True)
        try:
            started.wait(600)
        except KeyboardInterrupt:
            raise OSError
"""
WITHOUT_GUARDS = """
        started.stop()
        print("there", flush=True)
        time.sleep(600)
"""
LOST_IN_A_FINALIZER = """
        started.stop()
        Dropped()
        start().wait(600)
"""
LOST_AT_THE_END = """
        started.stop()
        Dropped()
    print("went on", flush=True)
"""
NEVER_NOTICED = """
        print("there", flush=True)
        while True:
            time.sleep(1)
"""
END = """
except KeyboardInterrupt:
    sys.exit(130)
"""
LONG, SHORT = 3600.0, 0.2
"""Patience that no test could wait for, and patience to be used up."""


class Owner:
    """A process that has started a guarded one and is at whatever the test gave it to do."""

    def __init__(self, folder: Path, doing: str, patience_s: float, ignoring: bool = False) -> None:
        handler = signal.SIG_IGN if ignoring else signal.default_int_handler
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER + doing + END, str(folder / "log"), str(patience_s)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
            preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
        )
        self._await_place()
        self.family = [] if doing.lstrip().startswith("started.stop()") else self._family()

    def _await_place(self) -> None:
        """Wait until the main thread has come to where it stays."""
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said == "there\n", self.process.communicate()
        wait_until(lambda: main_thread_rests(self.process.pid), "a rest of the main thread")

    def _family(self) -> list[psutil.Process]:
        """Guard and command."""
        owner = psutil.Process(self.process.pid)

        def both() -> list[psutil.Process]:
            found: list[psutil.Process] = owner.children(recursive=True)
            return found if len(found) == 2 else []

        return wait_until(both, "guard and command")

    def _is_alone(self) -> bool:
        return all(map(has_ended, self.family))

    def end(self, first: int, *more: int, send: Callable[[int, int], None] = os.kill) -> str:
        """Send signals; gives what was printed when owner and family have gone."""
        send(self.process.pid, first)
        for number in more:
            # The kernel keeps one signal of a kind: the one before must have been heard.
            wait_until(self._is_alone, "the end of the family")
            send(self.process.pid, number)
        printed, errors = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == 130, errors
        wait_until(self._is_alone, "the end of the family")
        return printed


@pytest.fixture
def owner(tmp_path) -> Iterator[Callable[..., Owner]]:
    started: list[Owner] = []

    def make(*arguments, **options) -> Owner:
        started.append(Owner(tmp_path, *arguments, **options))
        return started[-1]

    yield make
    for one in started:
        one.process.kill()
        one.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "doing",
    [
        REPLACED_BY_AN_ERROR,
        BEHIND_A_THREAD,
        TAKING_A_LOCK,
        TURNED_INTO_AN_ERROR,
        WITHOUT_GUARDS,
        LOST_IN_A_FINALIZER,
    ],
    ids=[
        "replaced by an error",
        "behind a thread",
        "taking a lock",
        "turned into an error",
        "without guards",
        "lost in a finalizer",
    ],
)
def test_a_signal_ends_owner_and_family_without_waiting_out_the_patience(owner, doing, number):
    owner(doing, LONG).end(number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_owner_that_never_noticed_is_ended_when_the_patience_is_over(owner, number):
    owner(NEVER_NOTICED, SHORT).end(number)


def test_second_signal_ends_at_once(owner):
    owner(NEVER_NOTICED, LONG).end(signal.SIGINT, signal.SIGINT)


def test_interrupt_that_was_lost_is_raised_at_the_end(owner):
    assert owner(LOST_AT_THE_END, LONG).end(signal.SIGINT) == ""


def test_sigint_is_heeded_where_the_shell_had_it_ignored(owner):
    """As a script's background commands are started."""
    owner(TURNED_INTO_AN_ERROR, LONG, ignoring=True).end(signal.SIGINT)


def test_ctrl_c_which_reaches_the_whole_group_is_one_request(owner):
    owner(BEHIND_A_THREAD, LONG).end(signal.SIGINT, send=os.killpg)
