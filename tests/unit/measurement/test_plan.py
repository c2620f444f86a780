"""The order of trials."""

from itertools import groupby
from pathlib import Path

import pytest

from hybridwatch.measurement.plan import (
    TIMED_PHASES,
    USUAL_PHASES,
    PlannedTrial,
    list_phases,
    plan,
    plan_block,
    plan_start,
)
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.scenarios.scenario import TrialCounts

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
