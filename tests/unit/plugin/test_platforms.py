"""What the plugin puts in on a CPU and on a GPU: nothing of the one on the other."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hybridwatch_engine import planter, plugin, settings, steering
from hybridwatch_engine.cpu import graph_replay, graph_replay_v2, platform_gaps
from hybridwatch_engine.fixes import registry

from tests.unit.plugin.modules import stand_in

PARTS = (
    "connections.loopback_rendezvous",
    "connections.every_rank",
    "scheduler_side.scheduler_side",
    "start_times.timed_start",
    "replays.watched_graphs",
    "replays.watched_graphs_v2",
    "probes.wait_rules.watchable_events",
)
OF_GPU = ("watched_graphs", "watched_graphs_v2", "watchable_events")
OF_CPU = (
    "collectives",
    "sleeping_ranks",
    "choice_without_triton",
    "unpacked_conv_weights",
    "half_states",
    "speculation_kernels",
    "replay",
)


def on(monkeypatch: pytest.MonkeyPatch, accelerator: str) -> None:
    """Have vLLM say which platform it is on."""
    platform = SimpleNamespace(is_cpu=lambda: accelerator == "cpu")
    stand_in(monkeypatch, "vllm.platforms", current_platform=platform)


@pytest.fixture
def put_in(monkeypatch):
    """Names of what is installed, in order."""
    done: list[str] = []

    def part(name):
        return lambda: SimpleNamespace(install=lambda: done.append(name))

    for place in PARTS:
        monkeypatch.setattr(f"hybridwatch_engine.{place}", part(place.rpartition(".")[2]))
    monkeypatch.setattr(platform_gaps, "collectives", part("collectives"))
    monkeypatch.setattr(platform_gaps, "sleeping_ranks", part("sleeping_ranks"))
    monkeypatch.setattr(platform_gaps, "unpacked_conv_weights", part("unpacked_conv_weights"))
    monkeypatch.setattr(platform_gaps, "half_states", part("half_states"))
    monkeypatch.setattr(platform_gaps, "choice_without_triton", part("choice_without_triton"))
    # The module itself needs PyTorch, which only engines have.
    kernels = {"speculation_kernels": part("speculation_kernels")}
    stand_in(monkeypatch, "hybridwatch_engine.cpu.kernels.install", **kernels)
    monkeypatch.setattr(graph_replay, "replay", part("replay"))
    monkeypatch.setattr(graph_replay_v2, "replay_v2", part("replay_v2"))
    board = SimpleNamespace(
        states=lambda: {"cpu-speculative-states": "lacking"},
        switch=lambda fix, wanted: done.append(f"{'+' if wanted else '~'}{fix}"),
    )
    monkeypatch.setattr(registry, "switchboard", lambda: board)
    return done


def started(monkeypatch, accelerator, *, replay, **more):
    on(monkeypatch, accelerator)
    wishes = {"graph_replay": replay, "fixes": {"one-token-prompt": True}, **more}
    monkeypatch.setenv(settings.VARIABLE, json.dumps(wishes))
    plugin.register()


def test_a_gpu_gets_its_graphs_watched_and_nothing_of_a_cpu(put_in, monkeypatch):
    started(monkeypatch, "cuda", replay=False)
    of_both = {"loopback_rendezvous", "every_rank", "scheduler_side", "timed_start"}
    assert set(put_in) == {*of_both, *OF_GPU, "+one-token-prompt"}


def test_a_cpu_gets_what_it_lacks_and_replays_by_itself(put_in, monkeypatch):
    started(monkeypatch, "cpu", replay=True)
    assert set(OF_CPU) < set(put_in)
    assert not set(OF_GPU) & set(put_in)
    assert "+cpu-speculative-states" in put_in


def test_each_model_runner_has_a_replay_of_its_own(put_in, monkeypatch):
    started(monkeypatch, "cpu", replay=True, model_runner="v2")
    assert "replay_v2" in put_in
    assert "replay" not in put_in


def test_a_fault_of_the_start_is_in_before_the_start_is_timed(put_in, monkeypatch):
    monkeypatch.setattr(planter, "planter", lambda: SimpleNamespace(plant=put_in.extend))
    started(monkeypatch, "cpu", replay=True, planted=["slow-start-2"])
    assert put_in.index("slow-start-2") < put_in.index("timed_start")


@pytest.mark.parametrize(
    ("asked", "backend"), [("float16", "gdn"), ("bfloat16", "gdn"), ("auto", "granitemoehybrid")]
)
def test_a_type_of_states_that_is_asked_for_is_kept(monkeypatch, asked, backend):
    """Of another backend than gated delta nets' vLLM resets it to float32."""
    cpu = SimpleNamespace(_cpu_mamba_backend=lambda _: "granitemoehybrid")
    stand_in(monkeypatch, "vllm.platforms", cpu=cpu)
    config = SimpleNamespace(cache_config=SimpleNamespace(mamba_ssm_cache_dtype=asked))
    patches = platform_gaps.half_states.__wrapped__()
    patches.install()
    assert cpu._cpu_mamba_backend(config) == backend


@pytest.mark.parametrize("accelerator", ["cpu", "cuda"])
def test_an_engine_that_nobody_drives_is_left_as_released(put_in, monkeypatch, accelerator):
    on(monkeypatch, accelerator)
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    plugin.register()
    assert put_in == []


class Worker:
    """Runs steps and dummy batches, and counts the latter."""

    def __init__(self, requests: int) -> None:
        self.model_runner = SimpleNamespace(input_batch=SimpleNamespace(num_reqs=requests))
        self.dummies = 0

    def execute_model(self, scheduled: Any) -> str:
        return f"step of {scheduled.total_num_scheduled_tokens}"

    def execute_dummy_batch(self) -> None:
        self.dummies += 1


@pytest.mark.parametrize(
    ("accelerator", "module", "name"),
    [
        ("cpu", "vllm.v1.worker.cpu_worker", "CPUWorker"),
        ("cuda", "vllm.v1.worker.gpu_worker", "Worker"),
    ],
)
def test_the_idle_rank_is_played_by_the_worker_of_the_platform(
    monkeypatch, accelerator, module, name
):
    on(monkeypatch, accelerator)
    # The other platform's worker cannot be imported: it is not there.
    stand_in(monkeypatch, module, **{name: Worker})
    rank = steering.IdleRank()
    rank.set(3)
    idle, busy = Worker(0), Worker(1)
    for worker in (idle, busy):
        said = worker.execute_model(SimpleNamespace(total_num_scheduled_tokens=0))
        assert said == "step of 0"
        worker.execute_model(SimpleNamespace(total_num_scheduled_tokens=2))
    rank.set(0)
    idle.execute_model(SimpleNamespace(total_num_scheduled_tokens=0))
    assert (idle.dummies, busy.dummies) == (3, 0)
