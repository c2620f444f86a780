"""How an engine comes up: what a GPU's gets, and that a CPU's gets none of it and vice versa."""

import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hybridwatch_engine.early import interval_arguments
from hybridwatch_engine.source import SourceTree

from hybridwatch.engines import server
from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.fitting import misfit, on_usual_runner
from hybridwatch.engines.launch import CUDA_START_TIMEOUT_S, HOST, START_TIMEOUT_S, Launch
from hybridwatch.engines.load_client import client_arguments, write_requests
from hybridwatch.engines.server import EngineServer, pair_launch
from hybridwatch.errors import EngineError, LateEngineError
from hybridwatch.scenarios.load import find

SCENARIOS = {one.id: one for one in find(Path(__file__).parents[3] / "scenarios", ())}


def launched(scenario_id: str, accelerator: str, **changes: Any) -> Launch:
    launch = Launch(
        python=Path("/python"),
        model=Path("/models/a-model"),
        served_name="a-model",
        engine=SCENARIOS[scenario_id].engine,
        graph_replay=accelerator == "cpu",
        fixes={},
        environment={},
        flags={},
        accelerator=accelerator,
    )
    return replace(launch, **changes)


def options(launch: Launch) -> dict[str, str]:
    """The command line by option; a switch has an empty value."""
    words = launch.command(80)[3:]
    return {
        word.removeprefix("--"): "" if following.startswith("--") else following
        for word, following in zip(words, [*words[1:], "--"], strict=True)
        if word.startswith("--")
    }


def compilation(launch: Launch) -> Any:
    return json.loads(options(launch)["compilation-config"])


@pytest.mark.parametrize("gpus", [(), ("0",)])
def test_nothing_of_a_cpu_reaches_a_gpu(gpus):
    found = []
    for scenario_id in SCENARIOS:
        launch = launched(scenario_id, "cuda", gpus=gpus)
        variables = launch.variables()
        found += [
            f"{scenario_id}: {name}" for name in variables if "CPU" in name or "TRITON" in name
        ]
        if json.loads(variables["HYBRIDWATCH_ENGINE"])["graph_replay"] is not False:
            found.append(f"{scenario_id}: graph_replay")
        if "distributed-executor-backend" in options(launch):
            found.append(f"{scenario_id}: distributed-executor-backend")
    assert found == []


def test_nothing_of_a_gpu_reaches_a_cpu():
    found = []
    for scenario_id in SCENARIOS:
        launch = launched(scenario_id, "cpu")
        found += [f"{scenario_id}: {name}" for name in launch.variables() if "CUDA" in name]
        if "gpu-memory-utilization" in options(launch):
            found.append(f"{scenario_id}: gpu-memory-utilization")
    assert found == []


