"""What is seen of a session while it runs."""

from io import StringIO

import pytest
from rich.console import Console

from hybridwatch.cli.progress import TimeLeft, progress
from hybridwatch.measure.session import Progress

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


def test_time_left_counts_what_is_planned_and_the_scenarios_to_come() -> None:
    clock = iter([0.0, 60.0, 120.0, 240.0, 300.0])
    left = TimeLeft(3, lambda: next(clock))
    left.begin()
    assert left.after(0, 10) == "", "nothing is known yet"
    assert left.after(5, 10) == "about 5 min left", "one here, two in each of two others"
    assert left.after(10, 10) == "about 4 min left"
    left.begin()
    assert left.after(5, 10) == "about 4 min left", "one here, and about three in the last"


def test_time_left_stands_in_every_line_of_a_log() -> None:
    clock = iter([0.0, 60.0])
    console = Console(file=StringIO(), width=200)
    with progress(console, TimeLeft(1, lambda: next(clock))) as tell:
        tell(STEPS[0])
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue() == "[12/48] performance cpu-0.27.1, about 3 min left\n"
