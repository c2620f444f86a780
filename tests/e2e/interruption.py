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
from tests.engine.conftest import BUILD
from tests.waiting import wait_until

_RUN = (sys.executable, "-m", "hybridwatch", "run", SCENARIO, "--build", BUILD)

MARK = "HYBRIDWATCH_TEST_RUN"
"""Inherited by every process of a run, wherever it has gone."""


@dataclass(frozen=True)
class Moment:
    """When a run is interrupted.

    Attributes:
        step: While this question to a pretended engine or its client has no answer, counted from
            the first timed load on.
        delay_s: Without a step: so long after the first timed load has begun.
        group: Whether the whole process group gets the signal, as from Ctrl-C, or the run alone.
        signal: Which it gets.
    """

    step: int | None = None
    delay_s: float = 0.0
    group: bool = False
    signal: int = signal.SIGINT


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


def interrupt(home: Path, results: Path, moment: Moment) -> tuple[int, str]:
    """Start a run, and send it a signal.

    Args:
        home: As ``make_short_home`` made it.
        results: Folder for its records.
        moment: When.

    Returns:
        Its exit status and what it printed, when none of its processes is left.

    Raises:
        AssertionError: Something of it did not end.
    """
    name = uuid.uuid4().hex
    log = results.with_name(f"{results.name}.{name}.log")
    steps = results.with_name(f"{results.name}.{name}.steps")
    steps.mkdir()
    run = _start(home, results, moment, name, log, steps)
    try:
        _await(run, log, moment, steps)
        assert len(marked(name)) >= 4, log.read_text()
        (os.killpg if moment.group else os.kill)(run.pid, moment.signal)
        wait_until(lambda: run.poll() is not None, lambda: f"its end: {log.read_text()}")
        wait_until(
            lambda: not marked(name),
            lambda: f"the end of {[process.cmdline() for process in marked(name)]}",
        )
        return run.returncode, log.read_text()
    finally:
        for process in marked(name):
            process.kill()
        run.kill()
        run.wait()


def _start(
    home: Path, results: Path, moment: Moment, name: str, log: Path, steps: Path
) -> "subprocess.Popen[bytes]":
    variables = {MARK: name, "HYBRIDWATCH_HOME": str(home)}
    if moment.step is not None:
        variables |= {"PRETEND_STEPS": str(steps), "PRETEND_LAST_STEP": str(moment.step)}
    with log.open("w") as file:
        return subprocess.Popen(
            [*_RUN, "--results", str(results)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            start_new_session=True,
            # A suite that was started in the background has been told to overhear SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )


def _await(run: "subprocess.Popen[bytes]", log: Path, moment: Moment, steps: Path) -> None:
    def has_come() -> bool:
        assert run.poll() is None, log.read_text()
        if moment.step is not None:
            return (steps / "last").exists()
        return "] performance" in log.read_text()

    wait_until(has_come, log.read_text)
    if moment.step is None:
        time.sleep(moment.delay_s)  # for tries at random, which are slow, and print their seed