@pytest.mark.parametrize("key", ["tensor_parallel_size", "pipeline_parallel_size"])
def test_workers_are_asked_for_by_vllms_flag_and_share_the_processors(key):
    plain = launched("smoke/padded-graph-rows", "cpu")
    assert key.replace("_", "-") not in options(plain)
    assert "VLLM_CPU_OMP_THREADS_BIND" not in plain.variables()
    two = replace(plain, engine=plain.engine.model_copy(update={key: 2}))
    assert options(two)[key.replace("_", "-")] == "2"
    assert "distributed-executor-backend" not in options(two)
    assert two.variables()["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"


def test_gpus_are_named_as_cuda_numbers_them_along_the_bus():
    found = launched("gpu/dp-dummy-run", "cuda", gpus=("2", "5")).variables()
    assert (found["CUDA_VISIBLE_DEVICES"], found["CUDA_DEVICE_ORDER"]) == ("2,5", "PCI_BUS_ID")


def test_a_share_of_the_memory_is_taken_only_when_it_is_given():
    launch = launched("gpu/dummy-run", "cuda", gpus=("0",))
    assert "gpu-memory-utilization" not in options(launch)
    assert options(replace(launch, memory_share=0.45))["gpu-memory-utilization"] == "0.45"


def test_few_states_are_kept_only_when_it_is_asked_for():
    name = "VLLM_PREFIX_CACHE_RETENTION_INTERVAL"
    assert launched("reported/i53504-repeat-misses", "cpu").variables()[name] == "0"
    assert name not in launched("smoke/dummy-run", "cpu").variables()


@pytest.mark.parametrize(
    ("variables", "arguments"),
    [
        ("VLLM_PREFIX_CACHE_RETENTION_INTERVAL: int | None = None\n", []),
        ("", ["--prefix-cache-retention-interval", "128"]),
    ],
)
def test_interval_is_an_argument_where_a_release_has_no_variable_for_it(
    tmp_path, monkeypatch, variables, arguments
):
    tree = SourceTree(tmp_path)
    (tmp_path / "envs.py").write_text(variables)
    monkeypatch.delenv("VLLM_PREFIX_CACHE_RETENTION_INTERVAL", raising=False)
    assert interval_arguments(tree) == []
    found = launched("curated/decoding-rows", "cpu").variables()
    name = "VLLM_PREFIX_CACHE_RETENTION_INTERVAL"
    monkeypatch.setenv(name, found[name])
    assert interval_arguments(tree) == arguments


def test_keys_of_the_prefix_cache_are_handed_on_and_left_alone_unless_said():
    finer = launched("reported/passed-block-end", "cpu")
    found = options(finer)
    assert found["prefix-match-unit"] == "16"
    assert found["enable-mamba-shared-prefix-checkpoint"] == ""
    layout = {"mamba_block_size": 256, "conv_state_layout": "DS"}
    wished = replace(finer, engine=finer.engine.model_copy(update=layout))
    assert options(wished)["mamba-block-size"] == "256"
    assert wished.variables()["VLLM_SSM_CONV_STATE_LAYOUT"] == "DS"
    plain = launched("smoke/dummy-run", "cpu")
    assert not {"prefix-match-unit", "mamba-block-size"} & set(options(plain))
    assert not any("shared-prefix" in name for name in options(plain))
    assert "VLLM_SSM_CONV_STATE_LAYOUT" not in plain.variables()


def test_replayssm_is_switched_on_only_where_a_scenario_asks_for_it():
    found = options(launched("gpu/nemotron-h-replayssm", "cuda"))
    assert (found["use-replayssm"], found["replayssm-buffer-len"]) == ("", "8")
    plain = options(launched("gpu/nemotron-h-mtp", "cuda"))
    assert not any("replayssm" in name for name in plain)


def test_adapters_are_served_under_the_names_of_their_folders():
    folders = (Path("/models/one"), Path("/models/other"))
    words = launched("curated/lora-adapters", "cpu", adapters=folders).command(80)
    at = words.index("--lora-modules")
    assert words[at - 1 : at + 3] == [
        *("--enable-lora", "--lora-modules"),
        *("one=/models/one", "other=/models/other"),
    ]
    assert words[words.index("--max-loras") + 1] == "3"
    plain = options(launched("smoke/dummy-run", "cpu"))
    assert not any("lora" in name for name in plain)


def test_types_of_states_and_keys_are_vllms_words():
    half = launched("curated/half-states", "cpu")
    assert options(half)["mamba-ssm-cache-dtype"] == "float16"
    types = {"mamba_cache_dtype": "bfloat16", "kv_cache_dtype": "fp8"}
    found = options(replace(half, engine=half.engine.model_copy(update=types)))
    assert (found["mamba-cache-dtype"], found["kv-cache-dtype"]) == ("bfloat16", "fp8")


def test_a_connector_is_attached_only_where_a_scenario_asks_for_one():
    found = options(launched("reported/i53505-empty-connector", "cpu"))
    config = json.loads(found["kv-transfer-config"])
    assert config["kv_connector"] == "EmptyConnector"
    assert config["kv_connector_module_path"] == "hybridwatch_engine.empty_connector"
    keeping = options(launched("reported/i42554-connector-hit", "cpu"))["kv-transfer-config"]
    assert json.loads(keeping)["kv_connector"] == "KeepingConnector"
    offloading = json.loads(options(launched("gpu/offloaded-states", "cuda"))["kv-transfer-config"])
    assert offloading["kv_connector"] == "OffloadingConnector"
    assert offloading["kv_connector_extra_config"] == {"cpu_bytes_to_use": 2**28}
    assert "kv_connector_module_path" not in offloading
    # Else vLLM would have one kind of cache for all layers, and look nothing up by kind.
    assert found["no-disable-hybrid-kv-cache-manager"] == ""
    assert "kv-transfer-config" not in options(launched("smoke/dummy-run", "cpu"))


def test_made_up_weights_and_a_tokenizer_of_bytes():
    letters = Path("/models/tiny-hybrid")
    launch = launched("gpu/granite-4-h-tiny", "cuda", tokenizer=letters)
    found = options(launch)
    assert (found["load-format"], found["tokenizer"]) == ("dummy", str(letters))
    assert compilation(launch)["mode"] == 3
    load = SCENARIOS["gpu/granite-4-h-tiny"].workload.generation
    words = client_arguments(launch, "http://x", load, Path("r.json"))
    assert words[words.index("--tokenizer") + 1] == "tiny-hybrid"


def test_requests_arrive_by_the_second_only_where_a_rate_is_asked_for():
    launch = launched("smoke/dummy-run", "cpu")
    load = SCENARIOS["smoke/dummy-run"].workload.generation
    assert "--request-rate" not in client_arguments(launch, "http://x", load, Path("r.json"))
    paced = load.model_copy(update={"request_rate": 2.5})
    words = client_arguments(launch, "http://x", paced, Path("r.json"))
    assert words[words.index("--request-rate") + 1] == "2.5"
    # A slow load takes as long as its requests take to arrive, and is not given up before.
    assert write_requests(load, Path("r.json")) == 0
    assert write_requests(paced, Path("r.json")) == load.prompts / 2.5


def test_the_requests_of_a_trace_wait_for_nothing_but_their_time():
    load = SCENARIOS["curated/replayed-trace"].workload.generation
    launch = launched("curated/replayed-trace", "cpu")
    words = client_arguments(launch, "http://x", load, Path("r.json"))
    assert words[words.index("--dataset-path") + 1] == "r.requests"
    at = words.index("--goodput")
    assert words[at + 1 : at + 3] == ["ttft:150", "tpot:20"], "milliseconds"
    assert not {"--max-concurrency", "--request-rate", "--random-input-len"} & set(words)


def test_a_model_of_ours_is_neither_made_up_nor_compiled():
    launch = launched("gpu/padded-graph-rows", "cuda")
    assert not {"load-format", "tokenizer"} & set(options(launch))
    assert compilation(launch)["mode"] == 0


def test_a_model_that_drafts_for_itself_names_no_other():
    config = json.loads(options(launched("gpu/nemotron-h-mtp", "cuda"))["speculative-config"])
    assert config == {"method": "mtp", "num_speculative_tokens": 1}


@pytest.mark.parametrize(
    ("wanted", "switch"),
    [(None, None), (True, "async-scheduling"), (False, "no-async-scheduling")],
)
def test_scheduling_ahead_is_left_to_the_engine_unless_said(wanted, switch):
    launch = launched("gpu/dummy-run", "cuda")
    engine = launch.engine.model_copy(update={"async_scheduling": wanted})
    found = options(replace(launch, engine=engine))
    assert {"async-scheduling", "no-async-scheduling"} & set(found) == ({switch} - {None})


def test_the_engines_of_a_pair_get_a_gpu_each_and_buffers_there():
    pair = launched("gpu/nixl-disagg", "cuda", gpus=("3", "1"))
    prefill, decode = (pair_launch(pair, role) for role in ("prefill", "decode"))
    assert (prefill.gpus, decode.gpus) == (("3",), ("1",))
    assert json.loads(prefill.flags["kv-transfer-config"])["kv_buffer_device"] == "cuda"
    assert "cuda_ipc" in prefill.environment["UCX_TLS"]
    assert prefill.environment["UCX_NET_DEVICES"] == "lo"
    assert "VLLM_CPU_OMP_THREADS_BIND" not in prefill.environment
    shared = replace(pair, gpus=("3",))
    assert {pair_launch(shared, role).gpus for role in ("prefill", "decode")} == {("3",)}


def test_the_engines_of_a_pair_on_a_cpu_are_as_they_were():
    prefill = pair_launch(launched("smoke/nixl-disagg", "cpu"), "prefill")
    assert prefill.gpus == ()
    assert json.loads(prefill.flags["kv-transfer-config"])["kv_buffer_device"] == "cpu"
    assert prefill.environment["UCX_TLS"] == "tcp"
    assert prefill.environment["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"


@pytest.mark.parametrize(
    ("scenario_id", "accelerator", "graphs", "drafts"),
    [
        ("smoke/padded-graph-rows", "cpu", True, False),
        ("gpu/padded-graph-rows", "cuda", True, False),
        ("smoke/spec-decode-all-cache", "cpu", True, True),
        ("gpu/spec-decode-all-cache", "cuda", True, True),
        # Without graphs there are none to set aside; a scheduler that runs ahead keeps its drafts.
        ("gpu/draft-max-seq-len", "cuda", False, True),
        ("gpu/nemotron-h-mtp", "cuda", True, False),
        ("gpu/granite-4-h-tiny", "cuda", True, False),
    ],
)
def test_what_a_live_engine_can_do_without(scenario_id, accelerator, graphs, drafts):
    launch = launched(scenario_id, accelerator)
    assert launch.can_set_graphs_aside is graphs
    assert launch.can_withhold_drafts is drafts


def test_an_engine_without_full_graphs_has_none_to_set_aside():
    launch = launched("gpu/padded-graph-rows", "cuda")
    engine = launch.engine.model_copy(update={"cudagraph_mode": "PIECEWISE"})
    assert not replace(launch, engine=engine).can_set_graphs_aside


def test_a_gpu_has_more_patience():
    assert launched("gpu/dummy-run", "cuda").start_timeout_s == CUDA_START_TIMEOUT_S
    assert launched("smoke/dummy-run", "cpu").start_timeout_s == START_TIMEOUT_S


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("cpu-0.32.0", None),
        ("cpu-0.32.0+v2", None),
        ("cpu-0.32.0+v1", "needs model runner V2, and cpu-0.32.0+v1 runs another"),
    ],
)
def test_a_scenario_of_one_runner_is_left_out_where_a_label_asks_for_the_other(label, why):
    scenario = SCENARIOS["smoke/draft-max-seq-len"]
    assert misfit(scenario, parse_label(label)) == why


