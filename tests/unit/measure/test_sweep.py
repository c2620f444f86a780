"""A trial that goes through several loads: in which order, from which state, and what is left."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from hybridwatch.engine.step_counts import StepCounts
from hybridwatch.errors import MeasurementError
from hybridwatch.home import home
from hybridwatch.measure import sweep as module
from hybridwatch.measure.load import Loaded
from hybridwatch.measure.sweep import in_order, sweep
from hybridwatch.scenario.load import load_scenario
from hybridwatch.scenario.sweep import Objective, Sweep

ROOT = home() / "scenarios"
SCENARIO = load_scenario(ROOT / "curated" / "sweep-concurrency.toml", ROOT)
SWEEP = Sweep(max_concurrency=(1, 2, 4, 8), slo=Objective(ttft_ms=100, tpot_ms=15))


class Engine:
    """Notes when it is put back, and is asked for nothing else."""

    setting = "as it is wanted"
    server = SimpleNamespace(launch=SimpleNamespace(gpus=()))

    def __init__(self):
        self.story = []

    def settle(self, setting):
        self.story.append(setting)


def result_of(load, step=0.01, tokens=4):
    """What the client writes of two requests at a time per token that grows with the load."""
    tpot = step * load
    return {
        "output_throughput": load / tpot,
        "request_throughput": load / tpot / tokens,
        "ttfts": [tpot, tpot],
        "itls": [[tpot] * (tokens - 1)] * 2,
        "output_lens": [tokens, tokens],
        "total_output_tokens": 2 * tokens,
        "duration": 1.0,
    }


@pytest.fixture
def station(monkeypatch):
    """A station whose loads take no time; 8 tokens in 8 steps each, 0.1 s of work a step."""
    engine = Engine()

    def loaded(_station, load):
        engine.story.append(load.max_concurrency)
        return Loaded(result_of(load.max_concurrency), StepCounts(8, 8, 8, 0), 0.8)

    monkeypatch.setattr(module, "work_of_load", loaded)
    return SimpleNamespace(engine=engine, number=0, scenario=SCENARIO)


def test_each_load_begins_where_the_first_began(station):
    found = sweep(station, SWEEP)
    between = "as it is wanted"
    assert station.engine.story == [1, between, 2, between, 4, between, 8]
    assert [point.load for point in found.curve.points] == [1, 2, 4, 8]
    assert found.curve.knob == "max_concurrency"
    assert found.curve.slo == {"ttft": 0.1, "tpot": 0.015}
    assert found.curve.points[1].client_result == result_of(2)


def test_loads_are_visited_twice_up_and_twice_down_so_that_both_sides_see_both(station):
    rising = SWEEP.loads
    orders = [tuple(in_order(rising, number)) for number in range(4)]
    assert orders == [rising, rising, rising[::-1], rising[::-1]]
    station.number = 2
    assert [point.load for point in sweep(station, SWEEP).curve.points] == [8, 4, 2, 1]


def test_the_trial_is_compared_by_its_area_and_its_work(station):
    # Every load gives 100 tok/s, and one user 100, 50, 25, 12.5: the first covers the others.
    samples = {sample.metric: sample.values for sample in sweep(station, SWEEP).samples}
    assert samples == {"curve_area": (pytest.approx(100.0),), "engine_cpu_time": (0.1,)}


def test_steps_that_are_not_those_of_the_loads_say_nothing_of_the_work(station, monkeypatch):
    foreign = Loaded(result_of(1), StepCounts(8, 9, 9, 0), 0.8)
    monkeypatch.setattr(module, "work_of_load", lambda *_: foreign)
    assert [sample.metric for sample in sweep(station, SWEEP).samples] == ["curve_area"]


def test_a_load_without_a_time_per_token_gives_no_curve(station, monkeypatch):
    mute = {**result_of(1), "output_lens": [1, 1]}
    monkeypatch.setattr(module, "work_of_load", lambda *_: Loaded(mute, None, 0.0))
    with pytest.raises(MeasurementError, match="no throughput or no time per token"):
        sweep(station, SWEEP)


@pytest.mark.parametrize(("counted", "each"), [([0.0, 4.0], 0.5), ([3.0, 3.0], None)])
def test_joules_are_shared_among_the_tokens_of_the_load(station, monkeypatch, counted, each):
    answers = iter(counted * len(SWEEP.loads))
    monkeypatch.setattr(module, "joules_of", lambda _: nullcontext(lambda: next(answers)))
    points = sweep(station, SWEEP).curve.points
    assert [point.joules_per_token for point in points] == [each] * len(SWEEP.loads)


def test_on_a_cpu_nothing_is_said_of_energy(station):
    assert {point.joules_per_token for point in sweep(station, SWEEP).curve.points} == {None}
