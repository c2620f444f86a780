"""What parts two loads: runs are one series only if model and load are known to be the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.analysis.doubt import obstacles
from hybridwatch.analysis.subject import OneSide
from hybridwatch.errors import IngestError
from hybridwatch.formats.read.foreign import ForeignInput
from hybridwatch.records.run import Run
from tests.shipped import FOREIGN
from tests.unit.formats.read.reading import companion, put_at, read

SERVE = "made-up/vllm-bench/serving-0.4.json"
GUIDELLM = "guidellm/report.json"
GUIDELLM_5 = "made-up/guidellm/0.5.json"
AIPERF = "aiperf/profile_export_aiperf.json"
AIPERF_2 = "made-up/aiperf/0.2/profile_export_aiperf.json"
ROWS = "made-up/inferencex/agg.json"
SWEEP = "made-up/vllm-bench/sweep-summary.json"

Changes = dict[str, Any]
"""Values by their paths, such as ``benchmarks/0/config``."""


@pytest.fixture
def first_run(tmp_path) -> Callable[..., Run]:
    """Read a file after changes; gives its first run."""

    def first(name: str, changes: Changes, scenario: str | None = None) -> Run:
        told = json.loads((FOREIGN / name).read_text())
        put_at(told, changes)
        path = tmp_path / "changed.json"
        path.write_text(json.dumps(told))
        return read(path, ForeignInput(testbed="lab-1", build="b", scenario=scenario))[0]

    return first


CONFIG = "benchmarks/0/config"
LAB = ForeignInput(testbed="lab-1", build="b")
OTHER_LOADS = [
    (SERVE, {"request_rate": 3.0}),
    (SERVE, {"max_concurrency": 64}),
    (SERVE, {"num_prompts": 41, "failed": 0}),
    (SERVE, {"total_input_tokens": 9}),
    (SERVE, {"best_of": 4}),
    (SERVE, {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 9}),
    (SERVE, {"random_output_len": "1024"}),
    (SERVE, {"dataset_name": "sharegpt"}),
    (SERVE, {"seed": "8"}),
    (GUIDELLM, {f"{CONFIG}/strategy/streams": 64}),
    (GUIDELLM, {f"{CONFIG}/strategy/rampup_duration": 30.0}),
    (GUIDELLM, {f"{CONFIG}/strategy": {"type_": "constant", "rate": 1.0, "max_concurrency": 9}}),
    (GUIDELLM, {f"{CONFIG}/backend/stream": False}),
    (GUIDELLM, {f"{CONFIG}/backend/model": "acme/other"}),
    (GUIDELLM, {f"{CONFIG}/requests/shuffle": True}),
    (GUIDELLM, {f"{CONFIG}/warmup/value": 0.1}),
    (GUIDELLM, {"config/spec/data/0/output_tokens": 1024}),
    (GUIDELLM, {"config/spec/seed/value": 1}),
    (GUIDELLM, {"config/spec/constraints/0/count": 1}),
    (GUIDELLM_5, {"args/rampup": 30.0}),
    (AIPERF, {"input_config/phases/0/concurrency": 64}),
    (AIPERF, {"input_config/datasets/0/prompts/osl/mean": 1024.0}),
    (AIPERF, {"input_config/datasets/0/random_seed": 8}),
    (AIPERF_2, {"input_config/loadgen/request_rate": 3.0}),
    (AIPERF_2, {"input_config/endpoint/extra": [["temperature", 1]]}),
    *((ROWS, {f"0/{key}": 64}) for key in ("conc", "isl", "osl")),
]


@pytest.mark.parametrize(("name", "changes"), OTHER_LOADS, ids=str)
def test_another_load_is_another_series(first_run, name, changes) -> None:
    usual, other = first_run(name, {}), first_run(name, changes)
    assert other.scenario.digest != usual.scenario.digest
    assert other.scenario.settings != usual.scenario.settings
    assert obstacles(OneSide(usual, 0), OneSide(other, 0))


def test_a_constant_rate_has_a_limit_of_its_own(first_run) -> None:
    runs = [
        first_run(
            GUIDELLM,
            {f"{CONFIG}/strategy": {"type_": "constant", "rate": 1.0, "max_concurrency": limit}},
        )
        for limit in (None, 8, 9)
    ]
    assert len({run.scenario.digest for run in runs}) == 3


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (SERVE, {"output_throughput": 5.0, "date": "20260302-101500", "ramp_up_strategy": None}),
        (GUIDELLM, {f"{CONFIG}/strategy/max_concurrency": 3, f"{CONFIG}/strategy/worker_count": 1}),
        (AIPERF, {"input_config/artifacts/dir": "elsewhere"}),
        (ROWS, {"0/median_ttft": 0.9}),
    ],
    ids=str,
)
def test_what_was_measured_and_where_is_no_part_of_a_load(first_run, name, changes) -> None:
    usual, other = first_run(name, {}), first_run(name, changes)
    assert other.scenario == usual.scenario
    assert not obstacles(OneSide(usual, 0), OneSide(other, 0))


def test_guidellm_without_a_model_given_names_the_one_of_each_benchmark(first_run) -> None:
    nothing = {"config/spec/backend/model": ""}
    small, large = (
        first_run(GUIDELLM, {**nothing, f"{CONFIG}/backend/model": f"acme/{name}"})
        for name in ("small-1b", "large-70b")
    )
    assert small.scenario.id == "guidellm/acme/small-1b"
    assert large.scenario.id == "guidellm/acme/large-70b"
    assert large.scenario.digest != small.scenario.digest


@pytest.mark.parametrize(
    ("name", "nothing", "then"),
    [
        (
            GUIDELLM,
            {"config/spec/backend/model": "", f"{CONFIG}/backend/model": None},
            {"benchmarks/0/start_time": 1.0},
        ),
        (SERVE, {"model_id": ""}, {"duration": 9.0}),
        (AIPERF, {"input_config/models/items/0/name": " "}, {"benchmark_id": "other"}),
        (AIPERF_2, {"input_config/endpoint/model_names/0": ""}, {"benchmark_id": "other"}),
        (ROWS, {"0/model": ""}, {"0/hw": "other"}),
        ("vllm-bench/throughput.json", {}, {"elapsed_time": 9.0}),
        ("vllm-bench/latency.json", {}, {"avg_latency": 9.0}),
    ],
    ids=str,
)
def test_a_load_of_an_unknown_model_is_compared_with_no_other(
    first_run, name, nothing, then
) -> None:
    one, same, other = (first_run(name, changes) for changes in (nothing, nothing, nothing | then))
    assert same.scenario == one.scenario
    assert one.source is not None
    assert "scenario.digest" in one.source.unknown
    (reason,) = obstacles(OneSide(one, 0), OneSide(other, 0), across_testbeds=True)
    assert "its file names no model: ingest with --scenario" in reason
    # The person who ingests knows it.
    named = [first_run(name, changes, "acme-9b") for changes in (nothing, nothing | then)]
    assert not obstacles(*(OneSide(run, 0) for run in named), across_testbeds=True)


@pytest.mark.parametrize("folder", ["/data/hub/models--acme--one", "/data/one", "one", "~/one"])
def test_a_snapshot_is_called_by_its_repository(first_run, folder) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    run = first_run(SERVE, {"model_id": f"{folder}/snapshots/{commit}/"})
    assert run.scenario.id == f"vllm-bench-serve/{'acme/one' if 'acme' in folder else 'one'}"
    assert commit not in str(run.scenario.settings)
    assert run.builds[0].flags == {"model_revision": commit}


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """The folder of one combination of a sweep: each result, and all of them once more."""
    results = json.loads((FOREIGN / SWEEP).read_text())
    for number, result in enumerate(results):
        (tmp_path / f"run={number}.json").write_text(json.dumps(result))
    (tmp_path / "summary.json").write_text(json.dumps(results))
    return tmp_path


def test_results_of_a_sweep_count_once(sweep) -> None:
    assert "summary of vllm bench sweep" in str(companion(sweep / "summary.json"))
    assert companion(sweep / "run=0.json") is None
    (sweep / "run=1.json").unlink()
    assert companion(sweep / "summary.json") is None
    (run,) = read(sweep / "summary.json", LAB)
    (lost,) = run.trials
    assert ("output_throughput", (40.0,)) in [(one.metric, one.values) for one in lost.samples]


def test_what_a_sweep_varied_parts_its_results(sweep) -> None:
    summary = sweep / "summary.json"
    (sweep / "run=0.json").unlink()
    (sweep / "run=1.json").unlink()
    results = json.loads(summary.read_text())
    results[1]["max_num_seqs"] = 8
    summary.write_text(json.dumps(results))
    four, eight = read(summary, LAB)
    assert (four.scenario.settings["max_num_seqs"], eight.scenario.settings["max_num_seqs"]) == (
        "4",
        "8",
    )
    assert four.scenario.digest != eight.scenario.digest


def test_a_number_of_a_run_that_is_none_is_named(sweep) -> None:
    results = json.loads((sweep / "summary.json").read_text())
    results[0]["run_number"] = "../0"
    (sweep / "summary.json").write_text(json.dumps(results))
    with pytest.raises(
        IngestError, match=r"\[0\].run_number: expected a finite number, found '../0'"
    ):
        companion(sweep / "summary.json")


def test_rates_of_all_tokens_and_of_good_requests_are_kept(first_run) -> None:
    told = {"total_token_throughput": 96.0, "request_goodput": 1.5}
    run = first_run(SERVE, told)
    found = {one.metric: one.values for one in run.trials[0].samples}
    assert found["total_token_throughput"] == (96.0,)
    assert found["request_goodput"] == (1.5,)
    assert run.source is not None
    assert "scenario.settings.goodput" in run.source.unknown
    goals = first_run(SERVE, {**told, "goodput": "ttft:100"})
    assert goals.source is not None
    assert "scenario.settings.goodput" not in goals.source.unknown
    assert goals.scenario.digest != run.scenario.digest
    # None were given.
    assert "request_goodput" not in {
        one.metric for one in first_run(SERVE, {"request_goodput": None}).trials[0].samples
    }


@pytest.mark.parametrize(
    ("name", "wanted"), [(GUIDELLM, 202 / 0.30461883544921875), (AIPERF, 1550.4163316825297)]
)
def test_other_tools_count_all_tokens_too(first_run, name, wanted) -> None:
    (trial,) = first_run(name, {}).trials
    (found,) = (one for one in trial.samples if one.metric == "total_token_throughput")
    assert found.values == (pytest.approx(wanted),)
