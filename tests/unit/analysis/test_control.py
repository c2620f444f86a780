"""Controls: a scenario must see its own bug, and nothing where there is nothing.

Whether a known-bad control caught its bug, with the healthy engine clean beside it.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.analysis.control import ControlKind, a_a_control, known_bad_control
from hybridwatch.analysis.detection import (
    Detection,
    DetectionPromise,
    complaints_about,
    find_known_bad,
    is_control,
)
from hybridwatch.analysis.report import build_report, report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Report
from hybridwatch.metrics import WRONG_TOKENS
from hybridwatch.records.identity import FixState
from hybridwatch.records.run import STOPPED, Phase
from hybridwatch.scenarios.load import load_scenario
from tests.builders import BASELINE, CONTENDER, NEWER, Trials, a_build, a_run, noisy, with_failures

PADDED = "contract.padded_rows_prefilling"
SLOTS = "contract.slots_off_block_table"
RECALL = "accuracy.recall"
GOLDEN = Path(__file__).parents[2] / "golden"
SCENARIO = load_scenario(GOLDEN / "scenario" / "example.toml", GOLDEN)
"""Expects no padded row that says prefilling, and 95 % of recall."""

RIGHT = "1" * 196 + "0" * 4
HEALTHY: dict[str, Trials] = {PADDED: (0.0,) * 3, WRONG_TOKENS: (0.0,) * 3, RECALL: RIGHT}
BROKEN: dict[str, Trials] = {PADDED: (7.0, 9.0, 8.0)}
GARBLED: dict[str, Trials] = {WRONG_TOKENS: (30.0, 0.0, 41.0)}
FORGETFUL: dict[str, Trials] = {RECALL: "1" * 120 + "0" * 80}


def known_bad(*changes):
    """The control against a side that differs from the healthy one so."""
    bad = dict(HEALTHY)
    for change in changes:
        bad |= change
    return known_bad_control(SCENARIO, a_run(HEALTHY, bad), 0, 1)


def in_harm(harm, *changes):
    """The same for a scenario with another harm."""
    scenario = SCENARIO.model_copy(update={"harm": harm})
    bad = dict(HEALTHY)
    for change in changes:
        bad |= change
    return scenario, a_run(HEALTHY, bad)


def dying(run, side, count):
    """The run with as many contract trials of a side less, whose engine died in them."""
    mine = [t for t in run.trials if t.side == side and t.phase is Phase.CONTRACT]
    kept = [trial for trial in run.trials if trial not in mine[:count]]
    failed = with_failures(
        replace(run, trials=tuple(kept)), side, Phase.CONTRACT, count, "the engine ended"
    )
    trials = [
        replace(trial, failure=replace(trial.failure, engine_died=True)) if trial.failure else trial
        for trial in failed.trials
    ]
    return replace(failed, trials=tuple(trials))


def a_a(run):
    return a_a_control(SCENARIO, run, 0, 1)


def equal_builds(run):
    return replace(run, builds=(BASELINE, BASELINE))


# Against the engine without its fix.


def test_a_bug_that_breaks_a_contract_and_garbles_tokens_is_distinguished() -> None:
    control = known_bad(BROKEN, GARBLED)
    assert control.ok
    assert (control.scenario, control.fix) == (SCENARIO.id, SCENARIO.fix)
    assert (control.kind, control.metric) == (ControlKind.KNOWN_BAD, PADDED)
    assert control.detail == (
        f"{PADDED} 0 -> 9, 3 of 3 seeds; {WRONG_TOKENS} 0 -> 41, 2 of 3 seeds"
    )


def test_of_a_run_that_was_stopped_what_was_measured_tells() -> None:
    """What was not measured is no failure of an engine; any other reason is one."""
    bare = {PADDED: (0.0,) * 3, WRONG_TOKENS: (0.0,) * 3}
    run = a_run(bare, bare | BROKEN | GARBLED)
    for reason, ok in ((STOPPED, True), ("the engine ended", False)):
        stopped = with_failures(run, 0, Phase.ACCURACY, 1, reason)
        assert known_bad_control(SCENARIO, stopped, 0, 1).ok is ok


def test_wrong_answers_are_heard_as_well_as_wrong_tokens() -> None:
    control = known_bad(BROKEN, FORGETFUL)
    assert control.ok
    assert f"{RECALL} 98.0% -> 60.0%, n = 200, adjusted p " in control.detail


def test_any_contract_will_do() -> None:
    healthy = HEALTHY | {SLOTS: (0.0,) * 3}
    bad = HEALTHY | GARBLED | {SLOTS: (2.0,) * 3}
    control = known_bad_control(SCENARIO, a_run(healthy, bad), 0, 1)
    assert control.ok
    assert control.metric == SLOTS


NO_CONTRACT = "no contract is broken in every seed without the fix; "
NOT_HEARD = "neither tokens nor answers are wrong without the fix"


@pytest.mark.parametrize(
    ("changes", "metric", "said"),
    [
        ((BROKEN,), PADDED, f"^{NOT_HEARD}; "),
        (({PADDED: (7.0, 0.0, 8.0)}, GARBLED), PADDED, f"{PADDED} 0 -> 8, 2 of 3 seeds"),
        ((GARBLED, FORGETFUL), f"{WRONG_TOKENS}|{RECALL}", f"^{NO_CONTRACT}"),
        ((), WRONG_TOKENS, f"^{NO_CONTRACT}{NOT_HEARD}$"),
    ],
    ids=["nobody hears it", "one seed does not see it", "no broken contract", "nothing broken"],
)
def test_what_shows_too_little_is_not_distinguished(changes, metric, said) -> None:
    control = known_bad(*changes)
    assert not control.ok
    assert re.fullmatch(metric, control.metric)
    assert re.search(said, control.detail)


def test_a_bad_engine_that_does_better_is_not_distinguished() -> None:
    run = a_run(HEALTHY | BROKEN | GARBLED, HEALTHY)
    assert not known_bad_control(SCENARIO, run, 0, 1).ok


def test_a_slower_engine_is_not_distinguished_by_its_times() -> None:
    fast, slow = ({**HEALTHY, "ttft": noisy(center, 7, 0.01)} for center in (0.04, 0.08))
    control = known_bad_control(SCENARIO, a_run(fast, slow), 0, 1)
    assert not control.ok
    assert "ttft" not in control.detail


@pytest.mark.parametrize("side", [0, 1])
def test_a_failed_trial_spoils_the_control(side) -> None:
    run = a_run(HEALTHY, HEALTHY | BROKEN | GARBLED)
    failed = with_failures(run, side, Phase.CONTRACT, 1, "the engine hung")
    control = known_bad_control(SCENARIO, failed, 0, 1)
    assert not control.ok
    assert "the engine hung" in control.detail
    assert control.metric == PADDED


def test_sides_of_a_run_of_three_are_reported_by_their_places() -> None:
    builds = (BASELINE, CONTENDER, BASELINE)
    run = a_run(HEALTHY, HEALTHY | BROKEN | GARBLED, HEALTHY, builds=builds)
    assert known_bad_control(SCENARIO, run, 0, 1).ok
    assert not known_bad_control(SCENARIO, run, 0, 2).ok
    assert a_a_control(SCENARIO, run, 0, 2).ok
    assert not a_a_control(SCENARIO, run, 0, 1).ok


# Against the same engine again.


def test_equal_engines_are_left_in_peace() -> None:
    control = a_a(equal_builds(a_run(HEALTHY, HEALTHY)))
    assert control.ok
    assert (control.scenario, control.fix) == (SCENARIO.id, SCENARIO.fix)
    assert (control.kind, control.metric) == (ControlKind.A_A, WRONG_TOKENS)
    assert control.detail == "nothing differs: 6 contract trials, 200 paired answers"


def test_made_up_weights_need_no_answers_and_others_do() -> None:
    contracts = {name: values for name, values in HEALTHY.items() if "accuracy" not in name}
    run = equal_builds(a_run(contracts, contracts))
    expect = SCENARIO.expect.model_copy(update={"at_least": {}})
    asking = SCENARIO.model_copy(update={"expect": expect})
    mute = asking.model_copy(update={"accuracy": None})
    assert a_a_control(mute, run, 0, 1).ok
    assert not a_a_control(asking, run, 0, 1).ok
    nothing = equal_builds(a_run({}, {}))
    assert not a_a_control(mute, nothing, 0, 1).ok


def test_times_of_equal_engines_may_differ() -> None:
    fast, slow = ({**HEALTHY, "ttft": noisy(center, 7, 0.01)} for center in (0.04, 0.08))
    assert a_a(equal_builds(a_run(fast, slow))).ok


@pytest.mark.parametrize("wrong_side", [0, 1])
def test_one_wrong_token_differs(wrong_side) -> None:
    sides = [HEALTHY, HEALTHY]
    sides[wrong_side] = HEALTHY | {WRONG_TOKENS: (0.0, 0.0, 1.0)}
    control = a_a(equal_builds(a_run(*sides)))
    assert not control.ok
    assert control.metric == WRONG_TOKENS
    assert WRONG_TOKENS in control.detail


def without(metric: str) -> dict[str, Trials]:
    return {name: values for name, values in HEALTHY.items() if name != metric}


LOW = f"the healthy engine is not as expected: {RECALL}: expected at least 0.95, found 0.9"


@pytest.mark.parametrize(
    ("healthy", "same", "said"),
    [
        (HEALTHY | {RECALL: "1" * 180 + "0" * 20},) * 2 + (f"^{LOW}; {LOW}$",),
        (HEALTHY | BROKEN,) * 2 + (f"{PADDED}: expected exactly 0, found 9",),
        (without(RECALL),) * 2 + (f"{RECALL}: expected at least 0.95, found no value",),
        (HEALTHY, without(WRONG_TOKENS), f"{WRONG_TOKENS}: missing"),
    ],
)
def test_a_healthy_engine_that_is_not_as_it_should_be_is_reported(healthy, same, said) -> None:
    control = a_a(equal_builds(a_run(healthy, same)))
    assert not control.ok
    assert re.search(said, control.detail)


def test_expected_speed_is_no_matter_of_controls() -> None:
    """Controls time nothing, so a bound on a time or a rate cannot be broken here."""
    expect = SCENARIO.expect.model_copy(update={"at_least": {"output_throughput": 1e9}})
    scenario = SCENARIO.model_copy(update={"expect": expect})
    assert a_a_control(scenario, equal_builds(a_run(HEALTHY, HEALTHY)), 0, 1).ok


def test_a_failed_trial_is_no_clean_a_a() -> None:
    run = with_failures(equal_builds(a_run(HEALTHY, HEALTHY)), 1, Phase.ACCURACY, 1, "it died")
    control = a_a(run)
    assert not control.ok
    assert "it died" in control.detail


# Harms that do not reach the answers, or leave none.


def test_a_fault_that_stays_in_the_state_needs_a_contract_alone() -> None:
    scenario, run = in_harm("state", BROKEN)
    assert known_bad_control(scenario, run, 0, 1).ok
    scenario, run = in_harm("state", GARBLED)
    blind = known_bad_control(scenario, run, 0, 1)
    assert not blind.ok
    assert blind.detail.startswith("no contract is broken in every seed")


def test_an_engine_that_dies_in_every_trial_is_distinguished() -> None:
    scenario, run = in_harm("death")
    control = known_bad_control(scenario, dying(run, 1, 3), 0, 1)
    assert control.ok
    assert control.metric == "engine_died"
    assert control.detail == "the engine died in 3 of 3 trials; the engine ended"


@pytest.mark.parametrize(("deaths", "lived"), [(0, 3), (2, 1)])
def test_an_engine_that_lives_through_a_trial_is_not(deaths, lived) -> None:
    scenario, run = in_harm("death")
    control = known_bad_control(scenario, dying(run, 1, deaths), 0, 1)
    assert not control.ok
    assert f"the engine lived through {lived} contract trials" in control.detail


def test_a_healthy_engine_that_dies_too_tells_nothing() -> None:
    scenario, run = in_harm("death")
    control = known_bad_control(scenario, dying(dying(run, 1, 3), 0, 1), 0, 1)
    assert not control.ok
    assert control.detail.startswith("the healthy engine failed: the engine ended")


def test_a_trial_that_failed_for_another_reason_is_no_death() -> None:
    scenario, run = in_harm("death")
    failed = with_failures(run, 1, Phase.CONTRACT, 3, "no occasion")
    assert not known_bad_control(scenario, failed, 0, 1).ok


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
