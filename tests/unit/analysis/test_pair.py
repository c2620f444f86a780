"""Pairing within blocks: which trials meet, and what it buys.

A count that repeats exactly is judged exactly: 3 host syncs are not 5.

One number per trial: to the last bit what NumPy gives, in a fraction of its time.
"""

import random
from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis import rank
from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.pair import _REDUCERS, build_pair
from hybridwatch.analysis.policy import Policy, Rule
from hybridwatch.analysis.report import Terms, build_report, report_between
from hybridwatch.analysis.subject import OneSide, Subject, list_sides
from hybridwatch.analysis.verdict import Comparison, Design, Verdict
from hybridwatch.metrics import find_metric
from hybridwatch.records.run import Failure, Run
from hybridwatch.reports.reason_text import because
from tests.builders import a_run, noisy

TPOT = Subject(find_metric("tpot"), "median")


def blocks(run: Run):
    found = build_pair(TPOT, OneSide(run, 0), OneSide(run, 1)).blocks
    assert found is not None
    return found


def judged(run: Run, metric: str = "tpot") -> Comparison:
    (found,) = (c for c in build_report(run).comparisons if c.metric.id == metric)
    return found


def in_turn(run: Run) -> Run:
    """The same trials as A B B A."""
    trials = list(run.trials)
    for first in range(2, len(trials) - 1, 4):
        trials[first], trials[first + 1] = trials[first + 1], trials[first]
    return replace(run, trials=tuple(replace(t, index=n) for n, t in enumerate(trials)))


def failing(run: Run, index: int) -> Run:
    """The run with one trial failed in its place."""
    trials = [
        replace(t, samples=(), failure=Failure("it died", "")) if t.index == index else t
        for t in run.trials
    ]
    return replace(run, trials=tuple(trials))


def two_sides(n: int = 20, change: float = 1.0, seed: int = 1, shared: float = 0.0) -> Run:
    """CV 3 % a side; blocks share a log-normal state of the machine of that spread."""
    rng = np.random.default_rng(seed)
    state = rng.normal(0, shared, n)
    base, cont = (np.exp(state + rng.normal(0, 0.03, n)) for _ in range(2))
    return in_turn(a_run({"tpot": tuple(base.tolist())}, {"tpot": tuple((change * cont).tolist())}))


def test_the_kth_trials_of_both_sides_meet() -> None:
    run = in_turn(a_run({"tpot": (1.0, 2.0, 3.0)}, {"tpot": (10.0, 20.0, 30.0)}))
    assert [trial.side for trial in run.trials] == [0, 1, 1, 0, 0, 1]
    found = blocks(run)
    assert (found.baseline, found.contender) == ((1.0, 2.0, 3.0), (10.0, 20.0, 30.0))
    assert found.log_ratios == pytest.approx([np.log(10)] * 3)


@pytest.mark.parametrize("lost", [2, 3])
def test_a_failed_trial_takes_its_block_along_and_no_other(lost) -> None:
    run = failing(a_run({"tpot": (1.0, 2.0, 3.0)}, {"tpot": (10.0, 20.0, 30.0)}), lost)
    found = blocks(run)
    assert (found.baseline, found.contender, found.planned) == ((1.0, 3.0), (10.0, 30.0), 3)


def test_left_out_blocks_are_reported() -> None:
    run = failing(two_sides(12), 5)
    found = judged(run)
    assert found.pairs == 11
    assert any("1 of 12 blocks left out" in doubt for doubt in found.doubts)
    values = a_run({"tpot": (float("nan"), *noisy(1.0, 11))}, {"tpot": noisy(1.0, 12)})
    assert any("1 of 12 blocks left out" in doubt for doubt in judged(values).doubts)
    assert not any("left out" in doubt for doubt in judged(two_sides(12)).doubts)


def test_warm_ups_are_in_no_block() -> None:
    run = two_sides(10)
    warm = [replace(run.trials[0], index=-2 + side, side=side, warmup=True) for side in (0, 1)]
    assert blocks(replace(run, trials=(*warm, *run.trials))) == blocks(run)


def test_sides_of_two_runs_or_one_after_the_other_make_no_blocks() -> None:
    run = two_sides(12)
    other = replace(run, id="22222222")
    assert build_pair(TPOT, OneSide(run, 0), OneSide(other, 1)).blocks is None
    (apart,) = report_between(OneSide(run, 0), OneSide(other, 1)).comparisons
    assert (apart.design, apart.test) == (Design.UNPAIRED, "Mann-Whitney")
    behind = sorted(run.trials, key=lambda trial: trial.side)
    late = replace(run, trials=tuple(replace(t, index=n) for n, t in enumerate(behind)))
    found = judged(late)
    assert found.design is Design.UNPAIRED
    assert any("not measured in turn" in doubt for doubt in found.doubts)


