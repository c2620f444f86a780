"""Interrupt a run while it times its load, and see what is left of it."""

import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.e2e.short_home import SCENARIO

MARK = "HYBRIDWATCH_TEST_RUN"
"""Inherited by every process of a run, wherever it has gone."""

LIMIT_S = 15.0
"""After so long nothing of an interrupted run may be there."""

_START_S = 240.0
_POLL_S = 0.1


@dataclass(frozen=True)
class Left:
    """What an interruption left.

    Attributes:
        status: Of the run; None while it is there.
        alive: Command lines of its processes after ``LIMIT_S``.
        seconds: Until nothing was left, or ``LIMIT_S``.
        output: What it printed.
    """

    status: int | None
    alive: list[str]
    seconds: float
    output: str


def marked(value: str) -> list[psutil.Process]:
    """Every process of a run but those that have ended already."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == value and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def interrupt(home: Path, results: Path, *, delay_s: float, group: bool) -> Left:
    """Start a run, and send SIGINT a while after its first timed load has begun.

    Args:
        home: As ``make_short_home`` made it.
        results: Folder for its records.
        delay_s: The while.
        group: Whether the whole process group gets the signal, as from Ctrl-C, or the run alone.
    """
    name = uuid.uuid4().hex
    log = results.with_name(f"{results.name}.{name}.log")
    with log.open("w") as file:
        run = subprocess.Popen(
            [sys.executable, "-m", "hybridwatch", "run", SCENARIO, "--results", str(results)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, MARK: name, "HYBRIDWATCH_HOME": str(home)},
            start_new_session=True,
            # A suite that was started in the background has been told to overhear SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        _await_text(run, log, "] performance", _START_S)
        time.sleep(delay_s)
        family = marked(name)
        assert len(family) >= 4, log.read_text()
        (os.killpg if group else os.kill)(run.pid, signal.SIGINT)
        begin = time.monotonic()
        while time.monotonic() < begin + LIMIT_S and (run.poll() is None or marked(name)):
            time.sleep(_POLL_S)
        seconds = time.monotonic() - begin
        alive = [" ".join(process.cmdline()) for process in marked(name)]
        return Left(run.poll(), alive, round(seconds, 1), log.read_text())
    finally:
        for process in marked(name):
            process.kill()
        run.kill()
        run.wait()


def _await_text(run: "subprocess.Popen[bytes]", log: Path, text: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while text not in log.read_text():
        assert run.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(_POLL_S)
