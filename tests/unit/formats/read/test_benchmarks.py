"""Benchmarks that are names with values: pytest-benchmark, google-benchmark, and two services."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.errors import IngestError
from hybridwatch.metrics import Direction, find_metric
from hybridwatch.records.run import Run, Sample
from tests.shipped import FOREIGN
from tests.unit.formats.read.reading import only, read

PYTEST = FOREIGN / "pytest-benchmark/0001_rounds.json"
GOOGLE = FOREIGN / "google-benchmark/repetitions.json"
GITHUB = FOREIGN / "made-up/github-action-benchmark/output.json"
BENCHER = FOREIGN / "made-up/bencher/results.json"
SUM = "asv_time.sum_thousand/iterations:50/repeats:3"


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def samples(run: Run, trial: int = 0) -> dict[str, Sample]:
    return {sample.metric: sample for sample in run.trials[trial].samples}


def lacks(run: Run) -> list[str]:
    assert run.source is not None
    return [field for field in run.source.unknown if field.startswith("direction of")]


def test_rounds_of_pytest_benchmark_are_values_of_one_trial() -> None:
    told, run = json.loads(PYTEST.read_text()), only(PYTEST)
    assert run.scenario.id == "pytest-benchmark/test_text.py"
    found = samples(run)
    assert list(found) == [
        "asv_time.test_upper[a]",
        "asv_time.test_upper[b]",
        "asv_time.TestSplit::test_lines",
    ]
    rounds = told["benchmarks"][0]["stats"]["data"]
    assert found["asv_time.test_upper[a]"].values == tuple(rounds)
    assert (run.testbed.id, run.testbed.cores) == ("lab-1", 2)
    assert run.harness.version == "pytest-benchmark 5.3.1"
    assert run.builds[0].label == "CPython-3.11.7"


def test_pytest_benchmark_without_rounds_has_its_median(tmp_path) -> None:
    told = json.loads(PYTEST.read_text())
    del told["benchmarks"][0]["stats"]["data"]
    found = samples(only(write(tmp_path / "a.json", told)))["asv_time.test_upper[a]"]
    assert (found.values, found.statistic) == (
        (told["benchmarks"][0]["stats"]["median"],),
        "median",
    )


@pytest.mark.parametrize(("dirty", "commit"), [(False, "a" * 40), (True, None)])
def test_pytest_benchmark_names_the_commit_unless_files_were_changed(
    tmp_path, dirty, commit
) -> None:
    told = json.loads(PYTEST.read_text())
    made = "2026-11-01T10:00:00+02:00"
    told["commit_info"] |= {"id": "a" * 40, "time": made, "dirty": dirty}
    source = only(write(tmp_path / "a.json", told)).source
    assert source is not None
    assert source.commit == commit
    assert source.committed_at == (datetime(2026, 11, 1, 8, tzinfo=UTC) if commit else None)


def test_one_more_benchmark_leaves_the_series_of_the_others_alone(tmp_path) -> None:
    told = json.loads(PYTEST.read_text())
    del told["benchmarks"][1:]
    fewer = only(write(tmp_path / "a.json", told))
    assert fewer.scenario == only(PYTEST).scenario


def test_repetitions_of_google_benchmark_are_trials() -> None:
    run = only(GOOGLE)
    assert run.scenario.id == "google-benchmark/bench.py"
    assert run.harness.version == "google-benchmark 1.9.5"
    times = [samples(run, trial)[SUM].values[0] for trial in range(3)]
    assert times == pytest.approx([1.05238e-05, 1.08671e-05, 7.85017e-05], rel=1e-5)
    failures = [trial.failure.reason for trial in run.trials if trial.failure]
    assert failures == ["skipped/iterations:5: planted"]


def test_google_benchmark_with_aggregates_only_has_the_median(tmp_path) -> None:
    told = json.loads(GOOGLE.read_text())
    told["benchmarks"] = [row for row in told["benchmarks"] if row["run_type"] == "aggregate"]
    run = only(write(tmp_path / "a.json", told))
    assert len(run.trials) == 1
    assert samples(run)[SUM].statistic == "median"
    assert samples(run)[SUM].values == pytest.approx((1.08671e-05,), rel=1e-5)


def test_a_unit_says_which_way_is_better_or_the_value_is_left_out() -> None:
    run = only(GITHUB)
    assert {name: one.values for name, one in samples(run).items()} == {
        "ttft": (0.05,),
        "asv_time.decode": (0.0125,),
        "benchmark_score.throughput": (640.0,),
    }
    assert find_metric("benchmark_score.throughput").better is Direction.HIGHER
    assert lacks(run) == ["direction of unit %"]


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("bigger-is-better.json", "benchmark_score.cache hits"),
        ("customSmallerIsBetter.json", "asv_number.cache hits"),
    ],
)
def test_the_name_of_a_file_may_say_which_way_is_better(tmp_path, name, metric) -> None:
    run = only(write(tmp_path / name, json.loads(GITHUB.read_text())[3:]))
    assert samples(run)[metric].values == (71.0,)
    assert lacks(run) == []


def test_measures_that_are_bencher_s_own_have_the_units_that_it_gives_them() -> None:
    run = only(BENCHER)
    assert {name: one.values for name, one in samples(run).items()} == {
        "asv_time.suite::parse latency": (8.8e-08,),
        "benchmark_score.suite::parse throughput": (5.5,),
        "asv_memory.engine file-size": (42.0,),
        "asv_time.engine build-time": (1.5,),
    }
    assert lacks(run) == ["direction of measure wakeups"]


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ([{"name": "a", "unit": "%", "value": 1}], r"way is better, .* found direction of unit %"),
        ({"a": {"wakeups": {"value": 1}}}, "found direction of measure wakeups"),
        ([{"name": "a", "unit": "s", "value": 1}] * 2, "expected every benchmark once, found one"),
        ([{"name": "a", "unit": "s", "value": "1"}], "value: expected a finite number, found '1'"),
        ([{"name": "a", "unit": "s", "value": -1}], "expected numbers of at least 0, found -1"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, told, reason) -> None:
    with pytest.raises(IngestError, match=reason):
        read(write(tmp_path / "out.json", told))
