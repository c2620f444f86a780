"""A whole night through ``ci/nightly.sh``: real engine, real asv in an existing environment."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from hybridwatch.store import list_records, list_verdicts, read_run

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
SCENARIO = "smoke/dummy-run"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folders of its own for results and site; the suites and the repository are the real ones."""
    folder = tmp_path_factory.mktemp("night")
    config = {
        "version": 1,
        "project": "night",
        "repo": str(ROOT),
        "branches": ["HEAD"],
        "environment_type": "existing",
        "benchmark_dir": str(ROOT / "benchmarks"),
        "results_dir": str(folder / "asv"),
        "html_dir": str(folder / "html"),
    }
    (folder / "asv.conf.json").write_text(json.dumps(config))
    return folder


def hold(place):
    return subprocess.run(
        ["bash", "ci/nightly.sh", SCENARIO, "--results", str(place / "results"), "--asv-config",
         str(place / "asv.conf.json")],
        cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False,
        # The environments are there, or we were not: nothing may be made anew under this process.
        env={**os.environ, "MAKE": "true"},
    )  # fmt: skip


def test_a_night_ends_with_records_a_site_a_gate_and_a_report(place):
    done = hold(place)
    (night,) = (path for path in (place / "results" / "nights").iterdir() if path.is_dir())
    log = (night / "log.txt").read_text()
    assert f"[1/1] {SCENARIO}: measured" in done.stdout, done.stderr + log
    (record,) = list_records(place / "results")
    run = read_run(record)
    assert [build.label for build in run.builds] == ["cpu-0.27.1"] * 2
    assert not [*run.failed(0), *run.failed(1)]
    assert len(list_verdicts(place / "results")) == 1
    gate = json.loads((night / "gate.json").read_text())
    # Whether an A/A night is green is a matter of statistics; that the status says it is not.
    assert done.returncode == int(not gate["passed"]), done.stdout
    assert SCENARIO in (night / "report.md").read_text()
    assert (place / "html" / "index.html").is_file()
    assert (place / "html" / "graphs" / "summary" / f"{benchmark('ttft')}.json").is_file()

    kept = results_of(place)
    row = kept["results"][benchmark("seconds_per_token")]
    columns = kept["result_columns"]
    # asv saw the contender: seven samples, each the inverse of a throughput in our record.
    samples = row[columns.index("samples")][0]
    ours = sorted(
        1 / sample.values[0]
        for trial in run.trials
        if trial.side == 1 and not trial.warmup
        for sample in trial.samples
        if sample.metric == "output_throughput"
    )
    assert sorted(samples) == pytest.approx(ours, rel=1e-4)
    assert len(samples) >= 7


def test_held_again_it_adds_nothing(place):
    before = sorted(path.name for path in (place / "results" / "nights").iterdir())
    kept = results_of(place)
    again = hold(place)
    assert f"[1/1] {SCENARIO}: measured" in again.stdout
    assert len(list_records(place / "results")) == 1
    assert sorted(path.name for path in (place / "results" / "nights").iterdir()) == before
    assert results_of(place) == kept


def benchmark(name):
    return f"smoke.dummy_run.DummyRun.track_{name}"


def results_of(place):
    (path,) = (
        path
        for path in (place / "asv").glob("*/*.json")
        if path.name not in {"machine.json", "benchmarks.json"}
    )
    return json.loads(path.read_text())