def test_the_same_run_read_twice_still_has_its_blocks() -> None:
    run = two_sides(12)
    again = replace(run, trials=tuple(replace(trial) for trial in run.trials))
    (found,) = report_between(OneSide(run, 0), OneSide(again, 1)).comparisons
    assert found == judged(run)


@pytest.mark.parametrize(
    ("n", "design", "test"),
    [
        (5, Design.UNPAIRED, "Mann-Whitney"),
        (6, Design.PAIRED, "sign-flip"),
        (20, Design.PAIRED, "sign-flip"),
    ],
)
def test_the_number_of_blocks_alone_chooses_the_rule(n, design, test) -> None:
    found = judged(two_sides(n, shared=0.2))
    assert (found.design, found.test) == (design, test)
    assert found.pairs == (n if design is Design.PAIRED else None)
    assert found.assumption
    assert found.relevance == found.metric.margin == 0.03


def test_few_blocks_can_still_find_one_change_among_many_tests() -> None:
    """What a signed-rank test of seven blocks, p 0.016 at best, could not."""
    quiet = {name: noisy(1.0, seed=3) for name in ("itl", "e2el", "ttft", "request_throughput")}
    slow = a_run({**quiet, "tpot": noisy(1.0, 7, 0.01)}, {**quiet, "tpot": noisy(1.2, 7, 0.01, 2)})
    found = judged(slow)
    assert found.verdict is Verdict.REGRESSION
    assert (found.p_holm or 1.0) < 0.05


def test_pairing_finds_what_drift_hides_from_two_groups() -> None:
    run = two_sides(20, 1.05, shared=0.2)
    found = judged(run)
    assert found.verdict is Verdict.REGRESSION
    assert found.effect == pytest.approx(0.05, abs=0.03)
    assert found.baseline is not None
    assert found.contender is not None
    assert rank.rank_p(found.baseline.values, found.contender.values) > 0.05


def test_a_hiccup_in_one_trial_neither_hides_nor_makes_a_change() -> None:
    for change, verdict in ((1.06, Verdict.REGRESSION), (1.0, Verdict.EQUIVALENT)):
        run = two_sides(25, change, seed=4)
        trials = list(run.trials)
        (sample,) = trials[7].samples
        trials[7] = replace(trials[7], samples=(replace(sample, values=(3 * sample.values[0],)),))
        assert judged(replace(run, trials=tuple(trials))).verdict is verdict


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ((3.0,) * 3, (5.0,) * 3, Verdict.REGRESSION),
        ((5.0,) * 3, (3.0,) * 4, Verdict.IMPROVEMENT),
        ((3.0,) * 3, (3.0,) * 3, Verdict.EQUIVALENT),
        ((0.0,) * 3, (1.0,) * 3, Verdict.REGRESSION),
        ((0.0,) * 3, (0.0,) * 3, Verdict.EQUIVALENT),
        ((2.0,) * 7, (0.0,) * 7, Verdict.IMPROVEMENT),
        ((3.0,) * 12, (4.0,) * 12, Verdict.REGRESSION),
        ((3.0,) * 12, (3.0,) * 12, Verdict.EQUIVALENT),
        ((0.0,) * 12, (2.0,) * 12, Verdict.REGRESSION),
        ((3.0,) * 12, (3.01,) * 12, Verdict.REGRESSION),
    ],
)
def test_counts_without_spread_are_judged_exactly(old, new, verdict) -> None:
    found = compared(old, new)
    assert (found.verdict, found.design) == (verdict, Design.EXACT)


def test_a_count_that_rarely_differs_is_no_change() -> None:
    name = "host_syncs_per_step"
    found = judged(a_run({name: (3.0,) * 20}, {name: (3.0,) * 15 + (4.0,) * 5}), name)
    assert found.effect == 0.0
    assert found.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("shared", [0.0, 0.2])
def test_five_per_cent_is_found_by_twenty_blocks_and_nothing_is_not(shared) -> None:
    found = [judged(two_sides(20, 1.05, seed, shared)).verdict for seed in range(60)]
    quiet = [judged(two_sides(20, 1.0, seed, shared)).verdict for seed in range(60)]
    assert found.count(Verdict.REGRESSION) >= 0.95 * 60
    assert quiet.count(Verdict.REGRESSION) <= 0.01 * 60


