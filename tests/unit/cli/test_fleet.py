"""The verbs of a fleet and ``bisect --fleet``, as somebody types them."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest
from sqlalchemy import select

from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.database.schema import JOB
from hybridwatch.orchestration.fleet.cluster import JobCommand, Node, Result, Work
from hybridwatch.orchestration.fleet.driver import DriverSettings, QueueDriver
from hybridwatch.orchestration.fleet.job import parse_job_row
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.orchestration.fleet.measuring import LocalCluster, build_job_command
from hybridwatch.records.store import list_records, read_run
from tests.checkout import a_clone, commit, make_home
from tests.command_line import run_verb
from tests.unit.orchestration.fleet import pretended
from tests.unit.orchestration.fleet.pretended import METRIC, STEADY, measurement, planted
from tests.unit.orchestration.fleet.test_matrix import GOOD


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Calls a verb on a results folder of its own, with a matrix beside it."""
    (tmp_path / "fleet.toml").write_text(GOOD.replace('expect = { kernel = "6.1.0" }\n', ""))
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("PYTHONPATH", ".")

    def call(*words: str, status: int | None = None):
        return run_verb("fleet", *words, status=status)

    return call


@pytest.fixture
def plan(call, tmp_path):
    return lambda *words, status=None: call(
        "plan", str(tmp_path / "fleet.toml"), *words, status=status
    )


@pytest.fixture
def pretend(monkeypatch):
    """Measurements that are none, in processes of their own, on this machine."""
    cluster = import_module("hybridwatch.orchestration.fleet.measuring").LocalCluster
    draining = import_module("hybridwatch.orchestration.fleet.driver").QueueDriver
    monkeypatch.setattr(cluster.__init__, "__defaults__", (pretended.do,))
    monkeypatch.setattr(draining.__init__, "__defaults__", (pretended.measurement,))


def test_a_queue_is_planned_drained_and_shown(call, plan, pretend, tmp_path) -> None:
    assert "4 new jobs" in plan("--night", "one").output
    assert "0 new jobs, 4 known already" in plan("--night", "one").output
    ran = call("run", "--label", "kind=epyc", "--patience", "0", status=0)
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
    plan("--night", "one", status=0)
    ran = call("run", "--label", "kind=epyc", "--patience", "0")
    assert "notify: " in ran.output
    assert (ran.exit_code == 1) is ("kept to be sent again" in ran.output)


def test_what_no_host_can_measure_is_left_and_told(call, plan, pretend) -> None:
    plan("--night", "one")
    ran = call("run", "--patience", "0", "--json", status=1)
    left = json.loads(ran.stdout)["left"]
    assert left == {"no host is of the testbed epyc": 4}
    assert "waiting  4 jobs: no host is of the testbed epyc" in call("status").output


def test_jobs_are_cancelled_by_key_or_by_night(call, plan) -> None:
    job = json.loads(plan("--night", "one", "--json").output)["jobs"][0]["job"]
    assert call("cancel", job).output == "1 job cancelled\n"
    assert json.loads(call("cancel", "--night", "one", "--json").output) == {"cancelled": 3}
    assert "expected a night of the queue" in call("cancel", "--night", "two").output
    call("cancel", status=2)


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
def test_an_empty_queue_is_reported(call, words) -> None:
    assert "hybridwatch fleet" in call(*words, status=0).output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["logs", "1a2b"], "there is no queue yet"),
        (["cancel", "1a2b"], "there is no queue yet"),
        (["run", "--label", "kind"], "expected KEY=VALUE, found 'kind'"),
        (["run", "--address", "auto", "--gpus", "1"], "only --address local takes them"),
    ],
)
def test_a_wrong_call_is_reported(call, words, told) -> None:
    assert told in call(*words, status=2).output


def test_a_job_that_is_not_there_is_reported(call, plan) -> None:
    plan()
    assert "expected a key of 16 digits" in call("logs", "zzz").output


def test_without_ray_the_extra_is_named(call, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "hybridwatch.orchestration.fleet.ray_cluster", raising=False)
    assert 'pip install "hybridwatch[fleet]"' in call("run", "--address", "auto", status=2).output


def test_the_pretended_proof_is_no_real_one() -> None:
    assert pretended.do(None) is pretended.STEADY


SCENARIO = "smoke/padded"
RELEASES = [f"1.{number}" for number in range(9)]
MATRIX = """
[[testbed]]
name = "made-up"
labels = { kind = "made-up" }

[[measure]]
scenarios = ["smoke"]
builds = [["tiny-1.0"]]
testbeds = ["made-up"]
"""
CONFIRM = "\n[confirm]\nper_day = 100\n"
ENDS = ("--good", "1.0", "--bad", "1.8", "--fleet", "made-up")


