"""What follows from raw values, the same whether we measured them or found another tool's file.

Latencies are put together as vLLM's benchmark client does it (``vllm/benchmarks/serve.py``). The
points of a sweep are throughput per GPU against interactivity: tokens per second of one request,
one over the median time per output token.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Final, NamedTuple

from hybridwatch.records.run import Curve, Point, Sample

CLOCK_DIGITS: Final = 9
"""The client's clock counts nanoseconds; digits beyond are the noise of its subtraction."""


def latencies(
    firsts: Sequence[float], gaps: Sequence[Sequence[float]], lengths: Sequence[float]
) -> Iterator[Sample]:
    """Give every latency of the requests of one trial, in seconds, also where none has any.

    ``firsts`` is the time to the first token, ``gaps`` the times between what came after,
    ``lengths`` the output tokens, each by request.
    """
    requests = list(zip(firsts, gaps, lengths, strict=True))
    series = {
        "ttft": firsts,
        "tpot": [sum(waits) / (length - 1) for _, waits, length in requests if length > 1],
        "itl": [wait for waits in gaps for wait in waits],
        "e2el": [first + sum(waits) for first, waits, _ in requests],
    }
    for name, values in series.items():
        yield Sample(name, tuple(round(value, CLOCK_DIGITS) for value in values))


def accepted_drafts(length: float, rates: Sequence[float]) -> Iterator[Sample]:
    """Give what became of the drafts: tokens a step, and the share accepted by position."""
    yield Sample("acceptance_length", (length,))
    for position, rate in enumerate(rates, start=1):
        yield Sample(f"acceptance_rate.position_{position}", (rate,))


_STRICT: Final = "strict"


def strictest(names: Sequence[str]) -> str:
    """Choose the first that is called strict (GSM8K's ``strict-match``), else the first."""
    return next((name for name in names if _STRICT in name), names[0])


def version_read(version: str, filters: Sequence[str]) -> str:
    """Name the version of a task, and the filter where there was a choice: ``3.0/strict-match``."""
    return version if len(filters) < 2 else f"{version}/{strictest(filters)}"


class Place(NamedTuple):
    """Where a point of a sweep lies: tokens per second of the typical request, and of a GPU."""

    interactivity: float
    throughput: float


def find_place(curve: Curve, point: Point) -> Place | None:
    """Say where a point lies; ``None`` without positive, finite values of both."""
    rates, times = _values(point, "output_throughput"), _values(point, "tpot")
    if not rates or not times or median(times) <= 0:
        return None
    place = Place(1 / median(times), rates[0] / max(1, curve.gpus))
    return place if all(math.isfinite(value) and value > 0 for value in place) else None


def list_places(curve: Curve) -> tuple[Place, ...] | None:
    """Say where every point lies, the lowest load first; ``None`` if one has no place."""
    places = [find_place(curve, point) for point in by_load(curve)]
    known = tuple(place for place in places if place is not None)
    return known if len(known) == len(places) else None


def by_load(curve: Curve) -> list[Point]:
    """Give the points from the lowest load to the highest."""
    return sorted(curve.points, key=lambda point: point.load)


def without_results(curve: Curve) -> Curve:
    """Give a curve as its record alone has it."""
    points = tuple(replace(point, client_result=None) for point in curve.points)
    return replace(curve, points=points)


def compute_area(places: Sequence[Place]) -> float:
    """Measure a whole curve by one number, the square root of the area that it covers.

    The area is the hypervolume of the places against nothing (Zitzler and Thiele, "Multiobjective
    optimization using evolutionary algorithms", PPSN 1998): it takes no line between points and
    none beyond them, so the number of one trial hangs on no other. Its root is in tokens per
    second: an engine whose every step takes 6 % longer loses 6 % of it.
    """
    area = least = 0.0
    for place in sorted(places, key=lambda one: -one.throughput):
        # What the places of more throughput cover already is not counted again.
        if place.interactivity > least:
            area += (place.interactivity - least) * place.throughput
            least = place.interactivity
    return math.sqrt(area)


def compute_goodput(curve: Curve, point: Point) -> float | None:
    """Count the requests per second that keep every bound of the objective, if all are known."""
    rates = _values(point, "request_throughput")
    times = [_values(point, metric) for metric in curve.slo]
    if not rates or not times or not times[0] or len(set(map(len, times))) > 1:
        return None
    bounds = tuple(curve.slo.values())
    kept = [
        all(time <= bound for time, bound in zip(request, bounds, strict=True))
        for request in zip(*times, strict=True)
    ]
    return rates[0] * sum(kept) / len(kept)


def _values(point: Point, metric: str) -> tuple[float, ...]:
    found = (sample.values for sample in point.samples if sample.metric == metric)
    return next(found, ())
