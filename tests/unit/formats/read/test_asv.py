"""Results of asv: what a benchmark is called, in what unit, and what it is compared with."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hybridwatch.analysis.report import report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Report, Verdict
from hybridwatch.formats.read.read import candidates
from hybridwatch.metrics import find_metric
from hybridwatch.records.run import Run
from tests.asv_files import MACHINE, NAN, describe, row, write_benchmarks, write_results
from tests.builders import noisy
from tests.unit.formats.read.reading import read

ONE_TWO = [["1", "2"]]


def samples(run: Run) -> dict[str, float]:
    """The first trial's."""
    return {one.metric: one.values[0] for one in run.trials[0].samples}


def compare(old: Run, new: Run) -> Report:
    return report_between(OneSide(old, 0), OneSide(new, 0))


@pytest.mark.parametrize(
    ("unit", "value", "metric", "own"),
    [
        ("ms", 12.5, "asv_time.track_x", 0.0125),
        ("us", 12.5, "asv_time.track_x", 12.5e-6),
        ("\u00b5s", 12.5, "asv_time.track_x", 12.5e-6),
        ("ns", 2.0, "asv_time.track_x", 2e-9),
        ("minutes", 2.0, "asv_time.track_x", 120.0),
        ("MB", 1.5, "asv_memory.track_x", 1.5e6),
        ("MiB", 2.0, "asv_memory.track_x", 2**21),
        ("%", 25.0, "asv_ratio.track_x", 0.25),
        ("%", -25.0, "asv_ratio.track_x", -0.25),
        ("share", 0.25, "asv_ratio.track_x", 0.25),
        ("req/s", 50.0, "asv_number.track_x", 50.0),
        ("Mbit", 50.0, "asv_number.track_x", 50.0),
    ],
)
def test_what_a_benchmark_tracks_is_in_its_unit(tmp_path, unit, value, metric, own) -> None:
    path = write_results(tmp_path, {"s.C.track_x": row(value)})
    write_benchmarks(tmp_path, describe("s.C.track_x", unit))
    (run,) = read(path)
    assert samples(run) == {metric: pytest.approx(own)}


def test_a_metric_of_ours_may_be_tracked_in_milliseconds(tmp_path) -> None:
    names = ("s.C.track_ttft", "s.C.track_seconds_per_token")
    path = write_results(tmp_path, {name: row(20.0) for name in names})
    write_benchmarks(tmp_path, *(describe(name, "ms") for name in names))
    first, second = map(samples, read(path))
    assert first == {"ttft": pytest.approx(0.02)}
    assert second == {"output_throughput": pytest.approx(50.0)}


@pytest.mark.parametrize("is_there", [True, False])
def test_a_benchmark_that_is_not_described_has_the_unit_of_its_kind(tmp_path, is_there) -> None:
    names = ("s.C.time_a", "s.timeraw_b", "s.C.peakmem_c", "s.mem_d", "s.TimeE", "s.track_f", "s.g")
    path = write_results(tmp_path, {name: row(4.0) for name in names})
    if is_there:
        write_benchmarks(tmp_path, describe("s.C.time_other", "seconds", "time"))
    metrics = [metric for run in read(path) for metric in samples(run)]
    assert metrics == [
        *("asv_time.time_a", "asv_time.timeraw_b", "asv_memory.peakmem_c", "asv_memory.mem_d"),
        *("asv_time.TimeE", "asv_number.track_f", "asv_number.g"),
    ]
    assert find_metric(metrics[0]).unit.value == "s"


def slower(
    folder: Path, *, params: Sequence[Sequence[str]] = (), rest: Sequence[float | None] = ()
) -> tuple[Path, Path]:
    """Two commits; ``s.C.time_a`` takes half as long again in the second."""
    first, second = (
        write_results(
            folder,
            {
                "s.C.time_a": row(
                    center,
                    *rest,
                    params=params,
                    samples=[noisy(center, 10, 0.002, seed=day), *(None for _ in rest)],
                    day=day,
                )
            },
            commit=letter * 40,
            day=day,
        )
        for day, (letter, center) in enumerate((("a", 0.01), ("b", 0.015)))
    )
    write_benchmarks(folder, describe("s.C.time_a", "seconds", "time"))
    return first, second


def test_a_benchmark_that_is_new_in_a_class_leaves_the_others_comparable(tmp_path) -> None:
    old_path, new_path = slower(tmp_path)
    (old,) = read(old_path)
    write_results(
        tmp_path,
        {"s.C.time_a": row(0.015), "s.C.time_b": row(0.02)},
        commit="b" * 40,
        day=1,
    )
    runs = {run.scenario.id: run for run in read(new_path)}
    assert set(runs) == {"asv/s.C.time_a", "asv/s.C.time_b"}
    (found,) = compare(old, runs["asv/s.C.time_a"]).comparisons
    assert found.verdict is not Verdict.NOT_COMPARABLE
    assert found.effect == pytest.approx(0.5, rel=0.02)


