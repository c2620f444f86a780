"""Whether a known-bad control caught its bug, with the healthy engine clean beside it."""

from dataclasses import replace

import pytest

from hybridwatch.analysis.detection import (
    Detection,
    DetectionPromise,
    complaints_about,
    find_known_bad,
    is_control,
)
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.report import build_report, report_between
from hybridwatch.analysis.verdict import Report
from hybridwatch.records.identity import FixState
from hybridwatch.records.run import Phase
from tests.builders import BASELINE, NEWER, Trials, a_build, a_run, noisy, with_failures

PADDED = "contract.padded_rows_prefilling"
CLEAN: dict[str, Trials] = {PADDED: (0.0,) * 3, "accuracy.recall": "1" * 195 + "0" * 5}
SLOW: tuple[dict[str, Trials], ...] = {"tpot": noisy(1.0, 7, 0.01)}, {"tpot": noisy(2.0, 7, 0.01)}


def told(*sides, **changes) -> Report:
    return build_report(a_run(*sides, **changes))


@pytest.mark.parametrize(
    ("bad", "by"),
    [
        ({**CLEAN, PADDED: (0.0, 4.0, 0.0)}, [PADDED]),
        ({**CLEAN, "accuracy.recall": "1" * 150 + "0" * 50}, ["accuracy.recall"]),
    ],
)
def test_a_broken_contract_or_lost_answers_catch_the_bug(bad, by) -> None:
    control = find_known_bad(told(CLEAN, bad))
    assert (control.detection, control.ok) == (Detection.CAUGHT, True)
    assert [found.metric.id for found in control.by] == by


def test_times_catch_nothing() -> None:
    assert find_known_bad(told(*SLOW)).detection is Detection.NOT_ASKED
    control = find_known_bad(told(CLEAN | SLOW[0], CLEAN | SLOW[1]))
    assert control.detection is Detection.MISSED
    assert list(complaints_about(control)) == [f"{control.scenario}: the bug was not caught"]


def test_a_contract_that_the_healthy_engine_breaks_too_is_a_blemish() -> None:
    control = find_known_bad(told({PADDED: (1.0,)}, {PADDED: (9.0,)}))
    assert (control.detection, control.baseline_violations, control.ok) == (
        Detection.CAUGHT,
        (PADDED,),
        False,
    )


def test_fewer_right_answers_than_the_scenario_expects_are_a_blemish() -> None:
    bad = {**CLEAN, PADDED: (4.0,)}
    promise = DetectionPromise(at_least=(("accuracy.recall", 0.99),))
    assert find_known_bad(told(CLEAN, bad), promise).baseline_violations == ("accuracy.recall",)
    assert find_known_bad(told(CLEAN, bad)).ok


def test_a_fault_that_ends_the_engine_is_caught_by_its_end_and_not_by_the_healthy_ones() -> None:
    deadly = DetectionPromise(deadly=True)
    one = a_run({PADDED: (0.0,)}, {"accuracy.recall": "1"})
    assert find_known_bad(build_report(with_failures(one, 1, Phase.CONTRACT, 1)), deadly).ok
    both = with_failures(with_failures(a_run(*SLOW), 0, Phase.CONTRACT, 1), 1, Phase.CONTRACT, 1)
    assert not find_known_bad(build_report(both), deadly).ok


def test_a_run_with_its_own_fix_switched_off_is_a_control() -> None:
    assert is_control(told(CLEAN, CLEAN))


@pytest.mark.parametrize(
    "contender",
    [
        NEWER,
        BASELINE,
        a_build(fixes={"padded-rows-prefilling": FixState.LACKING}),
        a_build(fixes={"padded-rows-prefilling": FixState.REVERTED}, wheel_digest="9" * 64),
    ],
    ids=["another release", "equal sides", "gone from the code", "other code"],
)
def test_anything_else_is_judged_as_what_it_is(contender) -> None:
    assert not is_control(told(CLEAN, CLEAN, builds=(BASELINE, contender)))


def test_a_fix_that_the_scenario_does_not_guard_makes_no_control() -> None:
    run = a_run(CLEAN, CLEAN)
    assert not is_control(build_report(replace(run, scenario=replace(run.scenario, fix="other"))))


def test_sides_of_two_runs_are_no_control() -> None:
    run = a_run(CLEAN, CLEAN)
    sides = OneSide(run, 0), OneSide(replace(run, id="2222"), 1)
    assert not is_control(report_between(*sides))
