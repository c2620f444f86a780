"""A record of one build: gate, comparison and dashboard say the same of it, without a baseline."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import cli
from hybridwatch.database.queries import open_index
from hybridwatch.history.alerts import find_alerts
from hybridwatch.history.checkout import Checkout
from hybridwatch.records.store import write_run
from tests.builders import BASELINE, RECENT, a_run

WRONG = "contract.wrong_tokens"
GOOD = {WRONG: (0.0,), "ttft": (0.1, 0.2)}
BROKEN = GOOD | {WRONG: (27.0,)}


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run a verb on a store of its own, without the policy of the checkout."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(cli, list(words))


def stored(*sides, **changes) -> None:
    write_run(Path("results"), a_run(*sides, **{"started_at": RECENT, **changes}))


@pytest.mark.parametrize("words", [("gate", "latest"), ("gate",)])
def test_a_broken_engine_stops_the_gate(call, words) -> None:
    stored(BROKEN)
    answer = call(*words)
    assert answer.exit_code == 1
    assert answer.stdout.splitlines()[-1].startswith(
        "fail: A contract broke: contract.wrong_tokens"
    )


@pytest.mark.parametrize("words", [("gate", "latest"), ("gate",)])
def test_a_healthy_engine_passes_and_its_times_are_said_not_to_be_judged(call, words) -> None:
    stored(GOOD)
    answer = call(*words)
    assert answer.exit_code == 0, answer.output
    assert "no baseline for run of one build, so its times are not judged" in answer.output


def test_compare_and_its_json_say_what_was_expected(call) -> None:
    stored(BROKEN)
    assert call("compare", "latest").exit_code == 1
    report = json.loads(call("compare", "latest", "--json").stdout)
    assert report["baseline"]["build"]["label"] == "expected"
    (one,) = report["comparisons"]
    assert (one["baseline"]["center"], one["contender"]["center"]) == (0, 27)


def test_a_comment_names_the_broken_contract(call) -> None:
    stored(BROKEN)
    assert "A contract broke" in call("comment", "--dry-run", "latest").stdout


def test_the_dashboard_has_an_open_alert_until_the_engine_is_mended(call) -> None:
    stored(BROKEN)
    results = Path("results")

    def alerts():
        now = datetime.now(UTC)
        return find_alerts(results, open_index(results), Checkout(), now)

    (alert,) = alerts()
    assert (alert.subject.baseline, alert.subject.contender) == ("expected", BASELINE.label)
    assert alert.cause.lead.metric == WRONG
    stored(GOOD, id="22222222", started_at=RECENT + timedelta(minutes=1))
    (after,) = alerts()
    assert after.status is not alert.status
