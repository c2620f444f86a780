"""The order of trials."""

from itertools import groupby

from hybridwatch.measure.plan import plan
from hybridwatch.record.run import Phase
from hybridwatch.scenario.scenario import TrialCounts

COUNTS = TrialCounts(contract=2, performance=7, host_sync=3)


def sides_of(trials, phase, *, warmup=False):
    return [trial.side for trial in trials if trial.phase is phase and trial.warmup is warmup]


def test_sides_alternate_so_that_drift_meets_both():
    assert sides_of(plan(COUNTS, 2), Phase.PERFORMANCE)[:8] == [0, 1, 1, 0, 0, 1, 1, 0]


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
