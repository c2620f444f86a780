"""Records in other tools' forms: read back by the tool where it is installed."""

import csv
import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from statistics import median

import pytest
from asv.benchmarks import Benchmarks
from asv.results import iter_results
from pyarrow import parquet

from hybridwatch.formats.read.history_csv import read_histories
from hybridwatch.formats.write.points import build_points, to_hud
from hybridwatch.metrics import Direction
from hybridwatch.records.run import Source
from hybridwatch.records.store import list_records, read_run, write_run
from tests.builders import a_run, noisy
from tests.command_line import run_verb
from tests.shipped import FOREIGN
from tests.store_builders import REGRESSED
from tests.store_builders import run as whole_run

SUITE = "smoke.padded_graph_rows.PaddedGraphRows"
COMMIT = "1f0a9c3e5b7d1f0a9c3e5b7d1f0a9c3e5b7d1f0a"
JOB = {
    "GITHUB_REPOSITORY": "o/n",
    "GITHUB_REF_NAME": "main",
    "GITHUB_SHA": COMMIT,
    "GITHUB_RUN_ID": "17",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_JOB": "nightly",
    "JOB_ID": "19",
}


@pytest.fixture
def run(tmp_path):
    run = whole_run(REGRESSED)
    write_run(tmp_path / "results", run)
    return run


@pytest.fixture
def export(tmp_path, monkeypatch):
    """Export what the store holds."""
    for variable in JOB:
        monkeypatch.delenv(variable, raising=False)

    def call(*words: object, status: int | None = None):
        results = str(tmp_path / "results")
        return run_verb("export", *words, "--results", results, status=status)

    return call


def test_asv_itself_reads_what_it_is_given(run, export, tmp_path) -> None:
    out = tmp_path / "asv"
    export("--to", "asv", "--out", out, status=0)
    by_env = {found.env_vars["HYBRIDWATCH_BUILD"]: found for found in iter_results(str(out))}
    assert set(by_env) == {build.label for build in run.builds}
    healthy = by_env[run.builds[0].label]
    assert healthy.commit_hash == COMMIT
    name = f"{SUITE}.track_seconds_per_token"
    rates = [value for point in build_points(run) if point.name == "output_throughput_median"
             and point.side == 0 for _, value in point.values]  # fmt: skip
    assert healthy.get_result_value(name, []) == pytest.approx([median(1 / rate for rate in rates)])
    assert healthy.get_result_samples(name, []) == [None], "asv would compare them by rank"
    assert not any("throughput" in key for key in healthy.get_all_result_keys())
    assert f"{SUITE}.track_ttft_p99" in healthy.get_all_result_keys()


def test_asv_show_and_compare_agree_with_our_directions(run, export, tmp_path) -> None:
    project = tmp_path / "project"
    out = project / "results"
    export("--to", "asv", "--out", out)
    (project / "benchmarks").mkdir()
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=project, check=True)
    (project / "asv.conf.json").write_text(
        json.dumps({"version": 1, "project": "p", "repo": ".", "branches": ["HEAD"],
                    "environment_type": "existing", "benchmark_dir": "benchmarks",
                    "results_dir": "results"})
    )  # fmt: skip
    shown = subprocess.run(
        [sys.executable, "-m", "asv", "show", "--machine", run.testbed.id, COMMIT],
        cwd=project, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "padded-graph-rows: ttft_p99" in shown or "track_ttft_p99" in shown
    wrong = f"{SUITE}.track_wrong_answers_recall"
    assert wrong in shown
    better, worse = (
        next(one for one in iter_results(str(out)) if one.env_vars["HYBRIDWATCH_BUILD"] == label)
        for label in (build.label for build in run.builds)
    )
    # Lower is better to asv, and the bad build answers more questions wrong.
    assert worse.get_result_value(wrong, [])[0] > better.get_result_value(wrong, [])[0]
    # What counts exactly has no interval: asv's sign is at once there.
    (rows,) = worse.get_result_stats(f"{SUITE}.track_padded_rows_prefilling", []) or [None]
    assert rows is None


def test_asv_results_that_are_there_stay_known(run, export, tmp_path) -> None:
    out = tmp_path / "asv"
    shutil.copytree(FOREIGN / "asv", out)
    export("--to", "asv", "--out", out)
    benchmarks = json.loads((out / "benchmarks.json").read_text())
    assert "suite.Words.time_upper" in benchmarks
    assert f"{SUITE}.track_ttft" in benchmarks
    assert len(list(iter_results(str(out)))) == 3
    assert Benchmarks.api_version == benchmarks["version"]


@pytest.mark.parametrize("words", [("--build", "b"), ("--scenario", "s"), ("--metric", "ttft")])
def test_asv_results_by_other_names_are_written_as_ours_are(export, tmp_path, words) -> None:
    ingest, other = (words, ()) if words[0] != "--metric" else ((), words)
    store = str(tmp_path / "results")
    run_verb("ingest", FOREIGN / "asv", "--results", store, *ingest)
    out = tmp_path / "asv"
    export("--to", "asv", "--out", out, *other, status=0)
    (before,), (after,) = iter_results(str(FOREIGN / "asv")), iter_results(str(out))
    old = "suite.Serving.track_ttft"
    (new,) = (key for key in after.get_all_result_keys() if key.endswith(".track_ttft"))
    assert new != old
    (expected,), (found,) = before.get_result_samples(old, []), after.get_result_samples(new, [])
    assert found == pytest.approx(expected, rel=1e-12)
    was, now = before.get_result_stats(old, [])[0], after.get_result_stats(new, [])[0]
    # asv's interval of few samples supposes a distribution; ours is then infinite.
    assert {key: was[key] for key in was if "ci" not in key} == pytest.approx(
        {key: now[key] for key in now if "ci" not in key}, rel=1e-4
    )
    assert (before.commit_hash, before.date) == (after.commit_hash, after.date)
    assert after.params["ram"] == "unknown"
    # asv looks for what is before a bracket.
    assert not any("(" in key for key in after.get_all_result_keys())


def test_csv_is_what_detect_reads(tmp_path, export) -> None:
    run = a_run({"ttft": noisy(0.04, 5, 0.01)})
    for day in range(4):
        later = replace(run, id=f"{day:08x}", started_at=run.started_at + timedelta(days=4 - day))
        write_run(tmp_path / "results", later)
    text = export("--to", "csv").output
    histories = read_histories(io.StringIO(text), "x")
    (median,) = [one for one in histories if "_median" in str(one.name)]
    assert len(median.labels) == 4
    assert median.spreads is not None
    assert median.better is Direction.LOWER
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["unit"] for row in rows} == {"s"}
    assert len(rows) == 4 * 5 * 2  # runs, trials, median and p99


