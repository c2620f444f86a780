"""Rows of InferenceX and perf-eval: what the client said goes out, and comes back the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.records.run import Phase, Run
from hybridwatch.records.store import list_records, read_run, write_run
from tests.builders import a_build, a_run
from tests.command_line import run_verb

ROWS = Path(__file__).parents[3] / "fixtures" / "foreign" / "made-up" / "inferencex"
PLAIN = {"dtype": "bfloat16", "data_parallel_size": "1", "disaggregated": "False"}


def client(scale: float = 1.0, **changes: Any) -> dict[str, Any]:
    """What the load client writes, as far as a row has it."""
    written = {"model_id": "/models/tiny-hybrid", "max_concurrency": 3, "completed": 12}
    written |= {"total_input_tokens": 576, "total_output_tokens": 384, "request_rate": "inf"}
    written |= {"output_throughput": 300.0 * scale, "total_token_throughput": 750.0 * scale}
    for name, value in (("ttft", 120.0), ("tpot", 5.0), ("itl", 4.5), ("e2el", 275.0)):
        words = {"mean": 1.1, "median": 1.0, "std": 0.1, "p99": 2.0}
        written |= {f"{word}_{name}_ms": value * by / scale for word, by in words.items()}
    return written | changes


def a_served(*flags: dict[str, str], scales: tuple[float, ...] = (1.0, 0.5, 2.0), **changes) -> Run:
    """A run with a build for each set of flags, and the client's JSON of every timed trial."""
    values = {"output_throughput": tuple(300.0 * scale for scale in scales)}
    builds = tuple(a_build(f"cpu-{at}", flags={**PLAIN, **one}) for at, one in enumerate(flags))
    run = a_run(*[values] * len(flags), builds=builds)
    results = {side: iter(scales) for side in range(len(flags))}
    trials = (
        replace(trial, client_result=client(next(results[trial.side]), **changes))
        if trial.phase is Phase.PERFORMANCE and not trial.warmup
        else trial
        for trial in run.trials
    )
    return replace(run, trials=tuple(trials))


@pytest.fixture
def export(tmp_path):
    """Write runs to a store and export them; gives the answer and the rows by file."""

    def call(form: str, *runs: Run) -> tuple[Any, dict[str, list[Any]]]:
        for run in runs:
            write_run(tmp_path / "results", run)
        out = tmp_path / "out" / "rows.jsonl" if form == "perf-eval" else tmp_path / "out"
        words = ["export", "--to", form, "--out", str(out), "--results", str(tmp_path / "results")]
        answer = run_verb(*words)
        files = (tmp_path / "out").glob("*.json*")
        return answer, {path.stem: _rows(path.read_text()) for path in files}

    return call


def _rows(text: str) -> list[Any]:
    whole = text.startswith("[")
    return list(json.loads(text)) if whole else [json.loads(line) for line in text.splitlines()]


def ingested(tmp_path: Path, *files: Path) -> list[Run]:
    back = str(tmp_path / "back")
    run_verb("ingest", *files, "--results", back, status=0)
    return [read_run(path, bulk=True) for path in list_records(Path(back))]


def test_a_row_has_the_medians_of_the_trials_in_seconds_and_by_gpu(export) -> None:
    answer, files = export("inferencex", a_served({"data_parallel_size": "2"}))
    assert answer.exit_code == 0, answer.output
    ((row,),) = files.values()
    assert (row["tput_per_gpu"], row["output_tput_per_gpu"], row["input_tput_per_gpu"]) == (
        375.0, 150.0, 225.0,
    )  # fmt: skip
    assert (row["median_ttft"], row["p99_itl"], row["median_intvty"]) == (0.12, 0.009, 200.0)
    assert (row["conc"], row["isl"], row["osl"]) == (3, 48, 32)
    assert (row["tp"], row["dp_attention"], row["disagg"]) == (2, "true", False)
    assert (row["model"], row["infmax_model_prefix"], row["precision"]) == (
        "tiny-hybrid", "tiny-hybrid", "bf16",
    )  # fmt: skip
    assert len(row["recipe_fingerprint"]) == 64
    assert not [key for key in row if key.endswith("std_intvty") or "power" in key]


def test_workers_of_one_request_count_as_gpus(export) -> None:
    flags = {"tensor_parallel_size": "2", "pipeline_parallel_size": "4"}
    _, files = export("inferencex", a_served(flags))
    ((row,),) = files.values()
    assert (row["tp"], row["pp"], row["dp_attention"]) == (2, 4, "false")
    assert (row["tput_per_gpu"], row["output_tput_per_gpu"]) == (93.75, 37.5)


