"""Known-bad controls are red on purpose; a record of one build is judged without a baseline."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hybridwatch.database.queries import open_index
from hybridwatch.history.alerts import find_alerts
from hybridwatch.history.checkout import Checkout
from hybridwatch.records.store import write_run
from tests.broken_engines import dead_contender
from tests.builders import BASELINE, NEWER, RECENT, SCENARIO, a_run
from tests.command_line import run_verb

PADDED = "contract.padded_rows_prefilling"
GOOD = {PADDED: (0.0,)}
BAD = {PADDED: (4.0,)}
RULE = '[[rule]]\nmetric = "*"\naction = "block"\n'
CAUGHT = "1 of 1 bug caught, the healthy engine clean"


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run a verb on a store of its own, without the policy of the checkout."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    return lambda *words, status=None: run_verb(*words, status=status)


@pytest.fixture
def store(tmp_path):
    def write(*sides, **changes) -> None:
        write_run(tmp_path / "results", a_run(*sides, **{"started_at": RECENT, **changes}))

    return write


@pytest.mark.parametrize("words", [("gate", "latest"), ("gate",)])
def test_a_gate_passes_a_bug_that_was_caught(call, store, words) -> None:
    store(GOOD, BAD)
    assert call(*words, status=0).output.splitlines()[-1] == f"pass: {CAUGHT}."


@pytest.mark.parametrize("words", [("gate", "latest"), ("gate",)])
def test_two_builds_that_were_named_are_compared_whatever_their_labels_lack(
    call, store, words
) -> None:
    store(GOOD, BAD, known_bad=False)
    assert call(*words, status=1).output.splitlines()[-1].startswith("fail: A contract broke")


@pytest.mark.parametrize("words", [("gate", "latest"), ("gate",)])
@pytest.mark.parametrize(
    ("sides", "said"),
    [((GOOD, GOOD), "0 of 1 bug caught"), ((BAD, {PADDED: (9.0,)}), "engine NOT clean")],
)
def test_a_gate_fails_a_control_that_shows_no_sight(call, store, words, sides, said) -> None:
    store(*sides)
    answer = call(*words, status=1)
    assert said in answer.output
    assert ("not caught\n" in answer.output) is (sides[0] is GOOD)


def test_a_control_whose_engine_died_says_why_nothing_was_caught(call, tmp_path) -> None:
    write_run(tmp_path / "results", dead_contender())
    answer = call("gate", "latest", status=1)
    assert "CUDA error: an illegal memory access was encountered" in answer.output


def test_json_of_a_gate_tells_what_a_control_showed(call, store) -> None:
    store(GOOD, BAD)
    one = json.loads(call("gate", "latest", "--json").stdout)
    assert (one["passed"], one["control"]["sight"]) == (True, "caught")
    (control,) = json.loads(call("gate", "--json").stdout)["controls"]
    assert control["report"]["bad_news"] is True


def test_a_control_next_to_a_regression_does_not_hide_it(call, store) -> None:
    store(GOOD, BAD)
    other = replace(SCENARIO, id="x/y")
    store(GOOD, BAD, id="22222222", builds=(BASELINE, NEWER), scenario=other)
    assert call("gate", status=1).output.splitlines()[-1].endswith(f"Controls: {CAUGHT}.")


def test_a_control_is_no_measurement_of_an_expected_scenario_next_to_comparisons(
    call, store, own_policy
) -> None:
    policy = own_policy(f'expected = ["smoke/padded-graph-rows"]\n{RULE}')
    store(GOOD, BAD)
    call("gate", *policy, status=0)
    other = replace(SCENARIO, id="smoke/dummy-run")
    store(GOOD, GOOD, id="22222222", builds=(BASELINE, NEWER), scenario=other)
    assert "smoke/padded-graph-rows: missing" in call("gate", *policy, status=1).output


def test_comment_and_compare_say_the_same_sentence(call, store) -> None:
    store(GOOD, BAD)
    assert call("comment", "--dry-run", "latest").output.startswith(f"**{CAUGHT}.**")
    assert f"red on purpose: {CAUGHT}." in call("compare", "latest", status=1).output


@pytest.mark.parametrize("verb", [("gate",), ("comment", "--dry-run")])
def test_a_folder_that_is_not_there_is_a_wrong_call(call, verb) -> None:
    assert "nowhere: no such folder" in call(*verb, "--results", "nowhere", status=2).stderr


def test_a_folder_of_controls_and_looks_at_releases_tries_the_suite_alone(
    call, store, own_policy
) -> None:
    policy = own_policy(f'expected = ["smoke/padded-graph-rows", "smoke/dummy-run"]\n{RULE}')
    store(GOOD, BAD)
    store(GOOD, BAD, id="22222222", scenario=replace(SCENARIO, id="smoke/dummy-run"))
    for number in range(2):
        store(GOOD, id=f"3333333{number}", builds=(NEWER,), started_at=RECENT)
    answer = call("gate", *policy, status=0)
    assert "no baseline for run of one build, so its times are not judged: " in answer.output
    last = answer.output.splitlines()[-1]
    assert last.endswith("Controls: 2 of 2 bugs caught, the healthy engine clean.")


WRONG = "contract.wrong_tokens"
HEALTHY = {WRONG: (0.0,), "ttft": (0.1, 0.2)}
BROKEN = HEALTHY | {WRONG: (27.0,)}


@pytest.mark.parametrize("words", [("gate", "latest"), ("gate",)])
def test_a_broken_engine_stops_the_gate(call, store, words) -> None:
    store(BROKEN)
    answer = call(*words, status=1)
    assert answer.stdout.splitlines()[-1].startswith(
        "fail: A contract broke: contract.wrong_tokens"
    )


@pytest.mark.parametrize("words", [("gate", "latest"), ("gate",)])
def test_a_healthy_engine_passes_and_its_times_are_said_not_to_be_judged(
    call, store, words
) -> None:
    store(HEALTHY)
    answer = call(*words, status=0)
    assert "no baseline for run of one build, so its times are not judged" in answer.output


def test_compare_and_its_json_say_what_was_expected(call, store) -> None:
    store(BROKEN)
    call("compare", "latest", status=1)
    report = json.loads(call("compare", "latest", "--json").stdout)
    assert report["baseline"]["build"]["label"] == "expected"
    (one,) = report["comparisons"]
    assert (one["baseline"]["center"], one["contender"]["center"]) == (0, 27)


def test_a_comment_names_the_broken_contract(call, store) -> None:
    store(BROKEN)
    assert "A contract broke" in call("comment", "--dry-run", "latest").stdout


def test_the_dashboard_has_an_open_alert_until_the_engine_is_mended(call, store) -> None:
    store(BROKEN)
    results = Path("results")

    def alerts():
        now = datetime.now(UTC)
        return find_alerts(results, open_index(results), Checkout(), now)

    (alert,) = alerts()
    assert (alert.subject.baseline, alert.subject.contender) == ("expected", BASELINE.label)
    assert alert.cause.lead.metric == WRONG
    store(HEALTHY, id="22222222", started_at=RECENT + timedelta(minutes=1))
    (after,) = alerts()
    assert after.status is not alert.status
