"""Forms that hold one value under a name: github-action-benchmark and Bencher.

github-action-benchmark takes one direction for a whole file, so there are two. Bencher keeps
directions on its server, by measure.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final

from hybridwatch.errors import ExportError
from hybridwatch.formats.write.points import ExportedPoint, one_each
from hybridwatch.metrics import Direction
from hybridwatch.records.run import Run

SMALLER: Final = "smaller-is-better.json"
BIGGER: Final = "bigger-is-better.json"
_FILES: Final = {Direction.LOWER: SMALLER, Direction.HIGHER: BIGGER}
_LONGEST_BENCHMARK: Final = 1024
_LONGEST_MEASURE: Final = 64
"""Bencher's limits of a name, in bytes of UTF-8."""
_DIGEST: Final = 10
"""Hexadecimal digits that distinguish names with the same beginning."""


def to_github_action_benchmark(runs: Iterable[Run]) -> dict[str, bytes]:
    """Give the inputs of its tools ``customSmallerIsBetter`` and ``customBiggerIsBetter``.

    Raises:
        ExportError: As ``one_each``, or two points have one name.
    """
    points = _by_name(one_each(runs), _bench_name)
    return {
        file: _json([_bench(name, p) for (name,), p in points if p.subject.metric.better is better])
        for better, file in _FILES.items()
    }


def to_bencher(runs: Iterable[Run]) -> bytes:
    """Give Bencher Metric Format: benchmark, measure, value between smallest and largest trial.

    Names that are too long for Bencher keep their beginning and end in a digest of the whole.

    Raises:
        ExportError: As ``one_each``, or two points have one benchmark and measure.
    """
    found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for (benchmark, measure), point in _by_name(one_each(runs), _bencher_name):
        low, high = point.low_high
        # A report takes the worst trial of a contract, and Bencher wants the value in between.
        within = {"lower_value": min(low, point.center), "upper_value": max(high, point.center)}
        found[benchmark][measure] = {"value": point.center, **within}
    return _json(found)


def _by_name(
    points: Iterable[ExportedPoint], name_of: Callable[[ExportedPoint], tuple[str, ...]]
) -> list[tuple[tuple[str, ...], ExportedPoint]]:
    """Name each point, and refuse to lose one to another of the same name."""
    found: dict[tuple[str, ...], ExportedPoint] = {}
    for point in points:
        name = name_of(point)
        other = found.setdefault(name, point)
        if other is not point:
            both = " and ".join(f"{p.name} of run {p.run.id}" for p in (other, point))
            raise ExportError(
                f"{both} would have one name, {' '.join(name)!r}, and one of them would be lost: "
                "export them apart"
            )
    return list(found.items())


def _bencher_name(point: ExportedPoint) -> tuple[str, str]:
    benchmark = f"{point.run.scenario.id} {point.run.testbed.id} {point.build.label}"
    return _fitted(benchmark, _LONGEST_BENCHMARK), _fitted(point.name, _LONGEST_MEASURE)


def _fitted(name: str, longest: int) -> str:
    """Cut a name that is too long; different names stay different."""
    whole = name.encode()
    if len(whole) <= longest:
        return name
    end = f"-{hashlib.sha256(whole).hexdigest()[:_DIGEST]}"
    # A letter of several bytes that the cut goes through is left out.
    return whole[: longest - len(end)].decode(errors="ignore").rstrip() + end


def _bench_name(point: ExportedPoint) -> tuple[str]:
    return (f"{point.run.scenario.id} {point.build.label} {point.name}",)


def _bench(name: str, point: ExportedPoint) -> dict[str, Any]:
    run, (low, high) = point.run, point.low_high
    return {
        "name": name,
        "unit": point.subject.metric.unit.value,
        "value": point.center,
        "range": f"{low:g} to {high:g}",
        "extra": f"run {run.id}, {len(point.values)} trials on {run.testbed.id}",
    }


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
