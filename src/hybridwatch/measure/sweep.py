"""A sweep: one trial goes through loads from idle to saturation, and gives a curve."""

from collections.abc import Sequence
from typing import NamedTuple

from hybridwatch.errors import MeasurementError
from hybridwatch.measure.energy import joules_of
from hybridwatch.measure.load import Loaded, samples_of_client, samples_of_steps, work_of_load
from hybridwatch.measure.station import Station
from hybridwatch.metric.catalogue import CURVE_AREA
from hybridwatch.record.client import CLOCK_DIGITS
from hybridwatch.record.curve import area_of, places_of
from hybridwatch.record.run import Curve, Point, Sample
from hybridwatch.scenario.sweep import Sweep
from hybridwatch.scenario.workload import Generation

_OF_CLIENT = frozenset({"output_throughput", "request_throughput", "ttft", "tpot"})
"""What a record keeps of each point; the other latencies lie beside it, in the client's JSON."""


class Swept(NamedTuple):
    """What one trial gave.

    Attributes:
        samples: By which the trial is compared.
        curve: Raw values of every load.
    """

    samples: tuple[Sample, ...]
    curve: Curve


def sweep(station: Station, wanted: Sweep) -> Swept:
    """Load an engine that was made ready with one load after the other.

    Before each but the first it is put back to where the first began, so that no prompt is found
    in a cache because another load had the same.

    Raises:
        MeasurementError: A load gave no throughput or no time per token.
    """
    base = station.scenario.workload.generation
    loads = in_order(wanted.loads, station.number)
    made, taken = _load_with_each(station, [wanted.at(load, base) for load in loads])
    curve = Curve(
        knob=wanted.knob,
        points=tuple(map(_point, loads, made, taken)),
        gpus=len(station.engine.server.launch.gpus),
        slo=wanted.slo.bounds if wanted.slo is not None else {},
    )
    places = places_of(curve)
    if places is None:
        raise MeasurementError("a load of the sweep gave no throughput or no time per token")
    return Swept((Sample(CURVE_AREA, (area_of(places),)), *_work(made)), curve)


def _load_with_each(
    station: Station, loads: Sequence[Generation]
) -> tuple[list[Loaded], list[float | None]]:
    """Load the engine with each, and say what it gave and how many joules its GPUs took."""
    engine, made, taken = station.engine, list[Loaded](), list[float | None]()
    with joules_of(engine.server.launch.gpus) as read:
        for load in loads:
            if made:
                engine.settle(engine.setting)
            before = read()
            made.append(work_of_load(station, load))
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


def _work(made: Sequence[Loaded]) -> tuple[Sample, ...]:
    """What a step of all loads together worked; on a restless machine it decides.

    Nothing when the engine does not count its steps, or gave other tokens than the client counted.
    """
    counted = [one.made for one in made if one.made is not None]
    asked = sum(one.result["total_output_tokens"] for one in made)
    steps = sum(one.steps for one in counted)
    if not steps or sum(one.tokens for one in counted) != asked:
        return ()
    worked = sum(one.worked_s for one in made) / steps
    return (Sample("engine_cpu_time", (round(worked, CLOCK_DIGITS),)),)
