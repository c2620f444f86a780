"""The timed loads of a trial: the client's times, and the engine's counts meanwhile.

In a sweep one trial goes through loads from idle to saturation, and gives a curve.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hybridwatch.engines.control import LiveEngine
from hybridwatch.engines.fitting import cuda_numbers
from hybridwatch.engines.load_client import LoadClient, StepCounts, read_step_counts
from hybridwatch.engines.server import Server
from hybridwatch.errors import GpuError, MeasurementError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.waves import drive
from hybridwatch.metrics import CURVE_AREA, DUET_CPU_TIME, DUET_CURVE_AREA, SEND_LATENESS
from hybridwatch.records.readings import (
    CLOCK_DIGITS,
    accepted_drafts,
    compute_area,
    latencies,
    list_places,
)
from hybridwatch.records.run import Clock, Curve, Point, Sample
from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.scenarios.workload import Generation, Sweep
from hybridwatch.system import nvidia
from hybridwatch.system.guarded import processor_seconds


@dataclass(frozen=True, slots=True)
class TrialContext:
    """What trial ``number`` of a side needs, ready; sides of a duet wait for each other.

    One that ``is_warmup`` counts nowhere.
    """

    pool: EnginePool
    side: int
    work: Path
    number: int = 0
    wait_for_other: Callable[[], None] = lambda: None
    is_warmup: bool = False

    @property
    def scenario(self) -> Scenario:
        """What is run."""
        return self.pool.scenario

    @property
    def engine(self) -> LiveEngine:
        """The engine under test."""
        return self.pool.running(self.side)

    @property
    def client(self) -> LoadClient:
        """Loads the engine."""
        return self.pool.client(self.side)


def run_prelude(trial: TrialContext) -> None:
    """Let the requests come and go whose batch rows every trial begins with."""
    workload = trial.scenario.workload
    waves = expand(workload.prelude, workload.seed + trial.number, "prelude")
    drive(trial.engine, waves)


LOAD_TIMEOUT_S: Final = 120.0


def run_load(trial: TrialContext, load: Generation) -> dict[str, Any]:
    """Load the engine once, and bring back the JSON of vLLM's benchmark client."""
    result = trial.work / f"client.{trial.side}.json"
    return trial.client.run(trial.engine.server, load, result, LOAD_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Steps of the engine (if counted) and its processor time, from before a load till after it."""

    result: Mapping[str, Any]
    made: StepCounts | None
    worked_s: float


def work_of_load(trial: TrialContext, load: Generation) -> Loaded:
    """Load the engine once, and say what it worked.

    Tokens that the client did not receive are an error: steps and seconds are not its alone.
    """
    server = trial.engine.server
    before, worked_before = read_step_counts(server), _processor_seconds(server)
    result = run_load(trial, load)
    worked, after = _processor_seconds(server) - worked_before, read_step_counts(server)
    made = after.since(before) if before is not None and after is not None else None
    if made is not None and (made.tokens != result["total_output_tokens"] or not made.steps):
        raise MeasurementError(
            f"the engine counted {made.tokens} tokens in {made.steps} steps during the load, and "
            f"the load client received {result['total_output_tokens']}: another client used "
            "it, or it counts wrongly"
        )
    return Loaded(result, made, worked)


def _processor_seconds(server: Server) -> float:
    return sum(processor_seconds(engine.pid) for engine in server.servers)


def samples_of_client(result: Mapping[str, Any]) -> tuple[Sample, ...]:
    """Raw values of one trial from the JSON of vLLM's benchmark client."""
    return (
        Sample("output_throughput", (result["output_throughput"],)),
        Sample("request_throughput", (result["request_throughput"],)),
        *latencies(result["ttfts"], result["itls"], result["output_lens"]),
        *_acceptance(result),
        *_of_objective_and_trace(result),
    )


def _of_objective_and_trace(result: Mapping[str, Any]) -> Iterator[Sample]:
    if (good := result.get("request_goodput")) is not None:
        yield Sample("request_goodput", (good,))
    if late := result.get(SEND_LATENESS):
        yield Sample(SEND_LATENESS, tuple(late))


def samples_of_steps(
    result: Mapping[str, Any], made: StepCounts, worked_s: float
) -> tuple[Sample, ...]:
    """How fast the engine stepped, how full its steps were, and how much work each was.

    The first two with the tokens that a request got per step make up the output throughput:
    ``tokens / s = steps / s * requests / step * tokens / (request and step)``.
    """
    return (
        Sample("engine_step_rate", (made.steps / result["duration"],)),
        Sample("batch_occupancy", (made.shares / made.steps,)),
        Sample("engine_cpu_time", (round(worked_s / made.steps, CLOCK_DIGITS),)),
        Sample("preemptions", (float(made.preemptions),)),
    )


def _acceptance(result: Mapping[str, Any]) -> Iterator[Sample]:
    if not result.get("spec_decode_num_drafts"):
        return
    yield from accepted_drafts(
        result["spec_decode_acceptance_length"],
        result["spec_decode_per_position_acceptance_rates"],
    )


@contextmanager
def compute_joules(gpus: Sequence[str]) -> Iterator[Callable[[], float | None]]:
    """Read a counter of joules, if all GPUs have one, of which only differences mean something.

    Another engine on the same GPUs takes its share of it, for both sides alike.
    """
    if not gpus:
        yield lambda: None
        return
    try:
        every = nvidia.devices()
        named = dict(zip(cuda_numbers(every), every, strict=True))
        with nvidia.energy_counter([named[gpu] for gpu in gpus]) as read:
            yield read
    except GpuError as error:
        raise MeasurementError(str(error)) from error


_OF_CLIENT = frozenset({"output_throughput", "request_throughput", "ttft", "tpot"})
"""What a record keeps of each point; the other latencies are in the client's JSON."""


_METRICS: Final[Mapping[Clock, tuple[str, str]]] = {
    "wall": (CURVE_AREA, "engine_cpu_time"),
    "processor": (DUET_CURVE_AREA, DUET_CPU_TIME),
}
"""By which metrics a trial is compared: the whole curve, and the work of a step."""


def sweep(
    trial: TrialContext, wanted: Sweep, clock: Clock = "wall"
) -> tuple[tuple[Sample, ...], Curve]:
    """Load an engine that was made ready with one load after the other.

    Before each but the first it is put back, so that no prompt is found in a cache because another
    load had the same. By the processor's clock, as a duet needs it where engines wait for each
    other, a point is the work of the engine, not what users see.
    """
    base = trial.scenario.workload.generation
    loads = in_order(wanted.loads, trial.number)
    made, taken = _load_with_each(trial, [wanted.at(load, base) for load in loads])
    gpus, (of_area, of_work) = len(trial.engine.server.launch.gpus), _METRICS[clock]
    if clock == "processor":
        curve = Curve(wanted.knob, tuple(map(_worked_point, loads, made)), gpus, clock=clock)
    else:
        slo = wanted.slo.bounds if wanted.slo is not None else {}
        curve = Curve(wanted.knob, tuple(map(_point, loads, made, taken)), gpus, slo)
    places = list_places(curve)
    if places is None:
        raise MeasurementError("a load of the sweep gave no throughput or no time per token")
    area = Sample(of_area, (compute_area(places),))
    return (area, *_work(made, of_work)), curve


def _load_with_each(
    trial: TrialContext, loads: Sequence[Generation]
) -> tuple[list[Loaded], list[float | None]]:
    engine, made, taken = trial.engine, list[Loaded](), list[float | None]()
    with compute_joules(engine.server.launch.gpus) as read:
        for load in loads:
            if made:
                engine.settle(engine.setting)
            trial.wait_for_other()
            before = read()
            made.append(work_of_load(trial, load))
            after = read()
            taken.append(None if before is None or after is None else after - before)
    return made, taken


def in_order(loads: Sequence[float], number: int) -> Sequence[float]:
    """Order loads two trials up, two down; within each two the sides take turns (``plan``).

    So a machine that drifts steadily slows every load of both sides by the same amount.
    """
    return loads if number // 2 % 2 == 0 else loads[::-1]


def _point(load: float, loaded: Loaded, joules: float | None) -> Point:
    samples = tuple(one for one in samples_of_client(loaded.result) if one.metric in _OF_CLIENT)
    if loaded.made is not None:
        samples += samples_of_steps(loaded.result, loaded.made, loaded.worked_s)
    tokens = loaded.result["total_output_tokens"]
    # A counter that stood still says nothing: no load is free.
    each = joules / tokens if joules and tokens else None
    return Point(load, samples, each, loaded.result)


def _worked_point(load: float, loaded: Loaded) -> Point:
    """Say what the engine worked: tokens per second of work, and work per token of a request."""
    made, worked_s = loaded.made, loaded.worked_s
    if made is None:
        raise MeasurementError("the engine does not count its steps")
    of_request = made.tokens / made.shares
    each = worked_s / made.steps / of_request
    samples = (
        Sample("output_throughput", (made.tokens / worked_s,)),
        Sample("tpot", (round(each, CLOCK_DIGITS),)),
    )
    return Point(load, samples)


def _work(made: Sequence[Loaded], metric: str) -> tuple[Sample, ...]:
    """Work of a step of all loads, which decides on a noisy machine, if steps are counted."""
    steps = sum(one.made.steps for one in made if one.made is not None)
    if not steps:
        return ()
    worked = sum(one.worked_s for one in made) / steps
    return (Sample(metric, (round(worked, CLOCK_DIGITS),)),)