def test_a_scenario_whose_cache_mode_runner_v2_refuses_is_left_out_there():
    scenario = SCENARIOS["smoke/spec-decode-all-cache"]
    why = "needs model runner V1, and cpu-0.31.0+v2 runs another"
    assert misfit(scenario, parse_label("cpu-0.31.0+v2")) == why


@pytest.mark.parametrize(
    ("scenario_id", "asked", "measured"),
    [
        ("curated/aborts", "cpu-0.28.0", "cpu-0.28.0"),
        ("curated/aborts", "cpu-0.29.0", "cpu-0.29.0+v2"),
        ("curated/aborts", "cpu-0.29.0+slow-step", "cpu-0.29.0+v2+slow-step"),
        ("curated/aborts", "cpu-0.29.0+v1", "cpu-0.29.0+v1"),
        # Faults of code that both have, and of V1's own.
        ("smoke/mtp-align", "cpu-0.32.0", "cpu-0.32.0+v2"),
        ("reported/dummy-run-padding", "cpu-0.32.0", "cpu-0.32.0"),
        ("smoke/dummy-run", "cpu-0.32.0", "cpu-0.32.0+v2"),
        # V2 refuses the one, and the other says itself that it is V2's.
        ("smoke/spec-decode-all-cache", "cpu-0.31.0", "cpu-0.31.0"),
        ("smoke/draft-max-seq-len", "cpu-0.32.0", "cpu-0.32.0+v2"),
        ("smoke/draft-max-seq-len", "cpu-0.27.1", "cpu-0.27.1"),
        # On a GPU the release chooses.
        ("gpu/model-runners", "cuda-0.32.0", "cuda-0.32.0"),
    ],
)
def test_a_cpu_runs_what_users_run_on_gpus_and_the_label_says_so(scenario_id, asked, measured):
    side = on_usual_runner(SCENARIOS[scenario_id], parse_label(asked))
    assert side.label == measured


