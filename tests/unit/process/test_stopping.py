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
import os, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from hybridwatch.process import GuardedProcess, stoppable, stopping

def start():
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    return GuardedProcess(command, Path(sys.argv[1]), {})

class Dropped:
    def __del__(self):
        time.sleep(600)

stopping.PATIENCE_S = float(sys.argv[2])
try:
    with stoppable():
        started = start()
        print("ready", flush=True)
"""

LOST_IN_A_FINALIZER = """
        Dropped()
        print("went on", flush=True)
        start().wait(600)
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
LATE_BEHIND_A_THREAD = """
        with ThreadPoolExecutor(1) as threads:
            threads.submit(started.wait, 600).result()
"""
LOST_AND_NOTHING_NEW_STARTED = """
        Dropped()
        time.sleep(600)
"""
LOST_AT_THE_END = """
        Dropped()
    print("went on", flush=True)
"""
TURNED_INTO_AN_ERROR = """
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            raise OSError
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
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()
        self.family = self._wait_for_family()

    def _wait_for_family(self) -> list[psutil.Process]:
        """Guard and command; the main thread is where the test wants it once it sleeps."""
        owner = psutil.Process(self.process.pid)
        while len(family := owner.children(recursive=True)) < 2:
            time.sleep(0.01)
        while owner.status() != psutil.STATUS_SLEEPING:
            time.sleep(0.01)
        return family

    def end(self, *numbers: int, send: Callable[[int, int], None] = os.kill) -> str:
        """Send signals; gives what was printed when owner and family have gone."""
        for number in numbers:
            send(self.process.pid, number)
            time.sleep(0.1)
        printed, _ = self.process.communicate(timeout=30)
        assert self.process.returncode == 130
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
    [LOST_IN_A_FINALIZER, REPLACED_BY_AN_ERROR, LATE_BEHIND_A_THREAD, TURNED_INTO_AN_ERROR],
    ids=["lost in a finalizer", "replaced by an error", "behind a thread", "turned into an error"],
)
def test_a_signal_ends_owner_and_family_without_waiting_out_the_patience(owner, doing, number):
    owner(doing, LONG).end(number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_owner_that_never_noticed_is_ended_when_the_patience_is_over(owner, number):
    owner(LOST_AND_NOTHING_NEW_STARTED, SHORT).end(number)


def test_second_signal_ends_at_once(owner):
    owner(LOST_AND_NOTHING_NEW_STARTED, LONG).end(signal.SIGINT, signal.SIGINT)


def test_interrupt_that_was_lost_is_raised_at_the_end(owner):
    assert owner(LOST_AT_THE_END, LONG).end(signal.SIGINT) == ""


def test_sigint_is_heeded_where_the_shell_had_it_ignored(owner):
    """As a script's background commands are started."""
    owner("        time.sleep(600)\n", LONG, ignoring=True).end(signal.SIGINT)


def test_ctrl_c_which_reaches_the_whole_group_is_one_request(owner):
    owner(LATE_BEHIND_A_THREAD, LONG).end(signal.SIGINT, send=os.killpg)
