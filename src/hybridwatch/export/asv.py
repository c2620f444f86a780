"""Result files of asv, version 2, as asv 0.6.6 reads them.

asv takes lower for better, always. So a metric of which more is better goes out as its twin:
seconds per token for tokens per second, the share of wrong answers for that of right ones.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hybridwatch.errors import ExportError
from hybridwatch.export.points import Point, points_of, time_of
from hybridwatch.metric import Direction, Kind, Unit
from hybridwatch.metric.catalogue import INVERSES
from hybridwatch.record.naming import safe_name
from hybridwatch.record.run import UNKNOWN, Run

_RESULTS_VERSION: Final = 2
_BENCHMARKS_VERSION: Final = 2
_MACHINE_VERSION: Final = 1
_CONFIDENCE: Final = 0.99
_DIGITS: Final = 5
_COMMIT: Final = 8
_COLUMNS: Final = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
    "stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Benchmark:
    """A point in asv's terms: lower is better."""

    name: str
    unit: str
    samples: tuple[float, ...]


def to_asv(runs: Iterable[Run], known: Mapping[str, Any]) -> dict[str, bytes]:
    """Give a results folder of asv.

    Args:
        runs: Any; runs of one commit, build and testbed share a file, their samples together.
        known: What its ``benchmarks.json`` holds already, which stays.

    Returns:
        Bytes by path in that folder.

    Raises:
        ExportError: A run does not know by which commit it was measured.
    """
    by_file: defaultdict[str, list[Point]] = defaultdict(list)
    machines: dict[str, dict[str, Any]] = {}
    for run in runs:
        machine = safe_name(run.testbed.id)
        machines[machine] = _machine(run, machine)
        for point in points_of(run):
            name = f"{machine}/{_commit(run)[:_COMMIT]}-{safe_name(point.build.label)}.json"
            by_file[name].append(point)
    benchmarks = dict(known) | {"version": _BENCHMARKS_VERSION}
    files = {f"{name}/machine.json": _json(facts) for name, facts in machines.items()}
    for name, points in by_file.items():
        files[name] = _json(_results(points, machines[name.partition("/")[0]]))
        for point in points:
            benchmark = _benchmark_of(point)
            benchmarks[benchmark.name] = _described(benchmark, point)
    return files | {"benchmarks.json": _json(benchmarks)}


def commit_of(run: Run) -> str | None:
    """Name the commit under which asv files a run, if it knows of one."""
    commit = run.source.commit if run.source else run.harness.revision
    return None if commit is None else commit.removesuffix("+")


def _commit(run: Run) -> str:
    commit = commit_of(run)
    if commit is None:
        raise ExportError(
            f"run {run.id}: asv files its results by commit, and this run knows of none"
        )
    return commit


def _benchmark_of(point: Point) -> _Benchmark:
    metric, values = point.subject.metric, tuple(value for _, value in point.values)
    name, unit = metric.id, metric.unit.value
    if metric.better is Direction.HIGHER and metric.unit is Unit.RATIO:
        name, values = f"{name}_wrong", tuple(1 - value for value in values)
    elif metric.better is Direction.HIGHER:
        if min(values) <= 0:
            raise ExportError(f"run {point.run.id}: {metric.id}: 0 has no inverse for asv")
        name, unit = INVERSES.get(metric.id, f"inverse_{metric.id}"), f"1/({unit})"
        unit = "s" if name.startswith("seconds") else unit
        values = tuple(1 / value for value in values)
    scenario = point.run.scenario.id.replace("/", ".")
    return _Benchmark(f"{scenario}.track_{name}_{point.subject.statistic}", unit, values)


def _described(benchmark: _Benchmark, point: Point) -> dict[str, Any]:
    return {
        "code": point.subject.metric.doc,
        "name": benchmark.name,
        "param_names": [],
        "params": [],
        "timeout": 0.0,
        "type": "track",
        "unit": benchmark.unit,
        "version": _version(point),
    }


def _version(point: Point) -> str:
    """Asv shows no result of another version: one scenario in another version is another."""
    return point.run.scenario.digest


def _results(points: Sequence[Point], machine: Mapping[str, Any]) -> dict[str, Any]:
    first = points[0]
    by_name: defaultdict[str, list[Point]] = defaultdict(list)
    for point in points:
        by_name[_benchmark_of(point).name].append(point)
    params = {key: value for key, value in machine.items() if key != "version"}
    return {
        "commit_hash": _commit(first.run),
        "env_name": safe_name(first.build.label),
        "date": int(time_of(first.run).timestamp() * 1000),
        "params": {**params, "python": UNKNOWN, "build": first.build.label},
        "python": UNKNOWN,
        "requirements": {},
        "env_vars": {},
        "result_columns": list(_COLUMNS),
        "results": {name: _row(same) for name, same in sorted(by_name.items())},
        "durations": {},
        "version": _RESULTS_VERSION,
    }


def _row(points: Sequence[Point]) -> list[Any]:
    newest = max(points, key=lambda point: point.run.started_at)
    # Other versions of the scenario are not comparable; the newest stands.
    same = [p for p in points if p.run.scenario.digest == newest.run.scenario.digest]
    samples = [value for point in same for value in _benchmark_of(point).samples]
    exact = newest.subject.metric.kind is Kind.EXACT
    low, high = _interval(samples)
    seconds = sum((p.run.finished_at - p.run.started_at).total_seconds() for p in same)
    return [
        [max(samples) if exact else float(np.median(samples))],
        [],
        _version(newest),
        int(newest.run.started_at.timestamp() * 1000),
        _short(seconds),
        [_short(low)],
        [_short(high)],
        [_short(float(np.quantile(samples, 0.25)))],
        [_short(float(np.quantile(samples, 0.75)))],
        [1],
        [len(samples)],
        [samples],
    ]


def _interval(samples: Sequence[float]) -> tuple[float, float]:
    """Bracket the median by order statistics, 99 %; infinite where there are too few, as asv."""
    n, ordered = len(samples), sorted(samples)
    tail, depth = 0.0, -1
    while depth + 1 < n / 2:
        tail += math.comb(n, depth + 1) / 2**n
        if 2 * tail > 1 - _CONFIDENCE:
            break
        depth += 1
    return (-math.inf, math.inf) if depth < 0 else (ordered[depth], ordered[n - 1 - depth])


def _machine(run: Run, name: str) -> dict[str, Any]:
    testbed = run.testbed
    return {
        "machine": name,
        "os": testbed.kernel,
        "arch": UNKNOWN,
        "cpu": testbed.cpu_model,
        "num_cpu": str(testbed.cores),
        "ram": str(testbed.memory_bytes),
        "version": _MACHINE_VERSION,
    }


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
