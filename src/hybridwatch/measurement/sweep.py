"""A sweep: one trial goes through loads from idle to saturation, and gives a curve."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.energy import compute_joules
from hybridwatch.measurement.load import Loaded, samples_of_client, samples_of_steps, work_of_load
from hybridwatch.measurement.trial_context import TrialContext
from hybridwatch.metrics import CURVE_AREA, DUET_CPU_TIME, DUET_CURVE_AREA
from hybridwatch.records.readings import CLOCK_DIGITS, compute_area, list_places
from hybridwatch.records.run import Clock, Curve, Point, Sample
from hybridwatch.scenarios.sweep import Sweep
from hybridwatch.scenarios.workload import Generation

_OF_CLIENT = frozenset({"output_throughput", "request_throughput", "ttft", "tpot"})
"""What a record keeps of each point; the other latencies are in the client's JSON."""


class _Metrics(NamedTuple):
    """By which metrics a trial is compared: the whole curve, and the work of a step."""

    area: str
    work: str


_METRICS: Final[Mapping[Clock, _Metrics]] = {
    "wall": _Metrics(CURVE_AREA, "engine_cpu_time"),
    "processor": _Metrics(DUET_CURVE_AREA, DUET_CPU_TIME),
}


class Swept(NamedTuple):
    """What one trial gave.

    Attributes:
        samples: By which the trial is compared.
    """

    samples: tuple[Sample, ...]
    curve: Curve


def sweep(trial: TrialContext, wanted: Sweep, clock: Clock = "wall") -> Swept:
    """Load an engine that was made ready with one load after the other.

    Before each but the first it is put back to where the first began, so that no prompt is found
    in a cache because another load had the same.

    In a duet both sides meet before each load. By the processor's clock a point is not what users
    see but what the engine works for it, as a duet needs it, where engines wait for each other.

    Raises:
        MeasurementError: A load gave no throughput or no time per token.
    """
    base = trial.scenario.workload.generation
    loads = in_order(wanted.loads, trial.number)
    made, taken = _load_with_each(trial, [wanted.at(load, base) for load in loads])
    gpus, metrics = len(trial.engine.server.launch.gpus), _METRICS[clock]
    if clock == "processor":
        curve = Curve(wanted.knob, tuple(map(_worked_point, loads, made)), gpus, clock=clock)
    else:
        slo = wanted.slo.bounds if wanted.slo is not None else {}
        curve = Curve(wanted.knob, tuple(map(_point, loads, made, taken)), gpus, slo)
    places = list_places(curve)
    if places is None:
        raise MeasurementError("a load of the sweep gave no throughput or no time per token")
    area = Sample(metrics.area, (compute_area(places),))
    return Swept((area, *_work(made, metrics.work)), curve)


def _load_with_each(
    trial: TrialContext, loads: Sequence[Generation]
) -> tuple[list[Loaded], list[float | None]]:
    """Load the engine with each, and say what it gave and how many joules its GPUs took."""
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
    """Say in which order a side's trial visits the loads.

    Two trials up, two down: within each two the sides take turns as well (``plan``), so that a
    machine that drifts steadily slows every load of both sides by the same amount.
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
    if made is None or not made.steps or made.tokens != loaded.result["total_output_tokens"]:
        raise MeasurementError("the engine does not count the steps of the load alone")
    of_request = made.tokens / made.shares
    each = worked_s / made.steps / of_request
    samples = (
        Sample("output_throughput", (made.tokens / worked_s,)),
        Sample("tpot", (round(each, CLOCK_DIGITS),)),
    )
    return Point(load, samples)


def _work(made: Sequence[Loaded], metric: str) -> tuple[Sample, ...]:
    """What a step of all loads together worked; on a noisy machine it decides.

    Nothing when the engine does not count its steps, or gave other tokens than the client counted.
    """
    counted = [one.made for one in made if one.made is not None]
    asked = sum(one.result["total_output_tokens"] for one in made)
    steps = sum(one.steps for one in counted)
    if not steps or sum(one.tokens for one in counted) != asked:
        return ()
    worked = sum(one.worked_s for one in made) / steps
    return (Sample(metric, (round(worked, CLOCK_DIGITS),)),)