@pytest.fixture
def fleet_home(tmp_path, monkeypatch) -> Path:
    """A home with nine releases, of which this machine needs none, and a fleet."""
    root: Path = make_home(tmp_path / "home", SCENARIO)
    file = root / "engine" / "builds.toml"
    more = (f'\n[builds."tiny-{r}"]\nlike = "tiny-1.0"\nrelease = "{r}"\n' for r in RELEASES[1:])
    file.write_text(file.read_text() + "".join(more))
    (root / "fleet.toml").write_text(MATRIX + CONFIRM)
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(root))
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr("hybridwatch.orchestration.fleet.search._LOOK_S", 0.05)
    return root


@contextmanager
def drained(results: Path, change: int) -> Iterator[None]:
    """Call drivers one after the other, as a service manager does; two hosts measure."""
    bring = planted(change)

    def do(work: Work, is_wanted=lambda: True) -> Result:
        return bring(work, datetime.now(UTC)) if isinstance(work, JobCommand) else STEADY

    enough = threading.Event()

    def drive() -> None:
        results.mkdir(exist_ok=True)
        job_queue = JobQueue(Database(find_database_url(results)))
        job_queue.make()
        nodes = [Node(name, {"kind": "made-up"}) for name in ("h0", "h1")]
        while not enough.wait(0.05):
            cluster = LocalCluster(nodes, do)
            settings = DriverSettings(wait_s=0.05, patience_s=0.0)
            QueueDriver(job_queue, cluster, results, lambda _: None, settings, measurement).drain()

    driver = threading.Thread(target=drive)
    driver.start()
    try:
        yield
    finally:
        enough.set()
        driver.join()


def bisect(*words: str, status: int | None = None):
    return run_verb("bisect", SCENARIO, *words, "--json", status=status)


def test_the_release_is_named_confirmed_and_recorded(fleet_home, tmp_path) -> None:
    results = tmp_path / "results"
    with drained(results, change=5):
        done = bisect(*ENDS)
        again = bisect(*ENDS)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["answer"]["metric"] == METRIC
    assert said["answer"]["culprit"]["name"] == "tiny-1.5"
    assert said["repeat"].endswith("--fleet made-up")
    assert said["notes"] == ["files and fixes were not looked at: the builds are on other hosts"]
    (record,) = list_records(results)
    assert str(record) == said["confirmation"]["record"]
    assert [build.label for build in read_run(record).builds] == ["tiny-1.4", "tiny-1.5"]
    assert again.exit_code == 0, again.output
    assert "0 measurements in" in again.stderr
    assert list_records(results) == [record]


def test_commits_are_jobs_that_say_how_a_host_makes_them(fleet_home, tmp_path) -> None:
    clone = a_clone(tmp_path / "clone")
    shas = [commit(clone, f"{n} (#{n})", {"vllm/v1/a.py": f"a = {n}\n"}) for n in (1, 2, 3)]
    words = ("--good", shas[0], "--bad", shas[2], "--repo", str(clone), "--base", "tiny-1.0")
    done = bisect(*words, "--fleet", "made-up", "--max-minutes", "0.001", status=2)
    assert "is still waiting: no driver has run it (hybridwatch fleet run)" in done.output
    with Database(find_database_url(tmp_path / "results")).reading() as connection:
        jobs = [parse_job_row(row) for row in connection.execute(select(JOB))]
    job = next(job for job in jobs if job.builds == (f"bisect-{shas[0][:10]}",))
    prepare = build_job_command(job, "h0", "h0").prepare
    install, add = (words[words.index("engine") + 1 :] for words in prepare)
    assert install == ("install", "tiny-1.0")
    assert add == (
        *("add", job.builds[0], "--source", str(clone), "--commit", shas[0]),
        *("--base", "tiny-1.0"),
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--metric", "starts"), "--metric starts: not with --fleet"),
        (("--install",), "--install: not with --fleet"),
        (("--repo", "."), "needs --base"),
        (("--fleet", "other"), "--fleet other: expected a testbed of"),
    ],
)
def test_what_hosts_cannot_be_asked_for_is_refused(fleet_home, words, why) -> None:
    assert why in " ".join(bisect(*ENDS, *words, status=2).output.split())


def test_a_fleet_without_a_budget_is_not_asked(fleet_home) -> None:
    (fleet_home / "fleet.toml").write_text(MATRIX)
    assert "confirm: missing; expected a table with per_day" in bisect(*ENDS, status=2).output
