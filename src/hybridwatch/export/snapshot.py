"""Forms that hold one value under a name: github-action-benchmark and Bencher.

github-action-benchmark is told a direction for a whole file, so there are two. Bencher keeps
directions on its server, by measure.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from hybridwatch.export.points import Point, one_each
from hybridwatch.metric import Direction
from hybridwatch.record.run import Run

SMALLER: Final = "smaller-is-better.json"
BIGGER: Final = "bigger-is-better.json"
_FILES: Final = {Direction.LOWER: SMALLER, Direction.HIGHER: BIGGER}
_LONGEST_BENCHMARK: Final = 1024
_LONGEST_MEASURE: Final = 64


def to_github_action_benchmark(runs: Iterable[Run]) -> dict[str, bytes]:
    """Give the inputs of its tools ``customSmallerIsBetter`` and ``customBiggerIsBetter``."""
    points = one_each(runs)
    return {
        file: _json([_bench(p) for p in points if p.subject.metric.better is better])
        for better, file in _FILES.items()
    }


def to_bencher(runs: Iterable[Run]) -> bytes:
    """Give Bencher Metric Format: benchmark, measure, value between smallest and largest trial."""
    found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for point in one_each(runs):
        low, high = point.low_high
        # A report takes the worst trial of a contract, and Bencher wants the value in between.
        within = {"lower_value": min(low, point.center), "upper_value": max(high, point.center)}
        benchmark = f"{point.run.scenario.id} {point.run.testbed.id} {point.build.label}"
        measure = point.name[:_LONGEST_MEASURE]
        found[benchmark[:_LONGEST_BENCHMARK]][measure] = {"value": point.center, **within}
    return _json(found)


def _bench(point: Point) -> dict[str, Any]:
    run, (low, high) = point.run, point.low_high
    return {
        "name": f"{run.scenario.id} {point.build.label} {point.name}",
        "unit": point.subject.metric.unit.value,
        "value": point.center,
        "range": f"{low:g} to {high:g}",
        "extra": f"run {run.id}, {len(point.values)} trials on {run.testbed.id}",
    }


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
