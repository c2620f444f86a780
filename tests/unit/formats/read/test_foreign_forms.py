"""Forms of other versions and neighbours, from made-up files (tests/fixtures/foreign/made-up)."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.analysis.freshness import change_text
from hybridwatch.errors import IngestError
from hybridwatch.formats.read.foreign import ForeignInput
from hybridwatch.records.run import Run
from tests.mistakes import read_mistakes
from tests.unit.formats.read.reading import (
    MADE_UP,
    companion,
    only,
    put_at,
    read,
    samples,
    unknown,
)

SERVING_4 = "vllm-bench/serving-0.4.json"
SERVING_6 = "vllm-bench/serving-0.6.json"
RANDOM = "vllm-bench/inferencex-random.json"
GUIDELLM = "guidellm/0.3.json"
AIPERF = "aiperf/0.2/profile_export_aiperf.json"
ROWS = "inferencex/agg.json"
SESSIONS = "inferencex/sessions.json"
ASV = MADE_UP / "asv/lab-0"
DIGESTS = ("a" * 64, "b" * 64)


def one(name: str) -> Run:
    return only(MADE_UP / name)


def changed(tmp_path: Path, name: str, change: Callable[[Any], None]) -> list[Run]:
    """Read a file after a change, without what lies beside it."""
    told = json.loads((MADE_UP / name).read_text())
    change(told)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(told))
    return read(path)


def failure(run: Run) -> str | None:
    (trial,) = run.trials
    assert (trial.failure is None) == bool(trial.samples)
    return None if trial.failure is None else trial.failure.reason


def put(**values: Any) -> Callable[[Any], None]:
    return lambda told: told.update(values)


@pytest.mark.parametrize(("name", "changes", "told"), read_mistakes("foreign"))
def test_what_is_wrong_is_refused_by_its_key(tmp_path, name, changes, told) -> None:
    with pytest.raises(IngestError, match=told):
        changed(tmp_path, name, lambda told: put_at(told, json.loads(changes)))


@pytest.mark.parametrize(("name", "changes", "told"), read_mistakes("lost-requests"))
def test_requests_that_were_lost_fail_the_trial(tmp_path, name, changes, told) -> None:
    (run,) = changed(tmp_path, name, lambda told: put_at(told, json.loads(changes)))
    assert (failure(run) or "nothing lost") == told


def test_benchmark_serving_of_vllm_0_4_misspelt_its_request_rate() -> None:
    run = one(SERVING_4)
    assert samples(run)["request_throughput"] == (2.0,)
    assert samples(run)["ttft median"] == (0.12,)  # seconds
    assert run.scenario.id == "vllm-bench-serve/tiny-hybrid"


def test_benchmark_serving_of_vllm_0_6_kept_every_request() -> None:
    found = samples(one(SERVING_6))
    assert found["ttft"] == (0.04, 0.05, 0.05, 0.08)
    assert found["e2el"] == pytest.approx((0.06, 0.07, 0.07, 0.104))
    assert found["output_throughput"] == (6.0,)


def test_a_negative_time_that_asv_tracked_is_refused(tmp_path) -> None:
    with pytest.raises(IngestError, match=r"asv_time.time_x of trial 0: expected numbers of at le"):
        an_asv_file(tmp_path, [[-0.5], [], None, 1704067200])


@pytest.mark.parametrize(
    "summary",
    [
        {"ttft": {"median": 0.5, "p99": 0.75}},
        {"median_ttft_s": 0.5, "p99_ttft_s": 0.75},
        {"mean_latency": 1.5},
        {"p90_e2el_ms": 5.0},
    ],
)
def test_latencies_whose_names_are_not_read_are_not_lost_in_silence(tmp_path, summary) -> None:
    def rename(told: Any) -> None:
        for key in [key for key in told if key.endswith(("_ttft", "_tpot", "_e2el"))]:
            del told[key]
        told.update(summary)

    with pytest.raises(IngestError, match=r"expected names that are read, such as median_.*_ms"):
        changed(tmp_path, RANDOM, rename)


def test_a_later_result_without_a_rate_is_refused_by_its_line(tmp_path) -> None:
    first = (MADE_UP / SERVING_4).read_text().replace("\n", "")
    second = json.loads(first)
    del second["request_inthroughput"]
    path = tmp_path / "two.jsonl"
    path.write_text(f"{first}\n{json.dumps(second)}\n")
    with pytest.raises(
        IngestError, match=r"line 2\.request_throughput: expected a value, found not"
    ):
        read(path)


def test_a_summary_with_an_empty_list_of_requests_keeps_its_latencies(tmp_path) -> None:
    assert samples(one(RANDOM))["ttft median"] == (0.5,)  # of a writer whose unit is known
    lists: dict[str, list[float]] = {"ttfts": [], "itls": [], "output_lens": []}
    (run,) = changed(tmp_path, RANDOM, put(**lists))
    assert len([key for key in samples(run) if key.startswith(("ttft", "tpot", "e2el"))]) == 6


def test_embeddings_have_no_rate_of_output() -> None:
    assert set(samples(one("vllm-bench/embeddings.json"))) == {
        "total_token_throughput",
        "request_throughput",
        "e2el median",
        "e2el p99",
    }


def test_results_of_a_sweep_are_trials_of_one_run() -> None:
    run = one("vllm-bench/sweep-summary.json")
    assert [samples(run, at)["output_throughput"] for at in range(2)] == [(32.0,), (40.0,)]


def test_a_time_of_a_known_zone_is_not_unknown() -> None:
    run = one("vllm-bench/multi-turn.json")
    assert run.started_at == datetime(2026, 3, 2, 10, 15, tzinfo=UTC)
    assert "started_at" not in unknown(run)
    assert "started_at" in unknown(one(SERVING_4))


def test_the_start_that_inferencex_adds_goes_before_local_time(tmp_path) -> None:
    start = {"benchmark_start_time_unix": 1781124007.0}
    (run,) = changed(tmp_path, SERVING_4, put(**start))
    assert run.started_at == datetime(2026, 6, 10, 20, 40, 7, tzinfo=UTC)
    assert "started_at" not in unknown(run)


def test_guidellm_0_3_tells_the_load_with_each_benchmark() -> None:
    run = one(GUIDELLM)
    assert run.harness.version == "guidellm 0.2 or 0.3"
    assert "harness.version" in unknown(run)
    found = samples(run)
    assert (found["output_throughput"], found["request_throughput"]) == ((200.0,), (2.0,))
    assert found["ttft"] == (0.1, 0.12, 0.11, 0.13)
    assert found["tpot"] == (0.01, 0.011, 0.0105, 0.0115)


def test_guidellm_0_5_without_a_whole_window_gives_no_rates() -> None:
    whole, cut = read(MADE_UP / "guidellm/0.5.json")
    assert samples(whole)["request_throughput"] == (0.5,)
    # The time called measured goes on for 40 s after the last request.
    assert "request_throughput" not in samples(cut)
    assert {"output_throughput", "request_throughput"} <= set(unknown(cut))
    # Requests of the warm-up are in the list, not in the statistics.
    assert samples(cut)["ttft median"] == (0.11,)
    assert whole.scenario.digest != cut.scenario.digest


def test_aiperf_before_0_10_tells_models_with_the_endpoint() -> None:
    run = one(AIPERF)
    assert run.scenario.id == "aiperf/lab/tiny-hybrid"
    assert "harness.version" in unknown(run)
    found = samples(run)
    assert found["request_throughput"] == (2.0,)
    assert found["e2el"] == (1.0, 1.3, 1.5, 3.0)  # not the 9 s of the warm-up


def test_aiperf_0_1_keeps_its_statistics_in_records(tmp_path) -> None:
    (run,) = changed(tmp_path, AIPERF, to_0_1)
    (same,) = changed(tmp_path, AIPERF, put())
    assert samples(run) == samples(same)
    assert (run.scenario, failure(run)) == (same.scenario, None)


def test_requests_that_aiperf_0_1_lost_fail_the_trial(tmp_path) -> None:
    def lose(told: Any) -> None:
        to_0_1(told)
        told["records"]["error_request_count"] = {"tag": "x", "unit": "requests", "avg": 11.0}

    (run,) = changed(tmp_path, AIPERF, lose)
    assert failure(run) == "11 requests failed"


def test_an_aiperf_before_0_1_1_is_refused_as_such(tmp_path) -> None:
    def to_draft(told: Any) -> None:
        to_0_1(told)
        told["records"] = {"Time to First Token": told["records"]["ttft"]}

    with pytest.raises(IngestError, match=r"records: .* of an aiperf before 0.1.1"):
        changed(tmp_path, AIPERF, to_draft)


def test_requests_of_aiperf_0_1_are_known_and_left_alone(tmp_path) -> None:
    told = json.loads((MADE_UP / AIPERF).read_text())
    to_0_1(told)
    (tmp_path / "profile_export_aiperf.json").write_text(json.dumps(told))
    request = {
        "metadata": {"timestamp_ns": 1, "credit_phase": "profiling"},
        "metrics": {"ttft": {}},
    }
    requests = tmp_path / "profile_export.jsonl"
    requests.write_text(json.dumps(request) + "\n")
    assert companion(requests)
    run = only(tmp_path / "profile_export_aiperf.json")
    assert samples(run)["ttft median"] == (0.1,)


def to_0_1(told: Any) -> None:
    kept = ("input_config", "was_cancelled", "error_summary", "start_time", "end_time")
    records = {key: told.pop(key) for key in tuple(told) if key not in kept}
    records["ttft"] = records.pop("time_to_first_token")
    told["records"] = records


def test_lm_eval_before_0_4_is_read_without_filters_and_date() -> None:
    run = one("lm-eval/0.3/results.json")
    assert samples(run) == {
        "accuracy.piqa mean": (0.75,),
        "accuracy.lambada_openai mean": (0.625,),
    }
    assert run.scenario.id == "lm-eval/lab/tiny-hybrid"
    assert {"started_at", "harness.version"} <= set(unknown(run))
    assert one("lm-eval/0.2/piqa-v0-res.json").scenario.id == "lm-eval/unknown"


def test_lm_eval_0_4_1_names_its_model_in_words_and_its_groups_with_tasks() -> None:
    run = one("lm-eval/0.4.1/results.json")
    assert samples(run) == {"accuracy.arc_easy mean": (0.5,), "accuracy.gsm8k mean": (0.25,)}
    assert run.scenario.id == "lm-eval/lab/tiny-hybrid"


def test_asv_1_wrote_a_bare_number_or_an_object() -> None:
    runs = read(ASV / "01234567-py2.7-Cython-numpy1.8.json")
    found = {metric: values for run in runs for metric, values in samples(run).items()}
    assert found == {"asv_time.time_plain": (0.25,), "asv_time.time_params(1)": (0.5,)}
    reasons = [one.failure.reason for run in runs for one in run.trials if one.failure]
    assert reasons == ["suite.time_failed failed", "suite.time_params(2) failed"]
    assert runs[0].builds[0].label == "py2.7-Cython-numpy1.8"
    assert runs[0].testbed.id == "lab-0"


def test_asv_1_told_times_and_versions_next_to_the_results() -> None:
    run = only(ASV / "89abcdef-py3.6.json")
    assert [samples(run, at)["asv_time.time_stats"] for at in range(3)] == [
        (0.2,),
        (0.3,),
        (0.4,),
    ]
    assert (run.finished_at - run.started_at).total_seconds() == 23


def test_a_row_of_asv_may_end_after_its_parameters(tmp_path) -> None:
    path = MADE_UP.parent / "asv/lab-1/d4ad43a0-existing-py_venv_bin_python3.json"
    told = json.loads(path.read_text())
    told["results"] = {"suite.track_length": [7, []], "suite.time_x": [[0.5], [], None, 1704067200]}
    changed_path = tmp_path / "short.json"
    changed_path.write_text(json.dumps(told))
    found = [samples(run) for run in read(changed_path)]
    assert found == [{"asv_number.track_length": (7,)}, {"asv_time.time_x": (0.5,)}]


def an_asv_file(tmp_path: Path, row: list[Any]) -> list[Run]:
    path = MADE_UP.parent / "asv/lab-1/d4ad43a0-existing-py_venv_bin_python3.json"
    told = json.loads(path.read_text())
    changed_path = tmp_path / "lab-1/one.json"
    changed_path.parent.mkdir(parents=True)
    changed_path.write_text(json.dumps({**told, "results": {"suite.time_x": row}}))
    units = {"suite.time_x": {"param_names": [], "type": "time", "unit": "seconds"}}
    (tmp_path / "benchmarks.json").write_text(json.dumps(units))
    return read(changed_path)


def test_of_asv_the_interval_of_a_median_is_read_where_no_samples_are(tmp_path) -> None:
    row = [[0.5, 0.7], [["1", "2"]], None, None, 1.0, [0.4, float("-inf")], [0.6, float("inf")]]
    (run,) = an_asv_file(tmp_path, row)
    known, unknown = run.trials[0].samples
    assert (known.metric, known.values, known.interval) == (
        "asv_time.time_x(1)",
        (0.5,),
        (0.4, 0.6),
    )
    assert unknown.interval is None
    row = [[0.5], [], None, None, 1.0, [0.4], [0.6], [0.4], [0.6], [1], [3], [[0.4, 0.5, 0.6]]]
    (run,) = an_asv_file(tmp_path / "with-samples", row)
    assert [trial.samples[0].interval for trial in run.trials] == [None] * 3


def test_an_interval_of_asv_that_ends_before_it_begins_is_refused(tmp_path) -> None:
    with pytest.raises(IngestError, match=r"time_x\[6\]\[0\]: expected at least 0\.6, found 0\.4"):
        an_asv_file(tmp_path, [[0.5], [], None, None, 1.0, [0.6], [0.4]])


def test_rates_of_inferencex_are_of_all_gpus_again() -> None:
    single, multi = read(MADE_UP / ROWS)
    assert samples(single)["total_token_throughput"] == (900.0 * 2,)
    assert samples(single)["output_throughput"] == (100.0 * 2,)
    assert samples(multi)["total_token_throughput"] == (900.0 * 16,)
    assert samples(multi)["output_throughput"] == (100.0 * 12,)  # only these decode
    assert (samples(single)["ttft p99"], single.testbed.id) == ((0.5,), "h200-lab")
    assert {"started_at", "trials[0].duration_s"} <= set(unknown(single))


def test_what_a_row_of_inferencex_tells_as_zero_was_not_measured(tmp_path) -> None:
    def unmeasured(told: Any) -> None:
        told[:] = [told[0] | {"input_tput_per_gpu": 0.0, "median_ttft": 0.0, "p99_ttft": 0.0}]

    (run,) = changed(tmp_path, ROWS, unmeasured)
    assert not {"total_token_throughput", "ttft median", "ttft p99"} & set(samples(run))
    assert samples(run)["output_throughput"] == (200.0,)


def test_rows_of_one_load_of_inferencex_are_trials_of_one_run(tmp_path) -> None:
    def repeat(told: Any) -> None:
        told[1] = told[0] | {"median_ttft": 0.32}

    (run,) = changed(tmp_path, ROWS, repeat)
    assert [samples(run, at)["ttft median"] for at in range(2)] == [(0.3,), (0.32,)]


def test_rows_of_vllms_nightly_evaluation_tell_a_date_and_say_no_in_words(tmp_path) -> None:
    def to_nightly(told: Any) -> None:
        del told[1], told[0]["hw"]
        told[0] |= {"date": "2026-09-30 17:44:42", "device": "lab-x", "is_multinode": "false"}

    (run,) = changed(tmp_path, ROWS, to_nightly)
    assert run.started_at == datetime(2026, 9, 30, 17, 44, 42, tzinfo=UTC)
    assert (run.testbed.id, samples(run)["output_throughput"]) == ("lab-x", (200.0,))


def test_layouts_of_2026_are_other_loads_unless_they_say_what_was_meant_before(tmp_path) -> None:
    single, multi = read(MADE_UP / "inferencex/agg-2026.json")
    assert samples(single)["total_token_throughput"] == (900.0 * 4,)  # tp times pp
    assert samples(multi)["output_throughput"] == (100.0 * 8,)

    def as_before(told: Any) -> None:
        told[:] = [{key: told[1][key] for key in told[1] if not key.endswith(("dcp_size", "_hw"))}]

    (before,) = changed(tmp_path, "inferencex/agg-2026.json", as_before)
    assert before.scenario.digest != multi.scenario.digest  # its decode_dcp_size is 2

    def plain(told: Any) -> None:
        told[:] = [told[0] | {"pcp_size": 1, "dcp_size": 1}]

    (again,) = changed(tmp_path, "inferencex/agg-2026.json", plain)
    assert again.scenario.digest == single.scenario.digest


def test_what_a_row_says_beyond_a_record_is_kept_next_to_it() -> None:
    told = json.loads((MADE_UP / "inferencex/agg-2026.json").read_text())
    runs = read(MADE_UP / "inferencex/agg-2026.json")
    assert [run.trials[0].client_result for run in runs] == told


def test_a_row_in_tables_tells_the_same_as_a_flat_one() -> None:
    flat, tables = read(MADE_UP / SESSIONS)[2], one("inferencex/sessions-tables.json")
    assert samples(tables) == samples(flat)
    assert tables.trials[0].duration_s == 1800.0


def test_the_median_of_results_next_to_it_is_not_taken_again(tmp_path) -> None:
    told = json.loads((MADE_UP / SERVING_6).read_text())
    told["individual_result_files"] = ["bench-x-run-1.json"]
    path = tmp_path / "bench-x.json"
    path.write_text(json.dumps(told))
    assert companion(path) is None  # alone it is all there is
    (tmp_path / "bench-x-run-1.json").write_text("{}")
    assert companion(path) == "perf-eval's median of results next to it"


def test_a_row_of_sessions_of_inferencex_tells_its_time_and_its_requests() -> None:
    first, second, third = read(MADE_UP / SESSIONS)
    assert samples(first) == {
        "total_token_throughput": (1200.0 * 4,),
        "output_throughput": (50.0 * 4,),
        "ttft median": (2.0,),
        "ttft p99": (6.0,),
        "tpot median": (0.09,),  # its itl is one value for each request
        "tpot p99": (0.12,),
        "e2el median": (30.0,),
        "e2el p99": (70.0,),
    }
    assert first.trials[0].duration_s == 1800.0
    assert "trials[0].duration_s" not in unknown(first)
    assert set(samples(second)) == {"total_token_throughput", "output_throughput"}
    assert samples(third)["ttft median"] == (2.5,)
    assert first.scenario.digest != second.scenario.digest


def test_sessions_of_inferencex_without_a_request_fail_the_trial(tmp_path) -> None:
    def empty(told: Any) -> None:
        told[:] = [told[1] | {"num_requests_total": 0, "num_requests_successful": 0}]
        del told[0]["duration_seconds"], told[0]["mean_e2el"]

    (run,) = changed(tmp_path, SESSIONS, empty)
    assert failure(run) == "no request"
    assert "trials[0].duration_s" in unknown(run)


@pytest.mark.parametrize(
    "folder", ["", "/root/.cache/huggingface/hub/", "~/hub/"], ids=["bare", "absolute", "home"]
)
def test_snapshots_of_a_hub_model_are_one_model(tmp_path, folder) -> None:
    name = SERVING_6
    (plain,) = changed(tmp_path, name, put(model_id="org/one-model"))
    assert plain.builds[0].flags == {}
    for commit in ("c0ffee", "decade"):
        place = f"{folder}models--org--one-model/snapshots/{commit}"
        (run,) = changed(tmp_path, name, put(model_id=place))
        assert run.scenario == plain.scenario
        assert run.scenario.id == "vllm-bench-serve/org/one-model"
        assert run.scenario.settings["model"] == "org/one-model"
        assert run.builds[0].flags == {"model_revision": commit}
    (other,) = changed(tmp_path, name, put(model_id=f"{folder}models--org--two/snapshots/c0ffee"))
    assert other.scenario.id == "vllm-bench-serve/org/two"
    assert other.scenario.digest != plain.scenario.digest


def test_a_load_is_reported_by_its_settings(tmp_path) -> None:
    name = SERVING_6
    one_at_once, many = (
        changed(tmp_path, name, put(max_concurrency=number))[0].scenario for number in (1, 64)
    )
    assert one_at_once.digest != many.digest
    assert (
        change_text(one_at_once.settings, many.settings, (1, 1), DIGESTS)
        == "max_concurrency 1 → 64"
    )


def test_another_version_of_a_benchmark_of_asv_is_another_definition(tmp_path) -> None:
    (file,) = (MADE_UP.parent / "asv/lab-1").glob("d4ad43a0*.json")
    told = json.loads(file.read_text())
    at = told["result_columns"].index("version")
    benchmark = next(iter(told["results"]))
    found = []
    for version in ("2", "3"):
        told["results"][benchmark][at] = version
        path = tmp_path / f"{version}.json"
        path.write_text(json.dumps(told))
        found.append({run.scenario.id: run.scenario for run in read(path)})
    before, after = (one[f"asv/{benchmark}"] for one in found)
    assert before.digest != after.digest
    assert change_text(before.settings, after.settings, (1, 1), DIGESTS) == f"{benchmark} 2 → 3"


def test_who_ingests_states_the_line(tmp_path) -> None:
    run = only(MADE_UP / SERVING_6, ForeignInput(build="x", line="nightly"))
    assert (run.builds[0].label, run.builds[0].line) == ("x", "nightly")
    assert run.id == only(MADE_UP / SERVING_6, ForeignInput(build="x")).id
