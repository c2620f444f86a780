"""Runs of a build against itself, runs that are stopped, and asv. Real engine.

``tests/engine/test_smoke_run.py`` has the whole way of a user: measure, judge, gate, comment.
"""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
from asv.util import load_json

from hybridwatch.records.run import Phase
from hybridwatch.records.store import list_records, read_run
from tests.engine.conftest import BUILD
from tests.shipped import ROOT
from tests.waiting import wait_until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

HYBRIDWATCH = [sys.executable, "-m", "hybridwatch"]
SCENARIO = "smoke/padded-graph-rows"
SHORT = ("--documents", "100", "--trials", "7")


def hybridwatch(*arguments, status):
    done = subprocess.run(
        [*HYBRIDWATCH, *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def verdicts(report):
    return {f"{c['metric']} {c['statistic']}": c["verdict"] for c in report["comparisons"]}


def run_a_against_a(results):
    """Measure healthy against healthy; gives the metrics that are called changed."""
    sides = ("--build", BUILD, "--build", BUILD)
    hybridwatch("run", SCENARIO, *sides, *SHORT, "--results", results, status=0)
    done = subprocess.run(
        [*HYBRIDWATCH, "compare", "latest", "--results", str(results), "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    found = verdicts(json.loads(done.stdout))
    assert found["contract.padded_rows_prefilling value"] == "equivalent"
    assert found["contract.slots_off_block_table value"] == "equivalent"
    assert not set(found.values()) & {"failed", "missing", "not comparable"}
    return {name for name, verdict in found.items() if verdict in {"regression", "improvement"}}


@pytest.mark.slow  # the nightly test measures A/A too, and calibration counts false alarms
def test_a_against_a_is_neither_regression_nor_improvement(tmp_path):
    """One report in twenty may cry wolf; that is the rate we control. Two in a row must not."""
    changed = run_a_against_a(tmp_path / "first")
    assert not changed or not run_a_against_a(tmp_path / "second"), changed


@pytest.mark.slow
def test_run_until_decided_keeps_its_looks_and_what_it_saw_of_the_machine(tmp_path):
    sides = ("--build", BUILD, "--build", BUILD, *SHORT)
    budget = ("--until-decided", "--max-minutes", "3")
    said = hybridwatch("run", SCENARIO, *sides, *budget, "--results", tmp_path, status=0)
    assert "look 1 of 6, " in said
    run = read_run(list_records(tmp_path)[-1])
    assert run.looks is not None
    assert len(run.looks.planned) == 6
    timed = [t for t in run.trials if t.phase in {Phase.PERFORMANCE, Phase.HOST_SYNC}]
    counted = [trial for trial in timed if not trial.warmup]
    assert len(counted) == 4 * run.looks.made[-1]
    assert all(trial.surroundings is not None for trial in timed)


def family_of(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


@pytest.mark.long("two engines that are stopped while they start")
@pytest.mark.parametrize(
    ("words", "engines", "number", "status"),
    [
        # A run within a phase is stopped by it in test_interruption.py.
        pytest.param((SCENARIO,), 1, signal.SIGINT, 130, marks=pytest.mark.slow),
        # By phases: the engine of the next scenario comes up at the same time.
        ((SCENARIO, "smoke/dummy-run", "--known-bad"), 2, signal.SIGTERM, 130),
        # What a killed owner leaves, tests/unit/system/test_guarded.py shows without an engine.
        pytest.param((SCENARIO,), 1, signal.SIGKILL, -9, marks=pytest.mark.slow),
    ],
)
def test_stopped_run_leaves_no_process_and_no_half_record(tmp_path, words, engines, number, status):
    run = subprocess.Popen(
        [*HYBRIDWATCH, "run", *words, "--results", str(tmp_path)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        # A suite that was started in the background has been told to overhear SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        # Well into the engine's start: server, engine core and worker are there.
        wait_until(
            lambda: len(family_of(run.pid)) >= 4 * engines or run.poll() is not None,
            "the engines' processes are there",
        )
        family = family_of(run.pid)
        run.send_signal(number)
        output, _ = run.communicate(timeout=300)
    finally:
        run.kill()  # a run that outlives a failed test would disturb those after it
        run.wait()
    assert run.returncode == status, output
    _, alive = psutil.wait_procs(family, timeout=300)
    assert [process.cmdline() for process in alive] == []
    assert list_records(tmp_path) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.fixture(scope="module")
def head():
    """The commit under which asv keeps its numbers."""
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["existing", "virtualenv"])
def test_asv_runs_the_suite_and_keeps_what_it_measured(tmp_path, head, way):
    """In the environment that is there, and in one that asv makes for the commit."""
    config = {
        **load_json(str(ROOT / "asv.conf.json"), js_comments=True),
        "repo": str(ROOT),
        "branches": [head],
        "benchmark_dir": str(ROOT / "benchmarks"),
        "env_dir": str(tmp_path / "env"),
        "results_dir": str(tmp_path / "asv"),
    }
    (tmp_path / "asv.conf.json").write_text(json.dumps(config))
    asv = [sys.executable, "-m", "asv"]
    there = {**os.environ, "HOME": str(tmp_path), "HYBRIDWATCH_RESULTS": str(tmp_path)}
    what = ("--python=same", "--set-commit-hash", head) if way == "existing" else (f"{head}^!",)
    done = subprocess.run(
        [*asv, "run", *what, "--show-stderr", "--bench", r"^smoke\.padded_graph_rows\."],
        env=there, cwd=tmp_path, capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (tmp_path / "asv").glob(f"*/{head[:8]}-{way}-*.json")
    kept = json.loads(file.read_text())
    rows = {name.rpartition(".")[2]: row for name, row in kept["results"].items()}
    column = kept["result_columns"].index
    assert rows["track_padded_rows_prefilling"][column("result")] == [0.0]
    throughput = rows["track_output_throughput"]
    assert throughput[column("stats_repeat")][0] >= 7
    (record,) = list_records(tmp_path)
    assert file.parent.name == read_run(record).testbed.id
    (inverse,) = rows["track_seconds_per_token"][column("result")]
    assert inverse * throughput[column("result")][0] == pytest.approx(1, rel=0.05)
