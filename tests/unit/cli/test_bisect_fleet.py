"""``hybridwatch bisect --fleet``, as somebody types it, while a real driver drains the queue."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from hybridwatch.cli.main import cli
from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.database.schema import JOB
from hybridwatch.orchestration.fleet.cluster import JobCommand, Node, Result, Work
from hybridwatch.orchestration.fleet.driver import DriverSettings, QueueDriver
from hybridwatch.orchestration.fleet.job import parse_job_row
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.orchestration.fleet.measuring import LocalCluster, build_job_command
from hybridwatch.records.store import list_records, read_run
from tests.checkout import a_clone, commit, make_home
from tests.unit.orchestration.fleet.pretended import METRIC, STEADY, measurement, planted

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
def home(tmp_path, monkeypatch) -> Path:
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


def bisect(*words: str):
    return CliRunner().invoke(cli, ["bisect", SCENARIO, *words, "--json"])


def test_the_release_is_named_confirmed_and_recorded(home, tmp_path) -> None:
    results = tmp_path / "results"
    with drained(results, change=5):
        done = bisect(*ENDS)
        again = bisect(*ENDS)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["answer"]["metric"] == METRIC
    assert said["answer"]["culprit"]["name"] == "tiny-1.5"
    assert said["repeat"].endswith("--fleet made-up")
    assert said["notes"] == [
        "files and fixes were not looked at: the builds are on other hosts",
    ]
    (record,) = list_records(results)
    assert str(record) == said["confirmation"]["record"]
    assert [build.label for build in read_run(record).builds] == ["tiny-1.4", "tiny-1.5"]
    assert again.exit_code == 0, again.output
    assert "0 measurements in" in again.stderr
    assert list_records(results) == [record]


def test_commits_are_jobs_that_say_how_a_host_makes_them(home, tmp_path) -> None:
    clone = a_clone(tmp_path / "clone")
    shas = [commit(clone, f"{n} (#{n})", {"vllm/v1/a.py": f"a = {n}\n"}) for n in (1, 2, 3)]
    words = ("--good", shas[0], "--bad", shas[2], "--repo", str(clone), "--base", "tiny-1.0")
    done = bisect(*words, "--fleet", "made-up", "--max-minutes", "0.001")
    assert done.exit_code == 2
    assert "is still waiting: no driver has run it (hybridwatch fleet run)" in done.output
    with Database(find_database_url(tmp_path / "results")).reading() as connection:
        jobs = [parse_job_row(row) for row in connection.execute(select(JOB))]
    job = next(job for job in jobs if job.builds == (f"bisect-{shas[0][:10]}",))
    install, add = (words[4:] for words in build_job_command(job, "h0", "h0").prepare)
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
def test_what_hosts_cannot_be_asked_for_is_refused(home, words, why) -> None:
    done = bisect(*ENDS, *words)
    assert done.exit_code == 2
    assert why in " ".join(done.output.split())


def test_a_fleet_without_a_budget_is_not_asked(home) -> None:
    (home / "fleet.toml").write_text(MATRIX)
    done = bisect(*ENDS)
    assert done.exit_code == 2
    assert "confirm: missing; expected a table with per_day" in done.output
