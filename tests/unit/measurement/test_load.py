"""The timed loads: sweeps, what steps say, and what GPUs take meanwhile."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from pynvml import NVML_ERROR_DRIVER_NOT_LOADED

from hybridwatch.analysis.attribution import read_parts
from hybridwatch.engines.load_client import StepCounts
from hybridwatch.errors import MeasurementError
from hybridwatch.measurement import load as module
from hybridwatch.measurement.load import Loaded, compute_joules, in_order, samples_of_steps, sweep
from hybridwatch.records.run import Phase, Sample, Trial
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.scenarios.workload import Objective, Sweep
from hybridwatch.system.home import home
from tests.builders import STARTED
from tests.pretended_nvml import Card, pretend

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
def trial(monkeypatch):
    """A trial whose loads take no time; 8 tokens in 8 steps each, 0.1 s of work a step."""
    engine = Engine()

    def loaded(_trial, load):
        engine.story.append(load.max_concurrency)
        return Loaded(result_of(load.max_concurrency), StepCounts(8, 8, 8, 0), 0.8)

    monkeypatch.setattr(module, "work_of_load", loaded)

    def wait_for_other():
        engine.story.append("met")

    return SimpleNamespace(
        engine=engine, number=0, scenario=SCENARIO, wait_for_other=wait_for_other
    )


def test_each_load_begins_where_the_first_began(trial):
    _, curve = sweep(trial, SWEEP)
    between = "as it is wanted"
    met = "met"
    assert trial.engine.story == [met, 1, between, met, 2, between, met, 4, between, met, 8]
    assert [point.load for point in curve.points] == [1, 2, 4, 8]
    assert curve.knob == "max_concurrency"
    assert curve.slo == {"ttft": 0.1, "tpot": 0.015}
    assert curve.points[1].client_result == result_of(2)


def test_loads_are_visited_twice_up_and_twice_down_so_that_both_sides_see_both(trial):
    rising = SWEEP.loads
    orders = [tuple(in_order(rising, number)) for number in range(4)]
    assert orders == [rising, rising, rising[::-1], rising[::-1]]
    trial.number = 2
    assert [point.load for point in sweep(trial, SWEEP)[1].points] == [8, 4, 2, 1]


def test_the_trial_is_compared_by_its_area_and_its_work(trial):
    # Every load gives 100 tok/s, and one user 100, 50, 25, 12.5: the first covers the others.
    samples = {sample.metric: sample.values for sample in sweep(trial, SWEEP)[0]}
    assert samples == {"curve_area": (pytest.approx(100.0),), "engine_cpu_time": (0.1,)}


def test_an_engine_that_does_not_count_its_steps_says_nothing_of_the_work(trial, monkeypatch):
    uncounted = Loaded(result_of(1), None, 0.8)
    monkeypatch.setattr(module, "work_of_load", lambda *_: uncounted)
    assert [sample.metric for sample in sweep(trial, SWEEP)[0]] == ["curve_area"]


def test_a_load_without_a_time_per_token_gives_no_curve(trial, monkeypatch):
    mute = {**result_of(1), "output_lens": [1, 1]}
    monkeypatch.setattr(module, "work_of_load", lambda *_: Loaded(mute, None, 0.0))
    with pytest.raises(MeasurementError, match="no throughput or no time per token"):
        sweep(trial, SWEEP)


@pytest.mark.parametrize(("counted", "each"), [([0.0, 4.0], 0.5), ([3.0, 3.0], None)])
def test_joules_are_shared_among_the_tokens_of_the_load(trial, monkeypatch, counted, each):
    answers = iter(counted * len(SWEEP.loads))
    monkeypatch.setattr(module, "compute_joules", lambda _: nullcontext(lambda: next(answers)))
    points = sweep(trial, SWEEP)[1].points
    assert [point.joules_per_token for point in points] == [each] * len(SWEEP.loads)


def test_on_a_cpu_nothing_is_said_of_energy(trial):
    assert {point.joules_per_token for point in sweep(trial, SWEEP)[1].points} == {None}


def test_in_a_duet_a_load_is_placed_by_what_the_engine_worked_for_it(trial, monkeypatch):
    # As many requests in a step as are in flight, and 0.01 s of work for each step and request.
    def loaded(_trial, load):
        at_once = int(load.max_concurrency)
        result = {**result_of(at_once), "total_output_tokens": 8 * at_once}
        return Loaded(result, StepCounts(8, 8 * at_once, 8 * at_once, 0), 0.08 * (1 + at_once))

    monkeypatch.setattr(module, "work_of_load", loaded)
    samples, curve = sweep(trial, SWEEP, "processor")
    expected = [
        (1 / 0.02, 1 / 0.02),
        (1 / 0.03, 2 / 0.03),
        (1 / 0.05, 4 / 0.05),
        (1 / 0.09, 8 / 0.09),
    ]
    assert [(1 / tpot, given) for given, tpot in map(rates_of, curve.points)] == [
        pytest.approx(place) for place in expected
    ]
    assert (curve.clock, curve.slo) == ("processor", {})
    assert [sample.metric for sample in samples] == ["duet_curve_area", "duet_cpu_time"]
    assert samples[1].values == pytest.approx(((0.02 + 0.03 + 0.05 + 0.09) / 4,))


def rates_of(point):
    """Tokens per second, and seconds per token of a request."""
    given, each = point.samples
    assert (given.metric, each.metric) == ("output_throughput", "tpot")
    return given.values[0], each.values[0]


def test_in_a_duet_a_request_that_gets_several_tokens_a_step_gets_them_sooner(trial, monkeypatch):
    drafted = Loaded({**result_of(1), "total_output_tokens": 16}, StepCounts(8, 8, 16, 0), 0.8)
    monkeypatch.setattr(module, "work_of_load", lambda *_: drafted)
    points = sweep(trial, SWEEP, "processor")[1].points
    assert [rates_of(point) for point in points] == [(20.0, 0.05)] * len(SWEEP.loads)


def test_in_a_duet_an_engine_that_does_not_count_its_steps_gives_no_curve(trial, monkeypatch):
    monkeypatch.setattr(module, "work_of_load", lambda *_: Loaded(result_of(1), None, 0.8))
    with pytest.raises(MeasurementError, match="does not count its steps"):
        sweep(trial, SWEEP, "processor")


CLIENT = {"duration": 0.55, "total_output_tokens": 384, "output_throughput": 384 / 0.55}


def trial_of(*samples: Sample) -> Trial:
    throughput = Sample("output_throughput", (CLIENT["output_throughput"],))
    return Trial(0, 0, Phase.PERFORMANCE, STARTED, 0.6, samples=(throughput, *samples))


def test_the_product_of_the_factors_is_the_throughput():
    # A trial of ngram speculation: 74 accepted drafts, three of them beyond the end of a request.
    parts = read_parts(trial_of(*samples_of_steps(CLIENT, StepCounts(103, 313, 384, 0), 0.41)))
    assert parts is not None
    assert parts.engine_step_rate == pytest.approx(103 / 0.55)
    assert parts.batch_occupancy == pytest.approx(313 / 103)
    assert parts.acceptance_length == pytest.approx(384 / 313)
    product = parts.engine_step_rate * parts.acceptance_length * parts.batch_occupancy
    assert product == pytest.approx(CLIENT["output_throughput"], rel=1e-14)


def test_processor_time_is_given_per_step():
    samples = samples_of_steps(CLIENT, StepCounts(100, 313, 384, 0), 0.41)
    assert [one.values for one in samples if one.metric == "engine_cpu_time"] == [(0.0041,)]


def test_preemptions_are_those_of_the_trial():
    samples = samples_of_steps(CLIENT, StepCounts(100, 313, 384, 7), 0.41)
    assert [one.values for one in samples if one.metric == "preemptions"] == [(7.0,)]


@pytest.mark.parametrize(
    ("tokens", "steps"),
    [
        (9, 8),  # somebody else asked the engine, too; or it counts a tenth more than it gives
        (7, 8),
        (0, 0),
        (8, 0),
    ],
)
def test_a_load_of_which_the_engine_counts_other_tokens_is_refused(monkeypatch, tokens, steps):
    counts = iter([StepCounts(5, 5, 5, 0), StepCounts(5 + steps, 5, 5 + tokens, 0)])
    monkeypatch.setattr(module, "read_step_counts", lambda _: next(counts))
    monkeypatch.setattr(module, "run_load", lambda *_: result_of(1))
    loaded: Any = SimpleNamespace(engine=SimpleNamespace(server=SimpleNamespace(servers=())))
    with pytest.raises(MeasurementError) as refused:
        module.work_of_load(loaded, SCENARIO.workload.generation)
    assert f"counted {tokens} tokens in {steps} steps" in str(refused.value)
    assert "the load client received 8" in str(refused.value)


def test_goodput_and_lateness_are_the_load_clients():
    """Which names them only where an objective, or a trace, was given to it."""
    named = {"request_goodput": 0.0, "send_lateness": [0.001, 0.02]}
    samples = module.samples_of_client(result_of(1) | named)
    assert samples[-2:] == (
        Sample("request_goodput", (0.0,)),
        Sample("send_lateness", (0.001, 0.02)),
    )
    assert module.samples_of_client(result_of(1) | {"request_goodput": None}) == samples[:-2]


def test_a_trial_without_steps_has_no_factors():
    assert read_parts(trial_of()) is None
    assert read_parts(trial_of(Sample("engine_step_rate", (187.0,)))) is None


COUNTER = "nvmlDeviceGetTotalEnergyConsumption"


def cards(**second):
    return Card(millijoules=5_000), Card("GPU-b", millijoules=70_000, **second)


def test_joules_of_all_gpus_of_an_engine_are_added_up_and_of_no_other(monkeypatch):
    first, second = cards()
    library = pretend(monkeypatch, first, second)
    with compute_joules(["0", "1"]) as read, compute_joules(["1"]) as of_one:
        assert (read(), of_one()) == (75.0, 70.0)
        second.millijoules += 500
        assert (read(), of_one()) == (75.5, 70.5)
    assert library.open == 0


def test_a_gpu_that_does_not_count_leaves_no_sum(monkeypatch):
    pretend(monkeypatch, *cards(refuses=frozenset({COUNTER})))
    with compute_joules(["0", "1"]) as read:
        assert read() is None


def test_an_engine_on_a_cpu_asks_no_driver(monkeypatch):
    pretend(monkeypatch, broken=NVML_ERROR_DRIVER_NOT_LOADED)
    with compute_joules([]) as read:
        assert read() is None


def test_a_driver_that_went_away_fails_the_trial(monkeypatch):
    pretend(monkeypatch, broken=NVML_ERROR_DRIVER_NOT_LOADED)
    with pytest.raises(MeasurementError, match="no NVIDIA driver"), compute_joules(["0"]):
        pass
