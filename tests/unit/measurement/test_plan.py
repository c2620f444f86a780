"""The plan of a session: which trials, in which order, and until when."""

from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import pytest

from hybridwatch.measurement.plan import (
    TIMED_PHASES,
    USUAL_PHASES,
    Budget,
    BudgetStatus,
    Pace,
    PlannedTrial,
    add_until_decided,
    list_phases,
    number_starts,
    plan,
    plan_again,
    plan_block,
    plan_more,
    plan_start,
)
from hybridwatch.records.run import InterimAnalyses, Phase, Run, Trial
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.scenarios.scenario import TrialCounts
from tests.builders import STARTED, a_run

EXAMPLE = Path(__file__).parents[2] / "golden" / "scenario" / "example.toml"
COUNTS = TrialCounts(contract=2, performance=7, host_sync=3)


def sides_of(trials, phase, *, warmup=False):
    return [trial.side for trial in trials if trial.phase is phase and trial.warmup is warmup]


def test_sides_alternate_so_that_drift_meets_both():
    assert sides_of(plan(COUNTS, 2), Phase.PERFORMANCE)[:8] == [0, 1, 1, 0, 0, 1, 1, 0]


def test_without_tasks_nothing_is_asked():
    asking = load_scenario(EXAMPLE, EXAMPLE.parent)
    mute = asking.model_copy(update={"accuracy": None})
    assert list_phases(asking) == USUAL_PHASES
    assert set(list_phases(mute)) == set(USUAL_PHASES) - {Phase.ACCURACY}
    assert list_phases(mute, {Phase.ACCURACY, Phase.CONTRACT}) == (Phase.CONTRACT,)
    planned = {trial.phase for trial in plan(COUNTS, 2, list_phases(mute))}
    assert planned == set(USUAL_PHASES) - {Phase.ACCURACY}


def test_no_contract_trials_are_none():
    counts = COUNTS.model_copy(update={"contract": 0})
    assert Phase.CONTRACT not in {trial.phase for trial in plan(counts, 2)}


def test_every_side_gets_every_trial():
    trials = plan(COUNTS, 2)
    for phase, wanted in [(Phase.CONTRACT, 2), (Phase.ACCURACY, 1), (Phase.PERFORMANCE, 7)]:
        sides = sides_of(trials, phase)
        assert (sides.count(0), sides.count(1)) == (wanted, wanted)


def test_timed_phases_begin_with_a_warm_up_of_each_side():
    for phase, trials in groupby(plan(COUNTS, 2), key=lambda trial: trial.phase):
        warmups = [trial.warmup for trial in trials]
        timed = phase in {Phase.PERFORMANCE, Phase.HOST_SYNC}
        assert warmups == [True, True] * timed + [False] * (len(warmups) - 2 * timed)


def test_right_comes_before_fast():
    order = [phase for phase, _ in groupby(plan(COUNTS, 1), key=lambda trial: trial.phase)]
    assert order == [Phase.CONTRACT, Phase.ACCURACY, Phase.PERFORMANCE, Phase.HOST_SYNC]


def test_trials_of_a_phase_and_side_are_numbered_from_zero():
    """A number is the seed of a contract trial, so both sides must have the same ones."""
    trials = plan(COUNTS, 2)
    for phase, count in [(Phase.CONTRACT, 2), (Phase.PERFORMANCE, 7), (Phase.HOST_SYNC, 3)]:
        for side in (0, 1):
            mine = [t.number for t in trials if (t.phase, t.side, t.warmup) == (phase, side, False)]
            assert mine == list(range(count))


def test_a_round_is_made_on_every_side_before_the_next_begins():
    numbers = [t.number for t in plan(COUNTS, 3) if t.phase is Phase.CONTRACT]
    assert numbers == [0, 0, 0, 1, 1, 1]


def test_warm_ups_have_no_number_of_their_own():
    assert {trial.number for trial in plan(COUNTS, 2) if trial.warmup} == {0}


def test_no_trial_is_planned_twice():
    trials = plan(COUNTS, 3)
    assert len(set(trials)) == len(trials)


SPREAD = COUNTS.model_copy(update={"starts": 3})


