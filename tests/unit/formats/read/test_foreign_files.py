"""Every format, from a file that the tool itself wrote (tests/fixtures/foreign)."""

import json
import statistics
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from hybridwatch.analysis.pair import reduce_side
from hybridwatch.analysis.subject import OneSide, list_subjects
from hybridwatch.errors import IngestError, RecordError
from hybridwatch.formats.read.document import parse
from hybridwatch.formats.read.foreign import ForeignInput
from hybridwatch.formats.read.read import candidates
from hybridwatch.records.codec import decode, encode
from hybridwatch.records.run import UNKNOWN, Phase, Run, Sample
from tests.shipped import FOREIGN
from tests.unit.formats.read.reading import companion, only, read

ASV = FOREIGN / "asv/lab-1/d4ad43a0-existing-py_venv_bin_python3.json"
LM_EVAL = FOREIGN / "lm-eval/results_2026-11-21T20-12-50.360266.json"


def values(run: Run, metric: str, statistic: str | None = None) -> list[float]:
    return [
        value
        for trial in run.trials
        for sample in trial.samples
        if (sample.metric, sample.statistic) == (metric, statistic)
        for value in sample.values
    ]


@pytest.mark.parametrize(
    "path",
    [path for path in candidates(FOREIGN) if not companion(path)],
    ids=lambda path: str(path.relative_to(FOREIGN)),
)
def test_each_run_is_a_whole_record_and_says_what_it_does_not_know(path) -> None:
    for run in read(path):
        encoded = encode(run)
        assert decode(encoded.record, encoded.bulk) == run
        assert run.source is not None
        assert run.source.file == path.name
        told = json.loads(encoded.record)
        for place in ("cpu_model", "cores", "memory_bytes", "kernel"):
            is_blank = told["testbed"][place] in {UNKNOWN, 0}
            assert is_blank == (f"testbed.{place}" in run.source.unknown), place
        assert told["builds"][0]["lock_digest"] == UNKNOWN
        assert "builds[0].lock_digest" in run.source.unknown
        assert run.trials


def test_files_are_reported_by_what_is_inside(tmp_path) -> None:
    misnamed = tmp_path / "results.json"
    misnamed.write_bytes((FOREIGN / "vllm-bench/serve.json").read_bytes())
    source = only(misnamed).source
    assert source is not None
    assert source.format == "vllm-bench-serve"


def test_serve_gives_the_statistics_that_the_client_itself_printed() -> None:
    path = FOREIGN / "vllm-bench/serve.json"
    told, run = json.loads(path.read_text()), only(path)
    assert run.builds[0].label == "cpu-0.27.1"
    assert values(run, "output_throughput") == [told["output_throughput"]]
    for metric in ("ttft", "tpot", "itl", "e2el"):
        seconds = values(run, metric)
        # The client reads its clock once more for the whole request than for its gaps.
        median, p99 = (told[f"{word}_{metric}_ms"] for word in ("median", "p99"))
        assert statistics.median(seconds) * 1000 == pytest.approx(median, rel=1e-4)
        assert np.quantile(seconds, 0.99) * 1000 == pytest.approx(p99, rel=1e-4)
    assert run.trials[0].client_result == told


def test_appended_results_of_one_load_are_trials_of_one_run() -> None:
    path = FOREIGN / "vllm-bench/appended.jsonl"
    told, run = [json.loads(line) for line in path.read_text().splitlines()], only(path)
    assert [trial.index for trial in run.trials] == [0, 1, 2]
    assert values(run, "ttft", "p99") == [one["p99_ttft_ms"] / 1000 for one in told]
    assert values(run, "ttft") == []


def test_appended_results_of_another_load_are_another_run(tmp_path) -> None:
    lines = (FOREIGN / "vllm-bench/appended.jsonl").read_text().splitlines()
    other = json.dumps(json.loads(lines[0]) | {"max_concurrency": 4})
    path = tmp_path / "two.jsonl"
    path.write_text("\n".join([*lines, other]))
    first, second = read(path)
    assert (len(first.trials), len(second.trials)) == (3, 1)
    assert first.scenario.id == second.scenario.id
    assert first.scenario.digest != second.scenario.digest


def test_a_result_with_failed_requests_is_a_failed_trial(tmp_path) -> None:
    told = json.loads((FOREIGN / "vllm-bench/serve.json").read_text())
    path = tmp_path / "serve.json"
    path.write_text(json.dumps(told | {"failed": 2, "completed": 4}))
    (trial,) = only(path).trials
    assert trial.failure is not None
    assert trial.failure.reason == "2 of 6 requests failed"
    assert trial.samples == ()


def test_latency_and_throughput_have_the_time_of_their_file_and_say_so() -> None:
    latency, throughput = (
        only(FOREIGN / f"vllm-bench/{name}.json") for name in ("latency", "throughput")
    )
    told = json.loads((FOREIGN / "vllm-bench/latency.json").read_text())
    assert values(latency, "e2el") == told["latencies"]
    assert len(latency.trials) == 5
    assert values(throughput, "total_token_throughput") == [53.97998952076866]
    assert values(throughput, "output_throughput") == []  # which tokens, the file does not say
    for run in (latency, throughput):
        assert run.source is not None
        assert "started_at" in run.source.unknown