def test_one_metric_goes_out_when_one_is_named(run, export) -> None:
    rows = list(csv.DictReader(io.StringIO(export("--to", "csv", "--metric", "ttft").output)))
    assert {row["metric"] for row in rows} == {"ttft"}


def test_parquet_holds_what_csv_holds(run, export, tmp_path) -> None:
    out = tmp_path / "x.parquet"
    export("--to", "parquet", "--out", out, status=0)
    table = parquet.read_table(out)
    rows = list(csv.DictReader(io.StringIO(export("--to", "csv").output)))
    assert table.num_rows == len(rows)
    assert table.column("value").to_pylist() == [float(row["value"]) for row in rows]
    assert table.column("time")[0].as_py() == run.started_at


def test_github_action_benchmark_splits_by_direction(run, export, tmp_path) -> None:
    out = tmp_path / "gab"
    export("--to", "github-action-benchmark", "--out", out, run.id, status=0)
    smaller, bigger = (
        json.loads((out / f"{which}-is-better.json").read_text()) for which in ("smaller", "bigger")
    )
    assert any("ttft_p99" in bench["name"] for bench in smaller)
    assert any("output_throughput" in bench["name"] for bench in bigger)
    assert any("accuracy.recall" in bench["name"] for bench in bigger)
    assert not any("throughput" in bench["name"] for bench in smaller)
    names = [bench["name"] for bench in [*smaller, *bigger]]
    assert len(names) == len(set(names))
    assert all(isinstance(bench["value"], float) for bench in [*smaller, *bigger])


def test_bencher_has_every_value_within_its_bounds(run, export) -> None:
    told = json.loads(export("--to", "bencher").output)
    assert len(told) == 2
    for measures in told.values():
        assert "output_throughput_median" in measures
        for measure in measures.values():
            assert measure["lower_value"] <= measure["value"] <= measure["upper_value"]


@pytest.mark.parametrize("long", ["time_" + "very_" * 12, "\u00b5" * 60])
def test_long_bencher_names_stay_apart_and_are_never_cut_within_a_letter(
    export, tmp_path, long
) -> None:
    name = f"asv_number.{long}"
    run = a_run({name + end: (1.0,) for end in ("a", "b")})
    write_run(tmp_path / "results", run)
    (measures,) = json.loads(export("--to", "bencher").output).values()
    assert len(measures) == len(list(build_points(run)))
    assert all(len(one.encode()) <= 64 and one.startswith(name[:30]) for one in measures)
    assert not any("\ufffd" in one for one in measures)


@pytest.mark.parametrize(
    ("form", "runs", "told"),
    [
        ("bencher", [("a", "b c"), ("a b", "c")], "one name, 'a b c cpu-0.27.1 ttft_median'"),
        ("github-action-benchmark", [("a", "b"), ("a", "c")], "one name, 'a cpu-0.27.1 ttft_me"),
    ],
)
def test_two_points_under_one_name_are_refused(export, tmp_path, form, runs, told) -> None:
    run = a_run({"ttft": (1.0,)})
    for number, (scenario, testbed) in enumerate(runs):
        other = replace(
            run,
            id=f"{number:08x}",
            scenario=replace(run.scenario, id=scenario),
            testbed=replace(run.testbed, id=testbed),
        )
        write_run(tmp_path / "results", other)
    answer = export("--to", form, "--out", tmp_path / "out", status=2)
    assert told in answer.output
    assert "00000000" in answer.output
    assert "00000001" in answer.output