def parts_of(trials):
    """Numbers of the trials on each start, in their order, after as many warm-ups as sides."""
    found: list[tuple[int | None, list[int]]] = []
    timed = [one for one in trials if one.phase is Phase.PERFORMANCE]
    for start, some in groupby(timed, key=lambda trial: trial.start):
        warm, *rest = [list(part) for _, part in groupby(some, key=lambda trial: trial.warmup)]
        order = [0, 1] if len(found) % 2 == 0 else [1, 0]
        assert [one.side for one in warm] == order, "neither side's engine always comes up first"
        assert [one.warmup for one in warm] == [True, True]
        found.append((start, [one.number for part in rest for one in part]))
    return found


def test_timed_trials_are_spread_over_starts_each_of_which_is_warmed_up():
    whole = plan(SPREAD, 2)
    parts = [(0, [0, 0, 1, 1]), (1, [2, 2, 3, 3]), (2, [4, 4, 5, 5, 6, 6])]
    assert parts_of(whole) == parts
    assert {one.start for one in whole if one.phase is not Phase.PERFORMANCE} == {None}
    usual = [replace(one, start=None) for one in whole if not one.warmup]
    assert usual == [one for one in plan(COUNTS, 2) if not one.warmup], "nothing else changes"
    assert {one.start for one in plan(COUNTS, 2)} == {None}


def test_no_start_is_without_a_block():
    many = COUNTS.model_copy(update={"starts": 99})
    assert parts_of(plan(many, 2)) == [(at, [at, at]) for at in range(COUNTS.performance)]


def test_what_is_measured_further_or_again_has_further_starts():
    more = plan_more(2, 7, 3, number_starts(SPREAD, 3))
    assert parts_of(more) == [(3, [7, 7]), (4, [8, 8]), (5, [9, 9])]
    made = {Phase.PERFORMANCE: 7, Phase.HOST_SYNC: 3}
    again = plan_again(made, 2, starts=number_starts(SPREAD, 3))
    assert [start for start, _ in parts_of(again)] == [3, 4, 5]
    assert {one.start for one in plan_again(made, 2)} == {None}


def test_only_the_phases_that_are_wanted_are_planned():
    assert plan(COUNTS, 2, {Phase.ACCURACY, Phase.CONTRACT}) == (
        PlannedTrial(Phase.CONTRACT, 0, number=0),
        PlannedTrial(Phase.CONTRACT, 1, number=0),
        PlannedTrial(Phase.CONTRACT, 1, number=1),
        PlannedTrial(Phase.CONTRACT, 0, number=1),
        PlannedTrial(Phase.ACCURACY, 0),
        PlannedTrial(Phase.ACCURACY, 1),
    )
    assert plan(COUNTS, 2, ()) == ()


@pytest.mark.parametrize("phase", Phase)
def test_a_phase_alone_is_as_it_is_among_the_others(phase):
    """Warm-ups come along with the phase that they are for."""
    whole = plan(COUNTS, 2, set(Phase))
    assert plan(COUNTS, 2, {phase}) == tuple(trial for trial in whole if trial.phase is phase)


def test_a_duet_is_made_where_it_is_named():
    usual = tuple(one for one in plan(COUNTS, 2, set(Phase)) if one.phase is not Phase.DUET)
    assert plan(COUNTS, 2) == usual


def test_session_until_decided_begins_with_all_that_is_made_once():
    whole, start = plan(COUNTS, 2), plan_start(COUNTS, 2)
    untimed = {Phase.CONTRACT, Phase.ACCURACY}
    assert start == tuple(t for t in whole if t.phase in untimed or t.warmup)
    assert plan_start(COUNTS, 2, untimed) == plan(COUNTS, 2, untimed)


def test_blocks_together_are_the_timed_trials_of_a_plan():
    blocks = [trial for number in range(7) for trial in plan_block(number, 2, set(Phase))]
    for phase in TIMED_PHASES:
        assert sides_of(blocks, phase)[:8] == [0, 1, 1, 0, 0, 1, 1, 0]
        assert {t.number for t in blocks if t.phase is phase} == set(range(7))
    assert [t for t in blocks if t.phase is Phase.PERFORMANCE] == [
        t for t in plan(COUNTS, 2) if t.phase is Phase.PERFORMANCE and not t.warmup
    ]


def test_block_of_one_phase_has_no_other():
    assert {t.phase for t in plan_block(0, 2, {Phase.HOST_SYNC})} == {Phase.HOST_SYNC}
    assert plan_block(0, 2, {Phase.CONTRACT}) == ()


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


def test_judge_is_reported_which_look_it_is() -> None:
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
