"""Load tests of other clients: SGLang, inference-perf, genai-perf, LLMPerf, lists for the HUD."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.errors import IngestError
from tests.unit.formats.read.reading import MADE_UP, companion, only, read, samples, unknown

LLMPERF = "acme-hybrid-9b_32_12"


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def copied(tmp_path: Path, name: str, **changes: Any) -> Path:
    """Copy a file without what lies beside it, with other values."""
    told = json.loads((MADE_UP / name).read_text().splitlines()[0]) if "jsonl" in name else None
    told = told or json.loads((MADE_UP / name).read_text())
    return write(tmp_path / Path(name).name, told | changes)


def test_lines_of_sglang_are_trials_of_the_model_that_its_server_names() -> None:
    run = only(MADE_UP / "sglang/bench.jsonl")
    assert run.scenario.id == "sglang/acme/hybrid-9b"
    assert [samples(run, at)["ttft median"] for at in (0, 1)] == [(0.1,), (0.104,)]
    assert samples(run)["e2el p99"] == (0.46,)
    assert samples(run)["total_token_throughput"] == (54.0,)
    # The server's mean since it started is no trial's.
    assert not any("acceptance" in name for name in samples(run))
    assert (run.scenario.settings["request_rate"], run.builds[0].release) == ("inf", "0.5.23")
    assert {"started_at", "finished_at"} <= set(unknown(run))
    assert run.trials[1].started_at > run.trials[0].started_at


def test_what_sglang_keeps_of_each_request_is_read() -> None:
    run = only(MADE_UP / "sglang/details.jsonl")
    assert samples(run)["ttft"] == (0.1, 0.1, 0.13)
    assert samples(run)["tpot"] == (0.1, 0.1, 0.11)
    assert samples(run)["e2el"] == (0.4, 0.4, 0.46)


@pytest.mark.parametrize(
    "changes", [{"max_concurrency": 4}, {"random_input_len": 64}, {"request_rate": 2.0}]
)
def test_two_loads_of_sglang_are_two_series(tmp_path, changes) -> None:
    told = json.loads((MADE_UP / "sglang/bench.jsonl").read_text().splitlines()[0])
    first, second = read(write(tmp_path / "two.jsonl", told, told | changes))
    assert first.scenario.digest != second.scenario.digest


def test_two_models_of_sglang_are_two_series_and_none_is_made_up(tmp_path) -> None:
    other = {"server_info": {"decode": [{"model_path": "/data/acme/small"}]}}
    named = only(copied(tmp_path, "sglang/bench.jsonl", **other))
    assert named.scenario.id == "sglang/small"
    nameless = only(copied(tmp_path, "sglang/bench.jsonl", server_info=None))
    assert nameless.scenario.id == "sglang/unknown"
    assert "scenario.digest" in unknown(nameless)


def test_requests_of_sglang_that_failed_make_a_failed_trial(tmp_path) -> None:
    run = only(copied(tmp_path, "sglang/details.jsonl", completed=2, errors=["", "", "lost"]))
    assert run.trials[0].failure is not None
    assert run.trials[0].failure.reason == "1 of 3 requests failed"


def test_a_time_of_0_that_sglang_writes_where_nothing_was_streamed_is_left_out(tmp_path) -> None:
    run = only(copied(tmp_path, "sglang/bench.jsonl", median_ttft_ms=0.0, p99_ttft_ms=0.0))
    assert not any(name.startswith("ttft") for name in samples(run))


def test_a_stage_of_inference_perf_has_model_and_data_of_the_config_beside_it() -> None:
    run = only(MADE_UP / "inference-perf/stage_0_lifecycle_metrics.json")
    assert run.scenario.id == "inference-perf/acme/hybrid-9b"
    assert run.scenario.settings["requested_rate"] == "2.0"
    assert run.scenario.settings["data.input_distribution.mean"] == "32.0"
    assert samples(run)["tpot p99"] == (0.12,)
    assert samples(run)["output_throughput"] == (8.0,)
    assert run.trials[0].duration_s == 2.0


def test_requests_of_inference_perf_are_read_with_the_stage_that_has_as_many(tmp_path) -> None:
    run = only(MADE_UP / "inference-perf/stage_1_lifecycle_metrics.json")
    assert samples(run)["ttft"] == (0.1, 0.125, 0.1)
    assert len(samples(run)["itl"]) == 9
    other = only(MADE_UP / "inference-perf/stage_0_lifecycle_metrics.json")
    assert "ttft" not in samples(other)


def test_stages_of_inference_perf_are_series_of_their_own_and_none_is_read_twice() -> None:
    folder = MADE_UP / "inference-perf"
    read_alone = [file.stem[:7] for file in sorted(folder.glob("*.json")) if not companion(file)]
    assert read_alone == ["stage_0", "stage_1"]
    digests = {
        read(folder / f"stage_{at}_lifecycle_metrics.json")[0].scenario.digest for at in "01"
    }
    assert len(digests) == 2


def test_a_summary_of_inference_perf_without_its_stages_is_read_by_itself(tmp_path) -> None:
    for name in ("summary_lifecycle_metrics.json", "config.yaml"):
        shutil.copy(MADE_UP / "inference-perf" / name, tmp_path)
    path = tmp_path / "summary_lifecycle_metrics.json"
    assert companion(path) is None
    run = only(path)
    assert run.scenario.settings["stages"].startswith('[{"duration":2')


def test_inference_perf_of_2025_has_p50_and_neither_model_nor_99th_percentile(tmp_path) -> None:
    name = "inference-perf/stage_0_lifecycle_metrics.json"
    told = json.loads((MADE_UP / name).read_text())
    told["successes"]["latency"]["time_to_first_token"] = {"mean": 0.2, "p50": 0.1, "p90": 0.3}
    told["successes"]["latency"]["inter_token_latency"] = None
    del told["benchmark_time_seconds"]
    run = only(write(tmp_path / "stage_0_lifecycle_metrics.json", told))
    assert samples(run)["ttft median"] == (0.1,)
    assert not {"ttft p99", "itl median"} & samples(run).keys()
    assert run.scenario.id == "inference-perf/unknown"
    assert "scenario.digest" in unknown(run)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        (
            "inference-perf/stage_0_lifecycle_metrics.json",
            {"failures": {"count": 1}},
            "1 of 4 requests failed",
        ),
        (f"llmperf/{LLMPERF}_summary.json", {"results_error_rate": 0.25}, "25 % of the requests f"),
    ],
)
def test_failed_requests_make_a_failed_trial(tmp_path, name, changes, reason) -> None:
    run = only(copied(tmp_path, name, **changes))
    assert run.trials[0].failure is not None
    assert reason in run.trials[0].failure.reason


def test_a_config_of_inference_perf_that_is_no_yaml_is_named(tmp_path) -> None:
    path = copied(tmp_path, "inference-perf/stage_0_lifecycle_metrics.json")
    (tmp_path / "config.yaml").write_text("a: [")
    with pytest.raises(IngestError, match=r"config\.yaml: expected YAML"):
        read(path)
    (tmp_path / "config.yaml").write_text("7")
    with pytest.raises(IngestError, match=r"config\.yaml: expected a table of keys, found 7"):
        read(path)


def test_genai_perf_has_the_words_of_aiperf() -> None:
    path = MADE_UP / "genai-perf/profile_export_genai_perf.json"
    run = only(path)
    assert run.source is not None
    assert run.source.format == "genai-perf"
    assert run.scenario.id == "genai-perf/acme/hybrid-9b"
    assert run.scenario.settings["perf_analyzer.stimulus.concurrency"] == "2"
    assert not any("artifact" in name or "url" in name for name in run.scenario.settings)
    assert samples(run)["tpot median"] == (0.01,)
    assert run.trials[0].duration_s == 5.0


def test_genai_perf_of_2024_has_its_load_flat(tmp_path) -> None:
    load = {"model": ["acme/hybrid-9b"], "concurrency": 2, "endpoint": None, "u": "localhost"}
    name = "genai-perf/profile_export_genai_perf.json"
    run = only(copied(tmp_path, name, input_config=load))
    assert run.scenario.settings == {"model": "acme/hybrid-9b", "concurrency": "2"}
    other = only(copied(tmp_path, name, input_config=load | {"concurrency": 8}))
    assert run.scenario.digest != other.scenario.digest


def test_llmperf_gives_the_requests_beside_its_summary(tmp_path) -> None:
    run = only(MADE_UP / f"llmperf/{LLMPERF}_summary.json")
    assert samples(run)["ttft"] == (0.05, 0.06, 0.05)
    assert samples(run)["request_throughput"] == (2.0,)
    # Its inter_token_latency_s takes the first token in, which ours leaves out.
    assert not {"tpot", "itl"} & samples(run).keys()
    assert (run.finished_at - run.started_at).total_seconds() == 1.5
    alone = only(copied(tmp_path, f"llmperf/{LLMPERF}_summary.json"))
    assert samples(alone)["e2el p99"] == (0.499,)


def test_a_list_for_the_hud_alone_is_the_result_that_it_repeats(tmp_path) -> None:
    run = only(MADE_UP / "hud/serve.pytorch.json")
    assert run.scenario.id == "vllm-bench-serve/acme/hybrid-9b"
    assert run.scenario.settings["num_prompts"] == "6"
    assert samples(run)["itl p99"] == (0.014,)
    assert samples(run)["output_throughput"] == (64.0,)
    latency = only(MADE_UP / "hud/latency.pytorch.json")
    assert [samples(latency, at)["e2el"] for at in range(3)] == [(0.51,), (0.5,), (0.52,)]
    assert latency.scenario.settings["args.batch_size"] == "2"


def test_a_list_for_the_hud_without_the_rest_of_the_result_has_its_times(tmp_path) -> None:
    told = json.loads((MADE_UP / "hud/serve.pytorch.json").read_text())
    for record in told:
        record["metric"]["extra_info"] = {}
    run = only(write(tmp_path / "v3.json", told))
    assert samples(run)["ttft median"] == (0.048,)
    assert run.scenario.id == "hud/acme/hybrid-9b"
    told[0]["metric"]["name"] = "speedup"
    with pytest.raises(IngestError, match=r"expected metrics that vLLM writes, such as median_ttf"):
        read(write(tmp_path / "v3.json", told[:1]))