def test_asv_gives_a_run_a_benchmark_and_a_trial_a_sample() -> None:
    runs = {run.scenario.id.removeprefix("asv/suite."): run for run in read(ASV)}
    serving = ("peakmem_list", "time_fails", "track_seconds_per_token", "track_ttft")
    assert list(runs) == [
        *(f"Serving.{name}" for name in serving),
        *("Words.time_upper", "Words.track_length"),
    ]
    times = values(runs["Serving.track_ttft"], "ttft")
    assert times == [0.041, 0.043, 0.040, 0.042, 0.044, 0.041, 0.042]
    rates = values(runs["Serving.track_seconds_per_token"], "output_throughput")
    assert rates == pytest.approx([640, 630, 650, 645, 641, 638, 640])
    assert values(runs["Serving.peakmem_list"], "asv_memory.peakmem_list") == [35971072]
    (failed,) = runs["Serving.time_fails"].trials
    assert failed.failure is not None
    assert failed.failure.reason == "suite.Serving.time_fails failed"
    assert values(runs["Words.track_length"], "asv_number.track_length(1000, 'b')") == [1000]
    upper = values(runs["Words.time_upper"], "asv_time.time_upper(10, 'a')")
    assert upper == [1.6129997675307095e-06]


def test_asv_tells_machine_commit_and_both_times() -> None:
    run = read(ASV)[0]
    assert (run.testbed.id, run.testbed.cpu_model) == ("lab-1", "AMD EPYC 9654")
    assert run.testbed.memory_bytes == 0  # "16384000" is none of a machine in bytes
    assert run.source is not None
    assert run.source.commit == "d4ad43a03b0c4ab659709e2c5795801bd343588a"
    assert run.source.committed_at == datetime(2026, 11, 1, 10, tzinfo=UTC)
    assert run.started_at.date().isoformat() == "2026-11-21"
    assert run.builds[0].release == run.source.commit


def test_lm_eval_pairs_documents_with_tasks_by_their_hash_whatever_they_are_called(
    tmp_path,
) -> None:
    for number, path in enumerate(sorted(LM_EVAL.parent.iterdir())):
        (tmp_path / f"{number}{path.suffix}").write_bytes(path.read_bytes())
    (run,) = (only(path) for path in candidates(tmp_path) if not companion(path))
    (trial,) = run.trials
    assert trial.phase is Phase.ACCURACY
    assert sum(values(run, "accuracy.recall")) == 8
    assert len(values(run, "accuracy.recall")) == len(values(run, "accuracy.word_problems")) == 10
    said = [answer.response for answer in trial.answers if answer.task == "recall"]
    assert said[:2] == ["sstwcd", "abc"]
    assert run.harness.version == "lm-eval 0.4.13"