def test_builds_lie_in_files_of_their_own(export) -> None:
    _, files = export("inferencex", a_served({}, {"speculation": '{"method": "mtp", "drafts": 2}'}))
    assert {name: rows[0]["spec_decoding"] for name, rows in files.items()} == {
        "cpu-0": "none",
        "cpu-1": "mtp",
    }


def test_a_disaggregated_pair_is_two_parts(export) -> None:
    _, files = export("inferencex", a_served({"disaggregated": "True"}))
    ((row,),) = files.values()
    assert row["disagg"]
    assert row["is_multinode"]
    assert (row["num_prefill_gpu"], row["num_decode_gpu"], row["prefill_tp"]) == (1, 1, 1)
    assert (row["tput_per_gpu"], row["output_tput_per_gpu"]) == (375.0, 300.0)
    assert "tp" not in row


@pytest.mark.parametrize("form", ["inferencex", "perf-eval"])
@pytest.mark.parametrize("flags", [{}, {"data_parallel_size": "2"}, {"disaggregated": "True"}])
def test_our_own_ingest_reads_back_what_was_measured(export, tmp_path, form, flags) -> None:
    run = a_served(flags)
    export(form, run)
    (back,) = ingested(tmp_path, *(tmp_path / "out").iterdir())
    found = {f"{one.metric} {one.statistic}": one.values for one in back.trials[0].samples}
    assert found["output_throughput None"] == pytest.approx((300.0,))
    assert found["total_token_throughput None"] == pytest.approx((750.0,))
    assert found["ttft median"] == pytest.approx((0.12,))
    assert found["tpot p99"] == pytest.approx((0.01,))
    assert (back.testbed.id, back.builds[0].label) == (run.testbed.id, "cpu-0")


def test_a_row_of_perf_eval_has_its_words(export) -> None:
    _, files = export("perf-eval", a_served({"disaggregated": "True"}))
    ((row,),) = files.values()
    assert (row["date"], row["device"], row["tp"]) == ("2026-03-01 12:00:00", "epyc-4c", 2)
    words = ("disagg", "is_multinode", "spec_decoding", "dp_attention")
    assert {row[word] for word in words} == {"false"}
    assert row["tput_per_gpu"] == 375.0


@pytest.mark.parametrize("name", ["agg", "agg-2026", "sessions", "sessions-tables"])
def test_rows_that_came_in_go_out_as_they_were(export, tmp_path, name) -> None:
    told = json.loads((ROWS / f"{name}.json").read_text())
    runs = ingested(tmp_path, ROWS / f"{name}.json")
    _, files = export("inferencex", *runs)
    found = [row for rows in files.values() for row in rows]
    wanted = told if isinstance(told, list) else [told]
    assert len(found) == len(wanted)
    assert all(row in found for row in wanted)


def test_what_was_measured_on_an_unknown_number_of_gpus_has_no_row(export, tmp_path) -> None:
    runs = ingested(tmp_path, ROWS.parents[1] / "vllm-bench" / "serve.json")
    answer, files = export("perf-eval", *runs)
    assert (answer.exit_code, files) == (2, {})
    assert "left out, since their load client's JSON is not there" in answer.stderr
    assert "expected a run with the JSON of its load client, found none" in answer.stderr


@pytest.mark.parametrize("change", [{"max_concurrency": None}, {"median_tpot_ms": 0.0}])
def test_a_client_that_says_too_little_is_named(export, change) -> None:
    run = a_served({}, **change)
    other = replace(a_served({}), id="22222222")
    answer, files = export("inferencex", run, other)
    assert f"too little for a row: {run.id}" in answer.stderr
    assert [len(rows) for rows in files.values()] == [1]


def test_two_runs_that_are_one_point_there_are_refused(export) -> None:
    run = a_served({})
    answer, files = export("inferencex", run, replace(run, id="22222222"))
    assert (answer.exit_code, files) == (2, {})
    assert "are one point: name one, or latest" in answer.stderr
    both, _ = export("perf-eval")
    assert both.exit_code == 0  # there a date tells them apart


def test_the_sides_of_an_a_a_run_are_one_point(export) -> None:
    run = a_served({}, {})
    _, files = export("inferencex", replace(run, builds=(run.builds[0],) * 2))
    assert [len(rows) for rows in files.values()] == [1]


def test_a_row_is_whole(tmp_path) -> None:
    words = ["export", "--to", "perf-eval", "--metric", "ttft", "--results", str(tmp_path)]
    answer = run_verb(*words)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "--to perf-eval: expected no --metric" in answer.stderr