def test_the_line_of_a_build_is_its_own_on_whatever_runner():
    side = replace(parse_label("cpu-0.32.0"), line="nightly")
    assert on_usual_runner(SCENARIOS["curated/aborts"], side).line == "nightly"


RAISED = """\
cat >&2 <<'end'
(EngineCore pid=7) ERROR 11-26 19:19:10 [core.py:1510] Traceback (most recent call last):
(EngineCore pid=7) ERROR 11-26 19:19:10 [core.py:1510]   File "/srv/patch.py", line 13, in load
(EngineCore pid=7) ERROR 11-26 19:19:10 [core.py:1510]     return layers[name]
(EngineCore pid=7) ERROR 11-26 19:19:10 [core.py:1510] KeyError: 'no_such_layer'
RuntimeError: Engine core initialization failed. See root cause above.
end
"""
CAUSE = ": KeyError: 'no_such_layer' (/srv/patch.py:13)"


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start an engine whose interpreter is a shell script."""

    def started(script, wait_s=60.0):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        python.chmod(0o755)
        launch = replace(launched("smoke/padded-graph-rows", "cpu"), python=python)
        monkeypatch.setattr("hybridwatch.engines.launch.START_TIMEOUT_S", wait_s)
        with EngineServer(launch, tmp_path / "log"):
            pytest.fail("it came up")

    return started


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"{RAISED}exit 1", f"the engine ended while starting (status 1){CAUSE}"),
        ("exit 3", "the engine ended while starting (status 3)"),
        ("kill -9 $$", "the engine ended while starting (signal 9)"),
    ],
)
def test_an_engine_that_ends_is_reported_with_its_cause(start, script, said):
    with pytest.raises(EngineError) as caught:
        start(script)
    assert str(caught.value) == said


def test_a_serving_process_that_waits_for_a_dead_core_is_not_late(start):
    with pytest.raises(EngineError) as caught:
        start(f"{RAISED}sleep 60", wait_s=2.0)
    assert not isinstance(caught.value, LateEngineError)
    assert str(caught.value) == f"the engine does not come up{CAUSE}"


def test_an_engine_that_is_not_up_and_tells_of_nothing_is_late(start):
    with pytest.raises(LateEngineError, match="the engine was not up after 1 s"):
        start("sleep 60", wait_s=1.0)


def test_a_free_port_is_none_that_the_system_gives_to_others_meanwhile():
    first, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if first < 32_768:
        pytest.skip(f"this system gives ports from {first} on")
    assert all(server.free_port() < first for _ in range(200))


def test_a_port_that_somebody_has_is_not_free(monkeypatch):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr(server, "_PORTS", (*[port] * 20_000, *server._PORTS))
        assert port not in {server.free_port() for _ in range(20)}
