"""What a trial says of memory: growth, what is held, and what fits into the cache."""

from types import SimpleNamespace
from typing import Any

import pytest

from hybridwatch.errors import MeasurementError
from hybridwatch.measurement import memory
from hybridwatch.measurement.memory import (
    LEAST_GROWTH,
    MORE_REQUESTS,
    begin_memory,
    count_blocks,
    read_capacity,
    samples_of_memory,
)
from hybridwatch.metrics import CAPACITY_METRICS
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.guarded import ProcessMemory
from hybridwatch.system.home import home
from tests.unit.measurement.fake_engines import behind_server
from tests.unit.measurement.test_by_steps import SteppingEngine, handler_of

ROOT = home() / "scenarios"
SCENARIO = load_scenario(ROOT / "smoke" / "padded-graph-rows.toml", ROOT)
REQUESTS = 8 + 24
"""Of the scenario's prelude, and of its timed load."""
OF_LOAD = 48
"""Tokens of a prompt of the load."""
MIB = 2**20
TOLD = {"blocks": 47, "held": 1, "tokens": 3437, "state_bytes": 8192}


class Control:
    """An engine at rest that tells its cache."""

    def __init__(self, told: dict[str, int] | str) -> None:
        self.told = told
        self.trims = 0

    def trim(self) -> None:
        self.trims += 1

    def drain(self) -> None:
        pass

    def read_capacity(self) -> dict[str, int]:
        if isinstance(self.told, str):
            raise MeasurementError(self.told)
        return self.told


@pytest.fixture(autouse=True)
def _sizes(monkeypatch) -> None:
    monkeypatch.setattr(memory, "read_memory", lambda left: left.pop(0))
    monkeypatch.setattr(memory, "forget_peak", lambda _left: None)


def a_server(*sizes: ProcessMemory | None) -> Any:
    """Make a server whose process has these sizes, one after the other."""
    return SimpleNamespace(pid=list(sizes))


def a_trial(*servers: Any, told: dict[str, int] | str = "", **engine: Any) -> Any:
    args = SimpleNamespace(**{"disaggregated": False, "data_parallel_size": 1, **engine})
    server = SimpleNamespace(servers=servers, launch=SimpleNamespace(engine=args))
    live = SimpleNamespace(server=server, control=Control(told))
    return SimpleNamespace(engine=live, scenario=SCENARIO, number=0)


@pytest.fixture
def asked(monkeypatch) -> list[PlannedWave]:
    """What was asked after the load."""
    waves: list[PlannedWave] = []
    monkeypatch.setattr(memory, "drive", lambda _engine, some: waves.extend(some))
    return waves


def told_of(*sizes: int) -> dict[str, float]:
    """What a trial says whose engine held so much before it, after its load, and in the end."""
    trial = a_trial(a_server(*(ProcessMemory(size, size + 5) for size in sizes)))
    samples = samples_of_memory(begin_memory(trial), trial)
    assert trial.engine.control.trims == len(sizes)
    return {one.metric: one.values[0] for one in samples}


def test_growth_is_told_per_request_of_prelude_and_load(asked):
    found = told_of(900 * MIB, 910 * MIB, 950 * MIB)
    assert found["memory_growth"] == 10 * MIB / REQUESTS
    assert (found["resident_memory"], found["peak_memory"]) == (910 * MIB, 910 * MIB + 5)
    assert [len(wave.requests) for wave in asked] == [MORE_REQUESTS]
    prompts = {request.prompt for wave in asked for request in wave.requests}
    assert {len(prompt) for prompt in prompts} == {OF_LOAD}
    assert len(prompts) > MORE_REQUESTS / 2


def test_growth_that_the_requests_after_the_load_do_not_repeat_is_less(asked):
    assert told_of(900 * MIB, 910 * MIB, 911 * MIB)["memory_growth"] == MIB / MORE_REQUESTS


@pytest.mark.parametrize(
    "sizes",
    [
        (900 * MIB, 900 * MIB, 900 * MIB),
        (900 * MIB, 903 * MIB, 903 * MIB + 60_000),  # a jump in the load
        (900 * MIB, 900 * MIB + 60_000, 903 * MIB),  # and one after it
        (900 * MIB, 800 * MIB, 700 * MIB),
    ],
)
def test_what_is_too_little_to_be_told_comes_out_the_same_each_time(asked, sizes):
    assert told_of(*sizes)["memory_growth"] == LEAST_GROWTH


def test_memory_of_a_pair_of_engines_is_added_up(asked):
    one = [ProcessMemory(size * MIB, 2 * size * MIB) for size in (10, 30, 50)]
    trial = a_trial(a_server(*one), a_server(*one))
    growth, resident, peak = samples_of_memory(begin_memory(trial), trial)
    assert growth.values == (40 * MIB / REQUESTS,)
    assert (resident.values, peak.values) == ((60.0 * MIB,), (120.0 * MIB,))


def test_where_a_process_cannot_be_read_nothing_is_said():
    trial = a_trial(a_server(ProcessMemory(1, 1), None), a_server(None, ProcessMemory(1, 1)))
    assert samples_of_memory(begin_memory(trial), trial) == ()


def test_of_a_sweep_nothing_is_read():
    trial = a_trial(a_server())
    trial.scenario = SimpleNamespace(sweep=object())
    assert begin_memory(trial) is None


def test_the_cache_at_rest_is_told_with_what_one_request_holds_of_it(monkeypatch):
    monkeypatch.setattr(memory, "count_blocks", lambda _engine, request: len(request.prompt))
    samples, unsupported = read_capacity(a_trial(told=TOLD))
    assert unsupported == {}
    assert {one.metric: one.values for one in samples} == {
        "cache_blocks": (47.0,),
        "kv_cache_tokens": (3437.0,),
        "state_bytes": (8192.0,),
        "request_blocks": (OF_LOAD - 1.0,),
    }


def test_an_engine_that_does_not_tell_its_cache_is_said_to():
    found = read_capacity(a_trial(told="no pool"))
    assert found == ((), dict.fromkeys(CAPACITY_METRICS, "no pool"))


@pytest.mark.parametrize("several", [{"disaggregated": True}, {"data_parallel_size": 2}])
def test_several_engines_have_no_one_cache(several):
    assert read_capacity(a_trial(told=TOLD, **several)) == ((), {})


class HoldingEngine(SteppingEngine):
    """Holds two blocks for its request while it has one, and one that was lost."""

    def read_capacity(self) -> dict[str, int]:
        return {"held": 1 + 2 * self.requests()}


def test_blocks_of_a_request_are_counted_between_its_steps():
    fake = HoldingEngine()
    with behind_server(handler_of(fake), fake) as engine:
        assert count_blocks(engine, PlannedRequest((5, 6, 7), max_tokens=2)) == 3
    assert fake.requests() == 0
    assert [one for one in fake.diary if one != 5] == [
        ("steps", 1), ("steps", 1), ("steps", 0), "release",
    ]  # fmt: skip
