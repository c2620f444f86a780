"""Samples the Python stacks of two sides' engines under load, in passes of their own.

py-spy reads another process's memory and stops it for each sample, which slows an engine by some
per cent: nothing here is timed. What counts is in which frames the threads are that make steps.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext, run_load, run_prelude
from hybridwatch.measurement.plan import plan_block
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.scenario import Scenario

Stacks: TypeAlias = Counter[tuple[str, ...]]
"""Samples by stack, root first."""

PASSES: Final = 12
"""Passes of the load on each side, after one that warms up. On a machine that others kept busy
+10 % of work in a step was named with p = 0.03 by 8, with p = 0.0002 by 12."""
_RATE_HZ: Final = 100
_ANSWER_S: Final = 60.0
"""For py-spy to find all processes, and to write what it saw: it needs a second for each."""
_STEP: Final = "execute_model "
"""Method of the workers and model runners of every release; other threads make no step."""


def profile_sides(
    scenario: Scenario, sides: Sequence[BuildRequest], models: Path, say: Callable[[str], None]
) -> list[list[Stacks]]:
    """Load both sides in turn, A B B A, and sample each pass; gives the passes of each side.

    Raises:
        MeasurementError: py-spy is not there, or may not read the engines' memory.
    """
    sampler = find_sampler()
    found: list[list[Stacks]] = [[] for _ in sides]
    with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
        work = Path(folder)
        with EnginePool(scenario, sides, models, work, say) as pool:
            for number in range(PASSES + 1):
                say(f"profile: pass {number} of {PASSES}" if number else "profile: warm-up")
                for planned in plan_block(number, len(sides), (Phase.PERFORMANCE,)):
                    pool.client(planned.side).make_ready()
                    pool.make_ready(planned.side)
                    stacks = _sample(TrialContext(pool, planned.side, work, number), sampler)
                    if number:
                        found[planned.side].append(stacks)
    return found


def find_sampler() -> str:
    """Find py-spy next to this Python, or on the path."""
    folders = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    if (found := shutil.which("py-spy", path=folders)) is None:
        raise MeasurementError("py-spy: found none; expected pip install 'hybridwatch[profile]'")
    return found


def _sample(trial: TrialContext, sampler: str) -> Stacks:
    """Load the engine once, and give the stacks of the threads that make its steps."""
    run_prelude(trial)
    file = trial.work / "stacks.txt"
    # Of a pair the engine that answers.
    with sampling(sampler, trial.engine.server.servers[-1].pid, file):
        run_load(trial, trial.scenario.workload.generation)
    if not (stacks := parse_steps(file.read_text(encoding="utf-8"))):
        raise MeasurementError("py-spy saw no thread of the engine make a step")
    return stacks


@contextmanager
def sampling(sampler: str, pid: int, file: Path) -> Iterator[None]:
    """Sample a process and all below it, threads that wait included, until the block ends."""
    command = [
        *(sampler, "record", "--pid", str(pid), "--subprocesses", "--threads", "--idle"),
        *("--rate", str(_RATE_HZ), "--format", "raw", "--output", str(file)),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe was requested
        with _killed_after(_ANSWER_S, process):
            # It says so once it knows all processes; without that it has failed, and says why.
            said = [process.stdout.readline()]
            while said[-1] and "Press Control-C" not in said[-1]:
                said.append(process.stdout.readline())
        if not said[-1]:
            why = "".join(said).strip() or f"no answer within {_ANSWER_S:g} s"
            raise MeasurementError(f"py-spy cannot sample process {pid}: {why}")
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            with _killed_after(_ANSWER_S, process):
                process.communicate()


@contextmanager
def _killed_after(seconds: float, process: subprocess.Popen[str]) -> Iterator[None]:
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def parse_steps(raw: str) -> Stacks:
    """Read py-spy's raw stacks, and keep those of threads that make steps.

    Before its thread each has its processes, whose command lines may have any character.
    """
    threads: dict[str, Stacks] = {}
    for line in raw.splitlines():
        _, found, rest = line.rpartition(";thread (")
        frames, _, samples = rest.rpartition(" ")
        if found and samples.isdecimal():  # else the line is one of a command line
            thread, *stack = frames.split(";")
            threads.setdefault(thread, Stacks())[tuple(stack)] += int(samples)
    stepping = (one for one in threads.values() if any(_STEP in f for stack in one for f in stack))
    return sum(stepping, Stacks())