@pytest.mark.parametrize("kept", [None, -1], ids=["none", "all but one"])
def test_lm_eval_without_its_documents_keeps_the_score_and_no_made_up_answers(
    tmp_path, kept
) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(LM_EVAL.read_bytes())
    if kept:
        (samples,) = LM_EVAL.parent.glob("samples_hybridwatch_recall_*")
        lines = samples.read_text().splitlines()[:kept]
        (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    assert values(only(path), "accuracy.recall", "mean") == [0.8]
    assert only(path).trials[0].answers == ()


def test_guidellm_words_are_translated() -> None:
    path = FOREIGN / "guidellm/report.json"
    (benchmark,) = json.loads(path.read_text())["benchmarks"]
    run = only(path)
    first = benchmark["requests"]["successful"][0]
    assert values(run, "ttft")[0] == first["time_to_first_token_ms"] / 1000
    # Its time_per_output_token takes the first token in, which ours leaves out.
    assert values(run, "tpot")[0] == first["inter_token_latency_ms"] / 1000
    assert values(run, "e2el")[0] == first["request_latency"]
    assert values(run, "output_throughput") == [96 / benchmark["duration"]]
    assert run.harness.version == "guidellm 0.8.1"


def test_a_guidellm_report_that_keeps_some_requests_only_gives_its_statistics(tmp_path) -> None:
    told = json.loads((FOREIGN / "guidellm/report.json").read_text())
    del told["benchmarks"][0]["requests"]["successful"][3:]
    path = tmp_path / "report.json"
    path.write_text(json.dumps(told))
    run = only(path)
    spread = told["benchmarks"][0]["metrics"]["time_to_first_token_ms"]["successful"]
    assert values(run, "ttft") == []
    assert values(run, "ttft", "p99") == [spread["percentiles"]["p99"] / 1000]


def test_aiperf_reads_the_requests_next_to_a_report(tmp_path) -> None:
    report = FOREIGN / "aiperf/profile_export_aiperf.json"
    told, run = json.loads(report.read_text()), only(report)
    assert max(values(run, "e2el")) * 1000 == pytest.approx(told["request_latency"]["max"])
    assert statistics.median(values(run, "ttft")) * 1000 == pytest.approx(
        told["time_to_first_token"]["p50"]
    )
    assert len(values(run, "itl")) == told["inter_chunk_latency"]["count"]
    alone = tmp_path / "report.json"
    alone.write_bytes(report.read_bytes())
    assert values(only(alone), "ttft", "median") == [told["time_to_first_token"]["p50"] / 1000]


def test_words_given_go_before_what_a_file_tells() -> None:
    given = ForeignInput(testbed="lab-9", build="nightly", scenario="serve/short")
    run = only(FOREIGN / "vllm-bench/serve.json", given)
    assert (run.testbed.id, run.builds[0].label, run.scenario.id) == (
        "lab-9",
        "nightly",
        "serve/short",
    )
    assert run.source is not None
    assert "testbed.id" not in run.source.unknown
    assert run.id != only(FOREIGN / "vllm-bench/serve.json").id


def cut(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


def without(key: str) -> Callable[[bytes], bytes]:
    def change(raw: bytes) -> bytes:
        told = json.loads(raw)
        del told[key]
        return json.dumps(told).encode()

    return change


YEAR_0 = "0001-01-01T00:00:00+14:00"  # in UTC


def wrong(key: str, value: object) -> Callable[[bytes], bytes]:
    return lambda raw: json.dumps(json.loads(raw) | {key: value}).encode()


@pytest.mark.parametrize(
    ("path", "damage", "told"),
    [
        ("vllm-bench/serve.json", cut, "expected JSON, the file may have been cut short"),
        ("vllm-bench/serve.json", wrong("date", "yesterday"), "date: expected a date such as"),
        ("vllm-bench/serve.json", wrong("ttfts", [1, "x"]), r"ttfts\[1\]: expected a finite num"),
        ("vllm-bench/serve.json", wrong("ttfts", [1.0]), "expected lists of one length, found 1,"),
        ("vllm-bench/serve.json", wrong("model_id", 7), "model_id: expected a text, found 7"),
        ("vllm-bench/serve.json", without("itls"), "itls: expected a value, found nothing"),
        ("vllm-bench/latency.json", wrong("latencies", []), "latencies: expected at least one"),
        ("vllm-bench/throughput.json", wrong("elapsed_time", None), "expected a record or a file"),
        ("guidellm/report.json", without("config"), "config: expected a value, found nothing"),
        ("aiperf/profile_export_aiperf.json", wrong("start_time", "now"), "start_time: expected a"),
        ("aiperf/profile_export_aiperf.json", wrong("end_time", YEAR_0), "end_time: expected a"),
        ("lm-eval/" + LM_EVAL.name, wrong("date", 1e30), "date: expected a time"),
        ("asv/lab-1/" + ASV.name, wrong("version", 3), "version: expected version 1 or 2, f"),
        ("asv/lab-1/" + ASV.name, wrong("results", {"a.b": [1]}), "results.a.b: expected result"),
    ],
)
def test_a_damaged_file_is_named_by_its_key(tmp_path, path, damage, told) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(damage((FOREIGN / path).read_bytes()))
    with pytest.raises(IngestError, match=told):
        read(bad)


def test_what_came_reduced_is_compared_by_its_own_statistic_only() -> None:
    run = only(FOREIGN / "vllm-bench/appended.jsonl")
    p99_only = replace(
        run,
        trials=tuple(
            replace(trial, samples=tuple(s for s in trial.samples if s.statistic != "median"))
            for trial in run.trials
        ),
    )
    side = OneSide(p99_only, 0)
    named = {(s.metric.id, s.statistic): s for s in list_subjects(side, side)}
    assert ("ttft", "p99") in named
    assert ("ttft", "median") not in named
    lines = (FOREIGN / "vllm-bench/appended.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    whole = {(s.metric.id, s.statistic): s for s in list_subjects(OneSide(run, 0), OneSide(run, 0))}
    for statistic in ("median", "p99"):
        found = reduce_side(OneSide(run, 0), whole["ttft", statistic]).values
        assert found == tuple(one[f"{statistic}_ttft_ms"] / 1000 for one in told)


def test_a_record_takes_one_value_next_to_a_statistic() -> None:
    run = only(FOREIGN / "vllm-bench/appended.jsonl")
    two = Sample("ttft", (0.1, 0.2), "p99")
    wrong = replace(run, trials=(replace(run.trials[0], samples=(two,)),))
    with pytest.raises(RecordError, match="expected one value next to statistic"):
        encode(wrong)


@pytest.mark.parametrize("raw", [b"[" + b"[]," * 5_000_000 + b"1]", b'{"a":' * 5_000_000])
def test_what_would_take_gigabytes_is_refused_before_it_is_read(raw: bytes) -> None:
    with pytest.raises(IngestError, match="at most 4000000 lists, objects and keys, found more"):
        parse(Path("x.json"), raw)


def test_a_flood_of_lines_is_not_split() -> None:
    with pytest.raises(IngestError, match="expected JSON"):
        parse(Path("x.jsonl"), b"{}\n" + b"\n" * 2_000_000 + b"{}")
