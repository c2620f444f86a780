"""One program on every terminal, and the progress that is seen there."""

import os
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
import rich.console

from hybridwatch.cli.main import IN_ASCII, NOBODY_READS
from hybridwatch.cli.terminal import Console, TimeLeft, progress
from hybridwatch.measurement.session_request import Progress
from hybridwatch.records.store import write_run
from hybridwatch.reports.sentence import MARKS
from tests.builders import RECENT, a_comparison, noisy

PROGRAM = (sys.executable, "-m", "hybridwatch")
LOUD = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
"""Runs a command on a terminal."""


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """A record with a comparison of each kind that a mark stands for."""
    folder: Path = tmp_path_factory.mktemp("results")
    old = {"tpot": noisy(0.04, 12, 0.01), "contract.wrong_tokens": (0.0,) * 3}
    new = {"tpot": noisy(0.05, 12, 0.01), "contract.wrong_tokens": (0.0,) * 3}
    write_run(folder, a_comparison(old, new, started_at=RECENT, finished_at=RECENT))
    return folder


def call(
    *words: str, results: Path, to: int = subprocess.PIPE, ahead: Sequence[str] = (), **env: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*ahead, *PROGRAM, *words, "--results", str(results)],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=to,
        stderr=subprocess.PIPE,
        check=False,
    )


def test_marks_stay_apart_where_there_is_no_unicode(results):
    told = call("compare", "latest", results=results, PYTHONIOENCODING="ascii").stdout.decode()
    assert "x regression" in told
    assert "= equivalent" in told
    assert "?" not in told, "that is the mark of what is inconclusive"


def test_every_mark_has_its_own_stand_in():
    shown = [mark.encode("ascii", IN_ASCII).decode() for mark in MARKS.values()]
    assert len(set(shown)) == len(MARKS)
    assert {len(mark) for mark in shown} == {1}, "tables are laid out before"
    assert "caf\u00e9".encode("ascii", IN_ASCII) == b"caf\\xe9"


@pytest.mark.parametrize(("wish", "loud"), [("1", False), ("", True)])
def test_no_color_leaves_neither_colour_nor_bold(results, wish, loud):
    on_a_terminal = (sys.executable, "-c", LOUD)
    wishes = {"NO_COLOR": wish, "TERM": "xterm-256color"}
    told = call("compare", "latest", results=results, ahead=on_a_terminal, **wishes).stdout
    assert b"regression" in told
    assert (b"\x1b[" in told) is loud


@pytest.mark.parametrize(
    "words", [("records",), ("compare", "latest"), ("export", "--to", "csv"), ("gate", "--help")]
)
def test_an_answer_that_cannot_be_written_is_no_bad_news(results, words):
    with Path("/dev/full").open("wb") as full:
        done = call(*words, results=results, to=full.fileno())
    assert done.returncode == 2
    assert done.stderr.decode() == "hybridwatch: cannot be written: No space left on device\n"


@pytest.mark.parametrize("words", [("records",), ("nonsense",), ("compare", "nonsense")])
def test_the_status_is_that_of_an_error_where_not_even_the_error_can_be_written(results, words):
    with Path("/dev/full").open("wb") as full:
        command = [*PROGRAM, *words]
        variables = {**os.environ, "HYBRIDWATCH_RESULTS": str(results)}
        done = subprocess.run(command, stdout=full, stderr=full, env=variables, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize("words", [("records",), ("export", "--to", "csv")])
def test_a_reader_that_leaves_is_no_bad_news_either(results, words):
    read, write = os.pipe()
    os.close(read)
    done = call(*words, results=results, to=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (NOBODY_READS, b"")


def test_a_console_is_loud_only_where_it_may_be(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert Console().color_system
    monkeypatch.setenv("NO_COLOR", "1")
    assert Console().color_system is None


STEPS = (
    Progress(12, 48, "performance cpu-0.27.1"),
    Progress(40, 48, "look 1 of 6, 7 trials a side: 3 of 9 timed metrics open", lasting=True),
    Progress(41, 60, "host-sync cpu-0.27.1"),
)


def shown(*, terminal: bool) -> str:
    console = rich.console.Console(file=StringIO(), force_terminal=terminal, width=200)
    with progress(console) as tell:
        for step in STEPS:
            tell(step)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_log_gets_a_line_per_step() -> None:
    assert shown(terminal=False).splitlines() == [
        "[12/48] performance cpu-0.27.1",
        "[40/48] look 1 of 6, 7 trials a side: 3 of 9 timed metrics open",
        "[41/60] host-sync cpu-0.27.1",
    ]


@pytest.mark.parametrize("lasting", [STEPS[1].text])
def test_a_terminal_keeps_results_in_sight_and_nothing_else(lasting: str) -> None:
    lines = [line.strip() for line in shown(terminal=True).split("\n")]
    kept = [line for line in lines if lasting in line]
    assert any(line.endswith(lasting) and "/48" not in line for line in kept)
    assert not any(line.endswith(STEPS[0].text) and "/48" not in line for line in lines)


class Clock:
    """Seconds, as a test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_time_left_counts_what_is_planned_and_the_scenarios_to_come() -> None:
    clock = Clock()
    left = TimeLeft(3, clock)
    left.begin()
    told = {}
    # Nine minutes until the engine is up and its first trial is made, then one for each trial.
    for done in range(12):
        clock.now = 60.0 * (8 + done) if done else 0.0
        told[done] = left.after(done, 12)
    assert {told[done] for done in range(5)} == {""}, "nothing is known yet"
    assert told[5] == "about 47 min left", "7 here, 20 in each of two others"
    assert told[11] == "about 41 min left"
    left.begin()
    assert left.after(1, 12) == "", "of this engine nothing is known"
    clock.now += 240
    assert left.after(5, 12) == "about 22 min left", "7 here, and 15 as those two on average"


def test_time_left_stands_in_every_line_of_a_log() -> None:
    clock = Clock()
    console = rich.console.Console(file=StringIO(), width=200)
    with progress(console, TimeLeft(1, clock)) as tell:
        for done in (1, 6):
            clock.now = 60.0 * done
            tell(Progress(done, 9, "performance cpu-0.27.1"))
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue().splitlines() == [
        "[1/9] performance cpu-0.27.1",
        "[6/9] performance cpu-0.27.1, about 3 min left",
    ]
