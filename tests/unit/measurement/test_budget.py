"""When blocks are added, when a run is judged, and when it ends; the clock is made of numbers."""

from dataclasses import dataclass, field, replace

import pytest

from hybridwatch.measurement.plan import Budget, BudgetStatus, Pace, add_until_decided
from hybridwatch.records.run import InterimAnalyses, Phase, Run, Trial
from tests.builders import STARTED, a_run

LOOKS = (3, 5, 8)
EMPTY = replace(a_run({}, {}), trials=())


@dataclass
class Session:
    """A session whose blocks take a given time and whose judge answers from a list."""

    block_seconds: float = 60.0
    open_after: tuple[int, ...] = (1, 1, 1)
    now: float = 0.0
    goals: list[int] = field(default_factory=list)
    judged: list[Run] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def make_block(self, number: int, goal: int) -> tuple[Trial, ...]:
        assert number == len(self.goals)
        self.goals.append(goal)
        self.now += self.block_seconds
        return (Trial(number, 0, Phase.PERFORMANCE, STARTED, 1.0),)

    def judge(self, run: Run) -> BudgetStatus:
        self.judged.append(run)
        return BudgetStatus(self.open_after[len(self.judged) - 1], 9)

    def run(self, minutes: float, spent: float = 0.0) -> Run:
        pace = Pace(minutes * 60, clock=lambda: self.now)
        self.now += spent
        budget = Budget(LOOKS, minutes * 60, self.judge)
        return add_until_decided(EMPTY, budget, pace, self.make_block, self.said.append)


def test_run_ends_at_the_first_look_that_leaves_nothing_open() -> None:
    session = Session(open_after=(4, 0))
    run = session.run(minutes=60)
    assert run.looks == InterimAnalyses(LOOKS, (3, 5))
    assert len(run.trials) == 5
    assert session.said == [
        (
            "look 1 of 3, 3 trials a side: 4 of 9 timed metrics open; "
            "next look after 2 more blocks, about 2 min"
        ),
        "look 2 of 3, 5 trials a side: all 9 timed metrics are decided",
    ]


def test_judge_is_told_which_look_it_is() -> None:
    session = Session()
    session.run(minutes=60)
    assert [run.looks for run in session.judged] == [
        InterimAnalyses(LOOKS, (3,)),
        InterimAnalyses(LOOKS, (3, 5)),
        InterimAnalyses(LOOKS, (3, 5, 8)),
    ]
    assert [len(run.trials) for run in session.judged] == [3, 5, 8]


def test_last_look_is_the_last() -> None:
    session = Session()
    run = session.run(minutes=60)
    assert run.looks == InterimAnalyses(LOOKS, LOOKS)
    assert session.said[-1].endswith("1 of 9 timed metrics open; this was the last look")


def test_time_that_ends_between_two_looks_buys_an_early_one() -> None:
    session = Session()
    run = session.run(minutes=4.5)
    assert run.looks == InterimAnalyses(LOOKS, (3, 4))
    assert len(run.trials) == 4
    assert session.said[-1] == (
        "look 2 of 3, 4 trials a side: 1 of 9 timed metrics open; the time is spent"
    )


def test_time_that_ends_with_a_look_buys_no_second_one_of_the_same_trials() -> None:
    session = Session()
    run = session.run(minutes=3)
    assert run.looks == InterimAnalyses(LOOKS, (3,))
    assert [text.rpartition("; ")[2] for text in session.said] == ["the time is spent"]


def test_block_is_begun_only_if_one_as_long_as_those_before_fits_in() -> None:
    session = Session(block_seconds=50.0)
    session.run(minutes=3)
    assert session.now == 150.0


def test_what_came_before_counts() -> None:
    session = Session()
    assert len(session.run(minutes=4, spent=120.0).trials) == 2


def test_first_block_needs_only_some_time() -> None:
    assert Session().run(minutes=0.5).looks == InterimAnalyses(LOOKS, (1,))


def test_no_time_at_all_is_no_look() -> None:
    session = Session()
    run = session.run(minutes=1, spent=60.0)
    assert run.looks == InterimAnalyses(LOOKS, ())
    assert run.trials == ()
    assert (session.judged, session.said) == ([], [])


def test_blocks_know_the_look_that_they_are_for() -> None:
    session = Session()
    session.run(minutes=60)
    assert session.goals == [3, 3, 3, 5, 5, 8, 8, 8]


@pytest.mark.parametrize("minutes", [0.1, 1, 2.5, 4.2, 7.9, 30])
def test_session_overshoots_by_one_block_at_most(minutes: float) -> None:
    session = Session()
    session.run(minutes)
    assert session.now <= max(minutes * 60, session.block_seconds)