SYNCS = "host_syncs_per_step"
TIMED = ("ttft", "itl", "e2el", "tpot", "output_throughput", "request_throughput")
OTHERS = {name: noisy(0.04, 7, 0.01, seed) for seed, name in enumerate(TIMED)}


def compared(old, new) -> Comparison:
    report = build_report(a_run({**OTHERS, SYNCS: old}, {**OTHERS, SYNCS: new}))
    (found,) = (c for c in report.comparisons if c.metric.id == SYNCS)
    return found


def test_a_count_that_rises_in_every_trial_stops_the_gate() -> None:
    report = build_report(a_run({**OTHERS, SYNCS: (3.0,) * 5}, {**OTHERS, SYNCS: (5.0,) * 5}))
    assert gate(report).reasons == (f"{SYNCS} mean: regression",)


def test_it_has_no_p_value_and_takes_no_part_in_the_control() -> None:
    with_count = build_report(a_run({**OTHERS, SYNCS: (3.0,) * 5}, {**OTHERS, SYNCS: (5.0,) * 5}))
    assert with_count.tests == build_report(a_run(OTHERS, OTHERS)).tests
    found = compared((3.0,) * 5, (5.0,) * 5)
    assert (found.p_value, found.p_holm, found.interval) == (None, None, None)
    assert (found.test, found.design) == ("exact", Design.EXACT)
    assert "needs no test" in found.assumption


@pytest.mark.parametrize(
    ("old", "new"),
    [((3.0,) * 2, (5.0,) * 2), ((3.0,) * 5, (5.0, 5.0, 5.0, 5.0, 5.5))],
)
def test_two_trials_or_one_that_differs_repeat_nothing(old, new) -> None:
    assert compared(old, new).design is not Design.EXACT


def test_equal_times_are_a_coarse_clock_and_are_tested() -> None:
    times = {"ttft": (0.04,) * 7}
    (found, *_) = build_report(a_run(times, times)).comparisons
    assert found.test == "sign-flip"


def test_a_policy_may_allow_a_margin() -> None:
    """Any more is known to be worse, and no test has to say so."""
    run = a_run({SYNCS: (100.0,) * 5}, {SYNCS: (102.0,) * 5})
    terms = Terms(policy=Policy((Rule(SYNCS, margin=0.05),)))
    old, new = list_sides(run)
    (worse,) = report_between(old, new, terms).comparisons
    (better,) = report_between(new, old, terms).comparisons
    assert (worse.verdict, better.verdict) == (Verdict.WORSE_WITHIN, Verdict.EQUIVALENT)
    assert because(worse, 0.05).endswith("within the margin of 5.0 %: worse within margin")


def test_between_two_runs_a_count_within_their_noise_is_open() -> None:
    old, new = a_run({SYNCS: (100.0,) * 5}), a_run({SYNCS: (102.0,) * 5}, id="22222222")
    terms = Terms(noise={(SYNCS, "mean"): 0.02})
    (found,) = report_between(OneSide(old, 0), OneSide(new, 0), terms).comparisons
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "differ by so much" in because(found, 0.05)


def test_drift_of_the_machine_reaches_no_exact_count() -> None:
    old, new = a_run({SYNCS: (3.0,) * 5}), a_run({SYNCS: (5.0,) * 5}, id="22222222")
    (found,) = report_between(OneSide(old, 0), OneSide(new, 0)).comparisons
    assert (found.verdict, found.doubts) == (Verdict.REGRESSION, ())


def test_an_explanation_says_what_every_trial_counted() -> None:
    assert because(compared((3.0,) * 5, (5.0,) * 5), 0.05) == (
        "every trial of the contender counts 5 where each of the baseline's counts 3, and what "
        "never varies needs no test, this change is in the bad direction: regression"
    )
    assert because(compared((3.0,) * 5, (3.0,) * 5), 0.05) == (
        "every trial of both sides counts 3: equivalent"
    )


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [("median", np.median), ("p99", lambda values: np.quantile(values, 0.99))],
)
def test_reducers_give_what_numpy_gives_to_the_last_bit(statistic, expected) -> None:
    rng = random.Random(5)
    for _ in range(3000):
        values = [
            rng.lognormvariate(-3, 2) * rng.choice((1, 1, -1))
            for _ in range(rng.choice((1, 2, 3, 4, 12, 40, 101, 501)))
        ]
        assert _REDUCERS[statistic](values) == float(expected(values)), values
