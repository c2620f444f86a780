"""The noisy neighbour: random and yet the same, and gone when nobody wants it any more."""

import itertools
import os
import subprocess
import sys

import psutil
import pytest

from hybridwatch_lab.calibration.recording.neighbour import Habits, disturb, neighbours
from tests.waiting import has_ended, wait_until

COMMAND = (sys.executable, "-m", "hybridwatch_lab.calibration.recording.neighbour")


def first_lengths(seed: int) -> list[tuple[float, float]]:
    return list(itertools.islice(Habits(seed).lengths(), 2000))


def test_lengths_are_those_of_the_seed() -> None:
    assert first_lengths(3) == first_lengths(3)
    assert first_lengths(3) != first_lengths(4)
    rests, bursts = zip(*first_lengths(3), strict=True)
    assert sum(rests) / len(rests) == pytest.approx(4.0, rel=0.1)
    assert sum(bursts) / len(bursts) == pytest.approx(3.0, rel=0.1)


def test_a_burst_ends_when_its_owner_is_gone() -> None:
    """A burst of a thousand hours is over at the first look that finds nobody."""
    looks: list[float] = []

    def gone(patience_s: float) -> bool:
        looks.append(patience_s)
        return len(looks) == 3

    disturb(Habits(1, rest_s=1.0, burst_s=3.6e6), gone)
    assert looks[0] > 0
    assert looks[1:] == [0.0, 0.0]


def test_neighbours_end_with_their_context() -> None:
    with neighbours((Habits(1), Habits(2))) as pids:
        processes = [psutil.Process(pid) for pid in pids]
        assert all(process.is_running() for process in processes)
    assert all(map(has_ended, processes))


def test_neighbours_end_when_their_owner_is_killed() -> None:
    """Nothing is left that could clean up: the closed pipe alone says so."""
    waits = (sys.executable, "-c", "print('up', flush=True); input()")
    owner = subprocess.Popen(
        (*COMMAND, "--seed", "5", "--", *waits), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    family = psutil.Process(owner.pid).children(recursive=True)
    workers = [one for one in family if "--worker" in one.cmdline()]
    assert len(workers) == 2
    owner.kill()
    owner.communicate()  # closes the standard input for which the command waits
    wait_until(lambda: all(map(has_ended, workers)), "the end of the neighbours")


def test_the_command_sees_its_neighbours_as_strangers() -> None:
    """Its session counts the work of its own descendants as its own."""
    asks = "import psutil; print(len(psutil.Process().children()), psutil.Process().ppid())"
    seen = subprocess.run(
        (*COMMAND, "--", sys.executable, "-c", asks), capture_output=True, check=True, text=True
    )
    children, parent = map(int, seen.stdout.split())
    assert children == 0
    assert parent != os.getpid()


def test_the_status_is_that_of_the_command() -> None:
    ends = (sys.executable, "-c", "raise SystemExit(3)")
    assert subprocess.run((*COMMAND, "--", *ends), check=False).returncode == 3


def test_a_wrong_call_is_refused() -> None:
    refused = subprocess.run(
        (*COMMAND, "--rest", "0", "--", "true"), capture_output=True, check=False, text=True
    )
    assert refused.returncode == 2
    assert "expected more than 0 seconds" in refused.stderr
