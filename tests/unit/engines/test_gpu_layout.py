"""Which GPUs engines get, and what stands in where there are too few."""

from pathlib import Path

import pytest

from hybridwatch.engines.fitting import MEMORY, arrange, cuda_numbers
from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.load import digest, load_scenario
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.nvidia import Device

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def shipped(name: str) -> Scenario:
    return load_scenario(SCENARIOS / f"{name}.toml", SCENARIOS)


PLAIN, PAIR, RANKS = map(
    shipped, ("smoke/padded-graph-rows", "curated/nixl-disagg", "curated/dp-dummy-run")
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
