"""A count that repeats exactly is judged exactly: 3 host syncs are not 5."""

import pytest

from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.policy import Policy, Rule
from hybridwatch.analysis.report import Terms, build_report, report_between
from hybridwatch.analysis.verdict import Comparison, Design, Verdict
from hybridwatch.reports.reason_text import because
from tests.builders import a_run, noisy

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
    ("old", "new", "verdict"),
    [
        ((3.0,) * 3, (5.0,) * 3, Verdict.REGRESSION),
        ((5.0,) * 3, (3.0,) * 4, Verdict.IMPROVEMENT),
        ((3.0,) * 3, (3.0,) * 3, Verdict.EQUIVALENT),
        ((0.0,) * 3, (1.0,) * 3, Verdict.REGRESSION),
        ((0.0,) * 3, (0.0,) * 3, Verdict.EQUIVALENT),
    ],
)
def test_different_counts_differ_and_equal_ones_are_equivalent(old, new, verdict) -> None:
    assert compared(old, new).verdict is verdict


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
    run = a_run({SYNCS: (100.0,) * 5}, {SYNCS: (102.0,) * 5})
    allowed = Policy((Rule(SYNCS, margin=0.05),))
    (found,) = report_between(OneSide(run, 0), OneSide(run, 1), Terms(policy=allowed)).comparisons
    assert found.verdict is Verdict.EQUIVALENT


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