def test_another_version_of_a_benchmark_is_compared_with_none_before(tmp_path) -> None:
    found = [
        read(
            write_results(
                tmp_path,
                {"s.C.time_a": row(center, version=letter * 64), "s.C.time_b": row(0.02)},
                commit=letter * 40,
                day=day,
            )
        )
        for day, (letter, center) in enumerate((("a", 0.01), ("b", 0.05)))
    ]
    changed, same = (compare(old, new) for old, new in zip(*found, strict=True))
    assert [one.verdict for one in changed.comparisons] == [Verdict.NOT_COMPARABLE]
    assert [one.effect for one in same.comparisons] == [0.0]


def test_a_skipped_parameter_is_no_failure_and_doubts_no_other(tmp_path) -> None:
    (old,), (new,) = map(read, slower(tmp_path, params=ONE_TWO, rest=[NAN]))
    assert [trial.failure for trial in new.trials] == [None] * 10
    report = compare(old, new)
    assert [one.metric.id for one in report.comparisons] == ["asv_time.time_a(1)"]
    assert not any("failed" in doubt for doubt in report.comparisons[0].doubts)


def test_a_failed_parameter_is_a_failure(tmp_path) -> None:
    runs = read(slower(tmp_path, params=ONE_TWO, rest=[None])[0])
    reasons = [trial.failure.reason for run in runs for trial in run.trials if trial.failure]
    assert reasons == ["s.C.time_a(2) failed"]


def test_an_infinite_number_is_a_failure_that_says_so(tmp_path) -> None:
    (run,) = read(write_results(tmp_path, {"s.track_x": row(float("inf"))}))
    (trial,) = run.trials
    assert trial.failure is not None
    assert trial.failure.reason == "s.track_x gave an infinite number, which no record holds"


def test_a_benchmark_that_was_skipped_whole_has_no_value_and_no_failure(tmp_path) -> None:
    results = {"s.time_x": row(NAN, NAN, params=ONE_TWO)}
    (old,), (new,) = (read(write_results(tmp_path, results, commit=letter * 40)) for letter in "ab")
    assert [(trial.samples, trial.failure) for trial in new.trials] == [((), None)]
    assert compare(old, new).comparisons == ()


@pytest.mark.parametrize(
    ("text", "known"),
    [("32", 0), ("16384", 0), ("32 GB", 0), ("33554432", 0), ("", 0), ("34359738368", 2**35)],
)
def test_memory_that_a_person_typed_in_no_bytes_is_unknown(tmp_path, text, known) -> None:
    path = write_results(tmp_path, {"s.track_x": row(1.0)}, machine={**MACHINE, "ram": text})
    (run,) = read(path)
    assert run.testbed.memory_bytes == known
    assert run.source is not None
    assert ("testbed.memory_bytes" in run.source.unknown) is not known


@pytest.mark.parametrize(
    ("name", "configuration", "results"),
    [
        ("asv.conf.json", '{"results_dir": ".asv/results"}', ".asv/results"),
        ("asv.conf.json", '{// "results_dir": "a",\n "results_dir": ".asv/r" /* x */}', ".asv/r"),
        ("asv.conf.jsonc", "{url: 'http://x', results_dir: '.asv/results'}", ".asv/results"),
        ("asv_bench/asv.conf.json", '{"results_dir": "../.asv"}', ".asv"),
        ("asv.conf.json", '{"version": 1}', "results"),
        ("asv.conf.json", '{"results_dir": "seen"}', "seen"),
    ],
)
def test_a_project_has_its_results_where_its_configuration_says(
    tmp_path, name, configuration, results
) -> None:
    path = write_results(tmp_path / results, {"s.track_x": row(1.0)}).resolve()
    settings = tmp_path / name
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(configuration)
    assert [found.resolve() for found in candidates(tmp_path)].count(path) == 1


@pytest.mark.parametrize("results", ["../.other", "/.other", ".missing"])
def test_results_outside_the_named_folder_are_left_there(tmp_path, results) -> None:
    write_results(tmp_path / ".other", {"s.track_x": row(1.0)})
    project = tmp_path / "project"
    project.mkdir()
    (project / "asv.conf.json").write_text(f'{{"results_dir": "{results}"}}')
    assert [path.name for path in candidates(project)] == ["asv.conf.json"]
