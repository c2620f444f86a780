"""A request to stop is heard whatever becomes of its exception; real processes, real signals."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

OWNER = """
import os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from hybridwatch.process import GuardedProcess, stoppable, stopping

def start():
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    return GuardedProcess(command, Path(sys.argv[1]), {})

class Dropped:
    def __del__(self):
        time.sleep(600)

class Lock:
    # As an HTTP client's: an exception before __enter__ returns leaves it taken.
    lock = threading.Lock()

    def __enter__(self):
        self.lock.acquire()
        time.sleep(0.01)

    def __exit__(self, *_):
        self.lock.release()

stopping.PATIENCE_S = float(sys.argv[2])
try:
    with stoppable():
        started = start()
        print("ready", flush=True)
"""

REPLACED_BY_AN_ERROR = """
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
            threads.submit(started.wait, 600).result()
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
        try:
            started.wait(600)
        except KeyboardInterrupt:
            raise OSError
"""
WITHOUT_GUARDS = """
        started.stop()
        print("stopped", flush=True)
        time.sleep(600)
"""
LOST_IN_A_FINALIZER = """
        started.stop()
        print("stopped", flush=True)
        Dropped()
        start().wait(600)
"""
LOST_AT_THE_END = """
        started.stop()
        print("stopped", flush=True)
        Dropped()
    print("went on", flush=True)
"""
NEVER_NOTICED = """
        while True:
            time.sleep(1)
"""
END = """
except KeyboardInterrupt:
    sys.exit(130)
"""
LONG, SHORT = 60.0, 0.2
"""Patience that a test would notice, and patience to be used up."""


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
        self.family: list[psutil.Process] = []
        self.expect("ready")
        if '"stopped"' in doing:
            self.expect("stopped")
        else:
            self._wait_for_family()
        time.sleep(0.2)  # the main thread gets to where the test wants it

    def expect(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n", self.process.communicate()

    def _wait_for_family(self) -> None:
        """Guard and command."""
        owner = psutil.Process(self.process.pid)
        while len(self.family) < 2:
            time.sleep(0.01)
            self.family = owner.children(recursive=True)

    def end(self, *numbers: int, send: Callable[[int, int], None] = os.kill) -> str:
        """Send signals; gives what was printed when owner and family have gone."""
        for number in numbers:
            send(self.process.pid, number)
            time.sleep(0.1)
        printed, errors = self.process.communicate(timeout=30)
        assert self.process.returncode == 130, errors
        _, alive = psutil.wait_procs(self.family, timeout=30)
        assert not alive
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