def test_bytes_of_asv_stay_bytes(export, tmp_path) -> None:
    write_run(tmp_path / "results", a_run({"asv_memory.peakmem_x": (4096.0,)}))
    rows = list(csv.DictReader(io.StringIO(export("--to", "csv").output)))
    assert {row["unit"] for row in rows} == {"bytes"}
    export("--to", "asv", "--out", tmp_path / "asv")
    benchmarks = json.loads((tmp_path / "asv" / "benchmarks.json").read_text())
    units = {told["unit"] for told in benchmarks.values() if isinstance(told, dict)}
    assert units == {"bytes"}


@pytest.mark.parametrize("form", ["bencher", "github-action-benchmark"])
def test_forms_without_time_take_one_run_of_each(run, export, tmp_path, form) -> None:
    write_run(tmp_path / "results", replace(run, id="00000001"))
    answer = export("--to", form, "--out", tmp_path / "out", status=2)
    assert "this form holds one run each" in str(answer.output)
    export("--to", form, "--out", tmp_path / "out", run.id, status=0)


def test_hud_has_the_job_where_it_is_known_and_none_of_it_else(run, export, monkeypatch) -> None:
    bare = json.loads(export("--to", "hud").output)
    assert all("metric" in record and "workflow_id" not in record for record in bare)
    for variable, text in JOB.items():
        monkeypatch.setenv(variable, text)
    record = json.loads(export("--to", "hud").output)[0]
    assert record["schema_version"] == "v3"
    assert (record["repo"], record["head_sha"], record["workflow_id"]) == ("o/n", COMMIT, 17)
    infos = [record["benchmark"], record["metric"], *record["runners"]]
    assert all(isinstance(text, str) for info in infos for text in info["extra_info"].values())
    assert all(isinstance(value, float) for value in record["metric"]["benchmark_values"])


@pytest.mark.parametrize(
    ("facts", "unknown", "kind", "left_out"),
    [
        ({}, (), "cpu", set()),
        ({"gpus": ("H100",)}, (), "gpu", set()),
        ({}, ("testbed.gpus",), "unknown", {"gpu_count"}),
        (
            {"cores": 0, "memory_bytes": 0},
            ("testbed.cores", "testbed.memory_bytes"),
            "cpu",
            {"cpu_count", "avail_mem_in_gb"},
        ),
    ],
)
def test_hud_says_of_the_machine_what_is_known(
    export, tmp_path, facts, unknown, kind, left_out
) -> None:
    run = a_run({"ttft": (1.0,)})
    source = Source("aiperf", "x.json", "f" * 64, unknown=unknown) if unknown else None
    testbed = replace(run.testbed, **facts)
    write_run(tmp_path / "results", replace(run, testbed=testbed, source=source))
    (runner,) = json.loads(export("--to", "hud").output)[0]["runners"]
    assert runner["type"] == kind
    assert {"gpu_count", "cpu_count", "avail_mem_in_gb"} - set(runner) == left_out


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("/home/anna/secret/tiny-hybrid/", "tiny-hybrid"),
        ("~/models/tiny-hybrid", "tiny-hybrid"),
        ("../anna/tiny-hybrid", "tiny-hybrid"),
        ("anna/models/tiny-hybrid", "tiny-hybrid"),
        ("file:///home/anna/tiny-hybrid", "tiny-hybrid"),
        (r"C:\Users\anna\tiny-hybrid", "tiny-hybrid"),
        ("ibm-granite/granite-4.0-h-tiny", "ibm-granite/granite-4.0-h-tiny"),
        ("tiny-hybrid", "tiny-hybrid"),
        ("/", "unknown"),
    ],
)
def test_no_local_path_of_a_model_goes_out_to_hud(told, shown) -> None:
    run = a_run({"ttft": (1.0,)})
    trials = tuple(replace(trial, client_result={"model_id": told}) for trial in run.trials)
    (record, *_) = json.loads(to_hud([replace(run, trials=trials)], {}))
    assert record["model"]["name"] == shown


def test_what_cannot_be_told_is_status_2(export, tmp_path) -> None:
    export("--to", "csv", status=2)  # nothing there
    export("--to", "asv", status=2)  # where to?
    run = a_run({"ttft": (1.0,)})
    write_run(tmp_path / "results", replace(run, harness=replace(run.harness, revision=None)))
    answer = export("--to", "asv", "--out", tmp_path / "out", status=2)
    assert "none of these runs has one" in answer.output


def test_ingested_files_of_every_format_can_be_told(export, tmp_path) -> None:
    results = tmp_path / "results"
    run_verb("ingest", FOREIGN, "--results", results)
    rows = list(csv.DictReader(io.StringIO(export("--to", "csv").output)))
    sources = [read_run(path).source for path in list_records(results)]
    formats = {source.format for source in sources if source}
    assert {row["ingested"] for row in rows} == formats
