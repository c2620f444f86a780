"""ingest: what is taken, what is said, and with which status."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.records.store import list_records, read_run, write_run
from hybridwatch.records.store.files import BATCH
from tests.builders import a_run
from tests.command_line import run_verb
from tests.store_builders import Plan
from tests.store_builders import run as whole_run

FOREIGN = Path(__file__).parents[2] / "fixtures" / "foreign"
SERVE = FOREIGN / "vllm-bench/serve.json"
LLMPERF = "acme-hybrid-9b_32_12"
DATE = "2026-11-21T20-12-50.360266"


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def ingest(results):
    """Ingest into a store of its own."""

    def run(*words: object, status: int | None = None):
        return run_verb("ingest", *words, "--results", results, status=status)

    return run


def test_a_folder_of_everything_is_taken_once(ingest, results) -> None:
    assert "50 added, 0 already there, 0 not taken" in ingest(FOREIGN, status=0).output
    assert len(list_records(results)) == 50
    assert "0 added, 50 already there, 0 not taken" in ingest(FOREIGN, status=0).output
    assert len(list_records(results)) == 50


def test_a_bad_file_is_named_and_the_good_ones_are_taken(ingest, results, tmp_path) -> None:
    folder = tmp_path / "in"
    shutil.copytree(FOREIGN / "vllm-bench", folder)
    told = json.loads(SERVE.read_text())
    (folder / "bad.json").write_text(json.dumps(told | {"ttfts": ["soon"]}))
    answer = ingest(folder, status=1)
    assert "4 added, 0 already there, 1 not taken" in answer.output
    line = next(line for line in answer.output.splitlines() if "bad.json" in line)
    assert line.endswith("bad.json: ttfts[0]: expected a finite number, found 'soon'")
    assert len(list_records(results)) == 4


def test_json_tells_the_same(ingest) -> None:
    told = json.loads(ingest(FOREIGN / "vllm-bench", FOREIGN / "README.md", "--json").output)
    assert [one["format"] for one in told["taken"]] == [
        "vllm-bench-serve",
        "vllm-bench-latency",
        "vllm-bench-serve",
        "vllm-bench-throughput",
    ]
    assert all(one["new"] and Path(one["record"]).is_file() for one in told["taken"])
    (bad,) = told["bad"]
    assert bad["file"].endswith("README.md")


def test_records_come_byte_for_byte_with_their_answers(ingest, results, tmp_path) -> None:
    run = whole_run(Plan(documents=8))
    record = write_run(tmp_path / "elsewhere", run)
    ingest(record.parent, status=0)
    (copy,) = list_records(results)
    assert copy.read_bytes() == record.read_bytes()
    assert read_run(copy) == run
    assert "already there" in ingest(record).output


def test_a_record_whose_answers_are_gone_is_not_taken(ingest, results, tmp_path) -> None:
    record = write_run(tmp_path / "elsewhere", whole_run(Plan(documents=8)))
    bulk = next(record.parent.glob("*.bulk.jsonl.gz"))
    bulk.unlink()
    assert f"cannot read {bulk}: No such file" in ingest(record, status=1).output.replace("\n", "")
    assert list_records(results) == []


def test_another_record_of_a_known_run_is_refused(ingest, results, tmp_path) -> None:
    run = replace(a_run({"ttft": (1.0,)}), id="1f0a9c3e")
    write_run(results, run)
    other = write_run(tmp_path / "elsewhere", replace(run, finished_at=run.started_at))
    assert "run 1f0a9c3e is there already" in ingest(other, status=1).output
    assert len(list_records(results)) == 1


def test_many_are_written_in_batches_and_none_is_lost(ingest, results, tmp_path) -> None:
    run = a_run({"ttft": (1.0,)})
    for number in range(BATCH + 3):
        write_run(tmp_path / "elsewhere", replace(run, id=f"{number:08x}"))
    assert f"{BATCH + 3} added" in ingest(tmp_path / "elsewhere").output
    assert len(list_records(results)) == BATCH + 3
    assert not list((results / "records").rglob(".*"))


def test_a_store_that_cannot_be_written_takes_nothing_and_says_so(ingest, results) -> None:
    results.mkdir()
    (results / "records").write_text("in the way")
    assert "0 added, 0 already there, 1 not taken" in ingest(SERVE, status=1).output


def test_what_is_no_file_of_ours_is_status_1_too(ingest, tmp_path) -> None:
    (tmp_path / "other.json").write_text('{"speed": 3}')
    answer = ingest(tmp_path / "other.json", tmp_path / "absent.json", status=1)
    assert "found an object with the keys 'speed'" in answer.output
    assert "absent.json: cannot read" in answer.output


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("aiperf/profile_export.jsonl", "requests of aiperf: expected their report, profile_exp"),
        (f"lm-eval/samples_hybridwatch_recall_{DATE}.jsonl", f"results_{DATE}.json next to them"),
        ("made-up/genai-perf/profile_export.json", "a part of genai-perf's run: expected profile_"),
        ("made-up/inference-perf/summary_prometheus_metrics.json", "stage_0_lifecycle_metrics.jso"),
        (f"made-up/llmperf/{LLMPERF}_individual_responses.json", f"their summary, {LLMPERF}_summ"),
    ],
)
def test_measurements_without_the_file_that_they_belong_to_are_named(
    ingest, results, tmp_path, name, reason
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = Path(shutil.copy(FOREIGN / name, folder))
    for named in (folder, path):
        answer = ingest(named, status=1)
        assert f"{path}: {reason}" in answer.output or f"expected {reason}" in answer.output
        assert "0 added, 0 already there, 1 not taken" in answer.output
    assert list_records(results) == []


def test_requests_of_another_run_than_the_report_next_to_them_are_named(ingest, tmp_path) -> None:
    folder = shutil.copytree(FOREIGN / "aiperf", tmp_path / "in")
    requests = folder / "profile_export.jsonl"
    requests.write_text("".join(requests.read_text().splitlines(keepends=True)[:-1]))
    answer = ingest(folder, status=1)
    assert "expected the requests of profile_export_aiperf.json, found those of" in answer.output
    assert "1 added, 0 already there, 1 not taken" in answer.output


def test_requests_next_to_the_report_of_a_failed_run_are_not_missed(ingest, tmp_path) -> None:
    folder = shutil.copytree(FOREIGN / "aiperf", tmp_path / "in")
    report = folder / "profile_export_aiperf.json"
    report.write_text(json.dumps(json.loads(report.read_text()) | {"was_cancelled": True}))
    requests = folder / "profile_export.jsonl"
    requests.write_text("".join(requests.read_text().splitlines(keepends=True)[:-1]))
    ingest(folder, status=0)


def test_a_list_for_the_hud_next_to_its_result_is_left_alone(ingest, tmp_path) -> None:
    shutil.copy(SERVE, tmp_path)
    shutil.copy(FOREIGN / "made-up/hud/serve.pytorch.json", tmp_path)
    assert "1 added, 0 already there, 0 not taken" in ingest(tmp_path, status=0).output


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("notes.txt", "none", "found no JSON file\n"),
        (
            "verdict.json",
            '{"report": {}, "parameters": {}, "tools": {}}',
            "found only a verdict of hybridwatch",
        ),
        ("d4ad.json", None, "found only results of asv in which nothing ran"),
        ("profile_export.jsonl", None, "found only requests of aiperf; name the folder, or what "),
    ],
)
def test_where_there_is_nothing_to_take_it_is_a_wrong_call(
    ingest, tmp_path, name, text, told
) -> None:
    if name == "d4ad.json":
        (path,) = (FOREIGN / "asv/lab-1").glob("d4ad*.json")
        text = json.dumps(json.loads(path.read_text()) | {"results": {}})
    file = tmp_path / name
    if text is None:
        file = FOREIGN / "aiperf" / name
    else:
        file.write_text(text)
    answer = ingest(file if text is None else tmp_path, status=2)
    assert "expected a record or a file of asv, " in answer.output
    assert told in answer.stderr


def test_a_project_of_asv_is_named_by_its_root(ingest, results, tmp_path) -> None:
    (tmp_path / "asv.conf.json").write_text('{// of asv\n "results_dir": ".asv/results"}')
    answer = ingest(tmp_path, status=2)
    where = tmp_path / ".asv" / "results"
    assert f"found only a configuration of asv, whose results are in {where}" in answer.stderr
    shutil.copytree(FOREIGN / "asv", where)
    assert "6 added, 0 already there, 0 not taken" in ingest(tmp_path, status=0).output


def test_what_no_record_could_be_read_back_with_is_not_taken(ingest, results, tmp_path) -> None:
    deep = "[" * 200 + "]" * 200
    (tmp_path / "serve.json").write_text(SERVE.read_text().rstrip()[:-1] + f', "deep": {deep}}}')
    assert "expected JSON of at most 64 levels: nested deeper" in ingest(tmp_path, status=1).output
    assert list_records(results) == []


def test_a_reason_does_not_flood_the_terminal(ingest, tmp_path) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"x" * 10**6: 1}))
    assert len(ingest(tmp_path).output) < 1000


def test_an_empty_folder_next_to_a_good_one_is_bad_news(ingest, tmp_path) -> None:
    answer = ingest(SERVE, tmp_path, "--json", status=1)
    told = json.loads(answer.stdout)
    assert len(told["taken"]) == 1
    assert [one["file"] for one in told["bad"]] == [str(tmp_path)]


def test_ingested_runs_of_an_unknown_machine_are_compared_only_when_asked(
    ingest, results, tmp_path
) -> None:
    told = json.loads(SERVE.read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps(told | {"date": "20261122-201045"}))
    ingest(SERVE, other)
    first, second = (path.stem[-8:] for path in list_records(results))

    def compare(*words: str, status: int | None = None):
        return run_verb("compare", first, second, *words, "--results", results, status=status)

    assert "ingest with --testbed" in compare(status=2).output
    asked = compare("--across-testbeds", status=0)
    assert "ingested from vllm-bench-serve" in " ".join(asked.output.split())


def test_a_run_whose_model_no_file_names_is_said_to_be_alone(ingest, results) -> None:
    path = FOREIGN / "vllm-bench/throughput.json"
    assert "1 compared with no other: a file names no model, --scenario" in ingest(path).output
    assert "compared with no other" not in ingest(path, "--scenario", "acme-9b").output
    assert len(list_records(results)) == 2


def test_a_record_with_fewer_metrics_of_its_file_stays_as_it_is(ingest, results) -> None:
    ingest(SERVE)
    (path,) = list_records(results)
    run = read_run(path)
    few = replace(run.trials[0], samples=run.trials[0].samples[1:])
    shutil.rmtree(results)
    write_run(results, replace(run, trials=(few,)))
    assert "0 added, 1 already there, 0 not taken" in ingest(SERVE).output
    assert read_run(path).trials[0].samples == few.samples


NIGHTS = 24


@pytest.fixture
def nights(ingest, results: Path, tmp_path: Path):
    """Take a result of `vllm bench serve` a night, all of them at the loads given."""

    def take(loads: list[int]) -> Path:
        folder = tmp_path / "nights"
        folder.mkdir()
        told = json.loads((FOREIGN / "made-up/vllm-bench/serving-0.4.json").read_text())
        for night, load in enumerate(loads):
            told["date"] = f"202604{night + 1:02}-101500"
            told["max_concurrency"] = load
            told["median_ttft_ms"] = (40 if load == 1 else 400) + night * 7 % 5 / 10
            (folder / f"{night:02}.json").write_text(json.dumps(told))
        answer = ingest(folder, "--testbed", "lab-1", "--build", "nightly")
        assert f"{len(loads)} added" in answer.output
        return results

    return take


@pytest.mark.parametrize(
    "loads",
    [[1] * (NIGHTS // 2) + [64] * (NIGHTS // 2), [1, 64] * (NIGHTS // 2)],
    ids=["load changed", "two loads in turn"],
)
def test_two_loads_are_two_series_wherever_a_history_is_judged(nights, tmp_path, loads) -> None:
    store = nights(loads)

    def call(*words: str, given: str | None = None, status: int | None = None):
        return run_verb(*words, input=given, status=status)

    table = call("export", "--to", "csv", "--metric", "ttft", "--results", str(store))
    judged = call("detect", "-", given=table.output, status=0)
    assert "No change point in 4 series." in judged.output
    first, last = (path.stem[-8:] for path in (list_records(store)[i] for i in (0, -1)))
    compared = call("compare", first, last, "--results", str(store))
    assert "Not comparable: Scenario digest differs" in compared.output

    page = tmp_path / "scenario.html"
    query = "scenario=vllm-bench-serve/tiny-hybrid"
    drawn = call("page", "scenario", "--query", query, "--results", str(store), "--out", str(page))
    assert drawn.exit_code == 0, drawn.output
    text = page.read_text()
    assert "No change point in what is drawn" in text
    assert "(max_concurrency 1)" in text
    assert "(max_concurrency 64)" in text
