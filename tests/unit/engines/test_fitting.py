"""What a scenario needs of a build and a machine: its model, and its GPUs."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hybridwatch_engine import hub

from hybridwatch.engines.builds import BuildSpec, named_build
from hybridwatch.engines.fitting import MEMORY, Checkpoint, arrange, cuda_numbers, find_checkpoint
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.load import digest, load_scenario
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.nvidia import Device
from tests.shipped import ROOT, SCENARIOS

MODELS = ROOT / "models"


def shipped(name: str) -> Scenario:
    return load_scenario(ROOT / "scenarios" / f"{name}.toml", ROOT / "scenarios")


OURS, MADE_UP, HUB = map(
    shipped, ("gpu/dummy-run", "gpu/granite-4-h-tiny", "gpu/gsm8k-padded-rows")
)
BUILD = named_build("cpu-0.27.1", ROOT)


@pytest.fixture
def build(tmp_path: Path) -> BuildSpec:
    """A build whose Python answers what lies in ``answer.json``, and keeps what it is asked."""
    python = tmp_path / ".engines" / BUILD.name / "bin" / "python"
    python.parent.mkdir(parents=True)
    here = "$(dirname $0)"
    python.write_text(f'#!/bin/sh\necho "$@" > {here}/asked\ncat {here}/answer.json\nexit 3\n')
    python.chmod(0o755)
    return BUILD.model_copy(update={"home": tmp_path})


def answer(build: BuildSpec, text: str) -> None:
    build.interpreter.with_name("answer.json").write_text(text)


def test_our_models_lie_among_ours():
    assert find_checkpoint(OURS, BUILD, MODELS) == Checkpoint(MODELS / "tiny-memory-moe")


def test_made_up_weights_have_a_configuration_and_a_tokenizer_of_bytes():
    found = find_checkpoint(MADE_UP, BUILD, MODELS)
    assert found.folder == MODELS / "configs" / "granite-4.0-h-tiny"
    assert found.tokenizer == MODELS / "tiny-hybrid"


@pytest.mark.parametrize(("scenario", "where"), [(OURS, ""), (MADE_UP, "configs/")])
def test_a_model_that_is_nowhere_is_reported(scenario, where, tmp_path):
    with pytest.raises(BuildError) as caught:
        find_checkpoint(scenario, BUILD, tmp_path)
    assert str(caught.value) == (
        f"{scenario.id}: model: expected a folder {where + scenario.model!r} in {tmp_path}"
    )


def test_a_model_of_the_hub_is_fetched_at_its_revision(build, tmp_path):
    answer(build, json.dumps({"path": "/cache/abc", "revision": "abc"}))
    found = find_checkpoint(HUB.model_copy(update={"revision": "main"}), build, tmp_path)
    assert found == Checkpoint(Path("/cache/abc"), revision="abc")
    asked = build.interpreter.with_name("asked").read_text().split()
    assert asked == ["-P", "-m", "hybridwatch_engine.hub", HUB.model, "main"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"error": "ConnectError: no route"}', "ConnectError: no route"),
        ("Traceback", "the hub's client ended with status 3"),
        ("", "the hub's client ended with status 3"),
    ],
)
def test_a_hub_out_of_reach_is_one_line(build, tmp_path, text, why):
    answer(build, text)
    with pytest.raises(BuildError) as caught:
        find_checkpoint(HUB, build, tmp_path)
    said = f"{HUB.id}: model {HUB.model}: it cannot be had from the hub: {why}"
    assert str(caught.value) == said


def test_the_engine_tells_path_and_commit(monkeypatch, capsys):
    calls = []

    def snapshot_download(name, **rest):
        calls.append((name, rest["revision"]))
        return "/cache/snapshots/c0ffee"

    client = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    assert hub.main("owner/name") == 0
    assert json.loads(capsys.readouterr().out) == {
        "path": "/cache/snapshots/c0ffee",
        "revision": "c0ffee",
    }
    assert calls == [("owner/name", None)]


def test_the_engine_tells_the_first_line_of_what_went_wrong(monkeypatch, capsys):
    def snapshot_download(*_, **__):
        raise OSError("\nno route to host\nand much more")

    client = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    assert hub.main("owner/name", "v1") == 0
    assert json.loads(capsys.readouterr().out) == {"error": "OSError: no route to host"}


def shipped_scenario(name: str) -> Scenario:
    return load_scenario(SCENARIOS / f"{name}.toml", SCENARIOS)


PLAIN, PAIR, RANKS = map(
    shipped_scenario, ("smoke/padded-graph-rows", "smoke/nixl-disagg", "curated/dp-dummy-run")
)


@pytest.mark.parametrize("scenario", [PLAIN, PAIR, RANKS], ids=lambda one: one.id)
def test_without_gpus_everything_is_as_declared(scenario):
    found = arrange(scenario, ())
    assert (found.scenario, found.gpus, found.memory_share) == (scenario, (), None)
    assert found.stand_in is None


@pytest.mark.parametrize(
    ("scenario", "gpus", "used"),
    [
        (PLAIN, ("0",), ("0",)),
        (PLAIN, ("3", "5"), ("3",)),
        (PAIR, ("0", "1"), ("0", "1")),
        (PAIR, ("4", "2", "7"), ("4", "2")),
        (RANKS, ("0", "1", "2"), ("0", "1")),
    ],
)
def test_each_takes_as_many_as_it_needs_in_their_order(scenario, gpus, used):
    found = arrange(scenario, gpus)
    assert found.gpus == used
    assert found.scenario == scenario
    assert found.memory_share is None
    assert found.stand_in is None


WORKERS = PLAIN.engine.model_copy(update={"tensor_parallel_size": 2, "pipeline_parallel_size": 2})


def test_workers_of_one_request_take_a_gpu_each_and_nothing_stands_in_for_them():
    four = PLAIN.model_copy(update={"engine": WORKERS})
    found = arrange(four, ("0", "1", "2", "3", "4"))
    assert (found.gpus, found.stand_in) == (("0", "1", "2", "3"), None)
    wanted = (
        f"{PLAIN.id}: engine.tensor_parallel_size times engine.pipeline_parallel_size: "
        "expected at most as many as there are GPUs, 3, found 4"
    )
    with pytest.raises(BuildError) as caught:
        arrange(four, ("0", "1", "2"))
    assert str(caught.value) == wanted


def test_a_pair_on_one_gpu_shares_its_memory():
    found = arrange(PAIR, ("6",))
    assert found.gpus == ("6",)
    assert found.memory_share == MEMORY / 2
    assert found.stand_in == "one GPU: two engines with 0.45 of its memory each"
    assert found.scenario == PAIR


def test_ranks_on_one_gpu_become_one_that_idles_between_requests():
    found = arrange(RANKS, ("6",))
    assert found.gpus == ("6",)
    assert found.memory_share is None
    assert found.scenario.engine.data_parallel_size == 1
    longest = max(wave.output_tokens.lengths[-1] for wave in RANKS.workload.waves)
    assert found.scenario.workload.idle_dummy_batches == longest
    assert f"runs {longest} dummy batches" in (found.stand_in or "")


def test_the_stand_in_asks_the_same_of_nobody_in_particular():
    found = arrange(RANKS, ("0",)).scenario
    declared, alone = (expand(one.workload.waves, 3) for one in (RANKS, found))
    assert {request.rank for wave in alone for request in wave.requests} == {None}
    texts = [[request.prompt for request in wave.requests] for wave in declared]
    assert [[request.prompt for request in wave.requests] for wave in alone] == texts
    # It would pass the rules of a file.
    assert Scenario.model_validate(found.model_dump(by_alias=True)) == found


def test_too_few_gpus_for_all_ranks_is_one():
    engine = RANKS.engine.model_copy(update={"data_parallel_size": 4})
    found = arrange(RANKS.model_copy(update={"engine": engine}), ("0", "1", "2"))
    assert found.gpus == ("0",)
    assert found.stand_in is not None


@pytest.mark.parametrize(
    ("scenario", "gpus", "share"),
    [(PLAIN, ("0",), 0.45), (PAIR, ("0", "1"), 0.45), (PAIR, ("0",), 0.22), (RANKS, ("0",), 0.45)],
)
def test_engines_of_one_session_share_what_there_is(scenario, gpus, share):
    found = arrange(scenario, gpus, engines=2)
    assert found.memory_share == share
    together = 2 * share * (2 if found.stand_in and scenario is PAIR else 1)
    assert together <= MEMORY


def test_the_declared_scenario_stays_what_it_was():
    before = digest(RANKS)
    assert digest(arrange(RANKS, ("0",)).scenario) != before
    assert digest(RANKS) == before


def devices(*indices: int) -> list[Device]:
    return [Device(index, f"GPU-{index}", "NVIDIA H200", 2**37) for index in indices]


@pytest.mark.parametrize(
    ("asked", "seen", "names"),
    [
        (None, devices(0, 1), ("0", "1")),
        ("3,1", devices(3, 1), ("3", "1")),
        ("GPU-3", devices(3), ("3",)),
        ("MIG-a, MIG-b", devices(0, 0), ("MIG-a", "MIG-b")),
        (None, [], ()),
    ],
)
def test_gpus_are_called_by_number_and_slices_by_name(monkeypatch, asked, seen, names):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if asked is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", asked)
    assert cuda_numbers(seen) == names
