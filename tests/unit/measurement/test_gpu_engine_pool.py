"""An engine pool on GPUs: what each engine gets, what stands in, and what the record says of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybridwatch.engines.builds import BuildRequest, named_build, parse_label
from hybridwatch.engines.fitting import Checkpoint
from hybridwatch.errors import BuildError
from hybridwatch.measurement import engine_pool as module
from hybridwatch.measurement import testbed
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.scenarios.scenario import Scenario

ROOT = Path(__file__).parents[3]
CUDA, OTHER, CPU = (
    parse_label(name, ROOT) for name in ("cuda-0.23.0", "cuda-0.21.0", "cpu-0.27.1")
)
KNOWN_BAD = parse_label("cuda-0.23.0~stale-block-table", ROOT)


def shipped(name: str) -> Scenario:
    return load_scenario(ROOT / "scenarios" / f"{name}.toml", ROOT / "scenarios")


RANKS, PAIR, HUB = map(shipped, ("gpu/dp-dummy-run", "gpu/nixl-disagg", "gpu/gsm8k-padded-rows"))


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """Make an engine pool whose engines are never started and say who they are all the same."""
    identity = {
        "release": "0.23.0",
        "distribution": "vllm",
        "wheel_digest": "0" * 64,
        "fixes": {},
        "planted": [],
        "model_runner": "v2",
    }
    engine = SimpleNamespace(control=SimpleNamespace(identity=lambda: identity))
    monkeypatch.setattr(EnginePool, "make_ready", lambda *_: engine)

    def of(scenario: Scenario, *sides: BuildRequest, gpus: tuple[str, ...]) -> EnginePool:
        return EnginePool(scenario, sides, ROOT / "models", tmp_path, print, gpus)

    return of


def test_a_release_that_is_too_old_is_one_line_before_anything_starts():
    speculating, shapes = map(shipped, ("gpu/draft-max-seq-len", "gpu/qwen3-5-9b"))
    make_ready(speculating, [CUDA], ROOT / "models")
    told = "gpu/draft-max-seq-len needs vLLM 0.23.0 or newer, and cuda-0.21.0 is 0.21.0"
    with pytest.raises(BuildError, match=told):
        make_ready(speculating, [CUDA, OTHER], ROOT / "models")
    with pytest.raises(BuildError, match=r"gpu/qwen3-5-9b needs vLLM 0.27.1 or newer, and cuda-0"):
        make_ready(shapes, [CUDA], ROOT / "models")


def test_releases_are_compared_as_numbers():
    shapes = shipped("gpu/qwen3-5-9b")
    found = {name: shapes.starts_on(name) for name in ("0.9.0", "0.27.1", "0.27.1.dev3", "1.0.0")}
    assert found == {"0.9.0": False, "0.27.1": True, "0.27.1.dev3": True, "1.0.0": True}


def test_with_enough_gpus_nothing_stands_in(pool):
    with pool(RANKS, CUDA, gpus=("0", "1")) as made:
        assert made.client(0).launch.gpus == ("0", "1")
        flags = made.identify(0).flags
    assert made.scenario == RANKS
    assert flags["data_parallel_size"] == "2"
    assert flags["model_runner"] == "v2"  # which runs, whether anybody asked for it or not
    assert not {"stand_in", "gpu_memory_utilization", "model_revision"} & set(flags)


def test_the_record_says_what_stands_in_for_ranks(pool):
    with pool(RANKS, CUDA, gpus=("0",)) as made:
        flags = made.identify(0).flags
    assert made.scenario.workload.idle_dummy_batches > 0
    assert flags["data_parallel_size"] == "1"
    assert flags["stand_in"].startswith("one GPU: an engine alone runs ")


def test_the_record_says_what_stands_in_for_a_pair(pool):
    with pool(PAIR, CUDA, gpus=("0",)) as made:
        flags = made.identify(0).flags
    assert flags["stand_in"] == "one GPU: two engines with 0.45 of its memory each"
    assert flags["gpu_memory_utilization"] == "0.45"


@pytest.mark.parametrize(
    ("sides", "shares"), [((CUDA, KNOWN_BAD), [None, None]), ((CUDA, OTHER), [0.45, 0.45])]
)
def test_engines_share_a_gpu_when_there_are_two_of_them(pool, sides, shares):
    with pool(shipped("gpu/dummy-run"), *sides, gpus=("0",)) as made:
        assert [made.client(side).launch.memory_share for side in (0, 1)] == shares


def test_a_cpu_engine_beside_one_on_a_gpu_gets_nothing_of_it(pool):
    with pool(shipped("smoke/dummy-run"), CPU, CUDA, gpus=("0",)) as made:
        launches = [made.client(side).launch for side in (0, 1)]
        flags = made.identify(0).flags
    assert [launch.gpus for launch in launches] == [(), ("0",)]
    assert [launch.graph_replay for launch in launches] == [True, False]
    assert "gpu_memory_utilization" not in flags


def test_the_record_has_the_commit_of_a_model_of_the_hub(pool, monkeypatch):
    fetched = Checkpoint(Path("/cache/snapshots/c0ffee"), revision="c0ffee")
    monkeypatch.setattr(module, "find_checkpoint", lambda *_: fetched)
    with pool(HUB, CUDA, gpus=("0",)) as made:
        assert made.client(0).launch.model == fetched.folder
        assert made.identify(0).flags["model_revision"] == "c0ffee"


def test_what_comes_from_the_hub_is_fetched_once_for_each_build(monkeypatch, tmp_path):
    asked: list[Any] = []
    monkeypatch.setattr(testbed, "find_checkpoint", lambda _, build, __: asked.append(build.name))
    monkeypatch.setattr(testbed, "fetch_tasks", lambda tasks, _: asked.append(tasks))
    make_ready(HUB, (CUDA, KNOWN_BAD, OTHER), tmp_path)
    assert asked == ["cuda-0.23.0", "cuda-0.21.0", ("gsm8k",)]
    make_ready(PAIR, (CUDA,), tmp_path)
    assert len(asked) == 3


def test_builds_for_gpus_are_builds_for_gpus():
    assert named_build("cuda-0.23.0", ROOT).accelerator == "cuda"
