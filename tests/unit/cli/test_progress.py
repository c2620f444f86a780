"""What is seen of a session while it runs."""

from io import StringIO

import pytest
from rich.console import Console

from hybridwatch.cli.terminal import TimeLeft, progress
from hybridwatch.measurement.session import Progress

STEPS = (
    Progress(12, 48, "performance cpu-0.27.1"),
    Progress(40, 48, "look 1 of 6, 7 trials a side: 3 of 9 timed metrics open", lasting=True),
    Progress(41, 60, "host-sync cpu-0.27.1"),
)


def shown(*, terminal: bool) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=200)
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
    console = Console(file=StringIO(), width=200)
    with progress(console, TimeLeft(1, clock)) as tell:
        for done in (1, 6):
            clock.now = 60.0 * done
            tell(Progress(done, 9, "performance cpu-0.27.1"))
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue().splitlines() == [
        "[1/9] performance cpu-0.27.1",
        "[6/9] performance cpu-0.27.1, about 3 min left",
    ]
