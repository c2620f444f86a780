"""The verbs of a fleet, as somebody types them."""

import json
import sys
from importlib import import_module

import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import cli
from hybridwatch.orchestration.fleet.cluster import HealthCheck
from tests.unit.orchestration.fleet import pretended
from tests.unit.orchestration.fleet.test_matrix import GOOD


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Calls a verb on a results folder of its own, with a matrix beside it."""
    (tmp_path / "fleet.toml").write_text(GOOD.replace('expect = { kernel = "6.1.0" }\n', ""))
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("PYTHONPATH", ".")

    def call(*words: str):
        return CliRunner().invoke(cli, ["fleet", *words])

    return call


@pytest.fixture
def plan(call, tmp_path):
    return lambda *words: call("plan", str(tmp_path / "fleet.toml"), *words)


@pytest.fixture
def pretend(monkeypatch):
    """Measurements that are none, in processes of their own, on this machine."""
    cluster = import_module("hybridwatch.orchestration.fleet.local_cluster").LocalCluster
    draining = import_module("hybridwatch.orchestration.fleet.driver").DriverDeps
    monkeypatch.setattr(cluster.__init__, "__defaults__", (pretended.do,))
    monkeypatch.setattr(draining.__init__, "__defaults__", (pretended.measurement,))


def test_a_queue_is_planned_drained_and_shown(call, plan, pretend, tmp_path) -> None:
    assert "4 new jobs" in plan("--night", "one").output
    assert "0 new jobs, 4 known already" in plan("--night", "one").output
    ran = call("run", "--label", "kind=epyc", "--patience", "0")
    assert ran.exit_code == 0, ran.output
    assert "5 records stored" in ran.output  # with the A/A
    status = json.loads(call("status", "--json").output)
    assert status["nights"][0]["done"] == 5
    assert status["troubles"] == []
    (host,) = json.loads(call("hosts", "--json").output)
    assert (host["standing"], host["series"]) == ("ready", 3)
    assert len(list((tmp_path / "results" / "records").glob("*/*.json"))) == 5
    job = json.loads(plan("--night", "one", "--json").output)["jobs"][0]["job"]
    assert "made up on" in call("logs", job[:8]).output


def test_it_ends_with_the_news(call, plan, pretend, tmp_path, monkeypatch) -> None:
    """The channel has no address here: what there is to tell is kept, and the status says so."""
    file = tmp_path / "notify.toml"
    file.write_text('[[slack]]\nname = "team"\nurl_from = "T_NO_SLACK"\n')
    home = import_module("hybridwatch.cli.notify")
    monkeypatch.setattr(home, "home_or_shipped", lambda: tmp_path)
    assert plan("--night", "one").exit_code == 0
    ran = call("run", "--label", "kind=epyc", "--patience", "0")
    assert "notify: " in ran.output
    assert (ran.exit_code == 1) is ("kept to be sent again" in ran.output)


def test_what_no_host_can_measure_is_left_and_told(call, plan, pretend) -> None:
    plan("--night", "one")
    ran = call("run", "--patience", "0", "--json")
    assert ran.exit_code == 1
    left = json.loads(ran.stdout)["left"]
    assert left == {"no host is of the testbed epyc": 4}
    assert "waiting  4 jobs: no host is of the testbed epyc" in call("status").output


def test_jobs_are_cancelled_by_key_or_by_night(call, plan) -> None:
    job = json.loads(plan("--night", "one", "--json").output)["jobs"][0]["job"]
    assert call("cancel", job).output == "1 job cancelled\n"
    assert json.loads(call("cancel", "--night", "one", "--json").output) == {"cancelled": 3}
    assert "expected a night of the queue" in call("cancel", "--night", "two").output
    assert call("cancel").exit_code == 2


def test_a_person_bars_lifts_and_retires_a_host(call, plan, pretend) -> None:
    plan()
    call("run", "--label", "kind=epyc", "--patience", "0")
    (host,) = json.loads(call("hosts", "--json").output)
    for option, standing in (("--quarantine", "quarantined"), ("--lift", "new")):
        words = ["hosts", option, host["name"], "--reason", "a new fan", "--json"]
        (found,) = json.loads(call(*words).output)
        assert (found["standing"], found["reason"]) == (standing, "a new fan")
    assert "retired" in call("hosts", "--retire", host["name"]).output
    assert "expected one of" in call("hosts", "--lift", "nobody").output


def test_alerts_ask_within_a_budget_that_the_matrix_has(call, plan, pretend, tmp_path) -> None:
    matrix = tmp_path / "fleet.toml"
    assert "confirm: missing" in call("confirm", str(matrix)).output
    matrix.write_text(f"{matrix.read_text()}\n[confirm]\nper_day = 2\n")
    assert "there is no queue yet" in call("confirm", str(matrix)).output
    plan()
    asked = json.loads(call("confirm", str(matrix), "--json").output)
    assert asked == {"new": 0, "jobs": []}


@pytest.mark.parametrize("form", ["--github", "--buildkite"])
def test_a_matrix_for_a_pipeline_fills_no_queue(plan, tmp_path, form) -> None:
    printed = json.loads(plan(form).output)
    assert len(next(iter(printed.values()))) == 4
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("words", [["status"], ["hosts"]])
def test_an_empty_queue_is_told(call, words) -> None:
    told = call(*words)
    assert told.exit_code == 0
    assert "hybridwatch fleet" in told.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["logs", "1a2b"], "there is no queue yet"),
        (["cancel", "1a2b"], "there is no queue yet"),
        (["run", "--label", "kind"], "expected KEY=VALUE, found 'kind'"),
        (["run", "--address", "auto", "--gpus", "1"], "only --address local takes them"),
    ],
)
def test_a_wrong_call_is_told(call, words, told) -> None:
    answer = call(*words)
    assert answer.exit_code == 2
    assert told in answer.output


def test_a_job_that_is_not_there_is_told(call, plan) -> None:
    plan()
    assert "expected a key of 16 digits" in call("logs", "zzz").output


def test_without_ray_the_extra_is_named(call, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "hybridwatch.orchestration.fleet.ray_cluster", raising=False)
    answer = call("run", "--address", "auto")
    assert answer.exit_code == 2
    assert 'pip install "hybridwatch[fleet]"' in answer.output


def test_the_pretended_proof_is_no_real_one() -> None:
    assert pretended.do(HealthCheck()) is pretended.STEADY
