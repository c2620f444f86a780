"""Result files of asv, version 2, as asv 0.6.6 reads them.

What is exported goes by the names, the environment and the machine under which asv itself stores
what it measures with our suites (``orchestration.nightly.asv_plugin``), so both are one series. How
sure asv may be of a number is ``asv_benchmarks``' business.

What was read from a file of asv goes out as it came in, for which ``formats.read.asv`` keeps it
next to the record.
"""

import hashlib
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np

from hybridwatch.analysis.pair import reduce_side
from hybridwatch.analysis.run_noise import REMEMBERED, learned_noise
from hybridwatch.analysis.subject import OneSide
from hybridwatch.errors import ExportError
from hybridwatch.formats.write.asv_benchmarks import (
    BUILD_VARIABLE,
    IN_DOUBT,
    RELEASE_VARIABLE,
    Form,
    TrackedMetric,
    benchmark_name,
    build_benchmark,
    compute_noise,
    compute_stats,
)
from hybridwatch.formats.write.points import ExportedPoint, build_points, render_time
from hybridwatch.metrics import Kind
from hybridwatch.records.file_parts import safe_name
from hybridwatch.records.identity import Testbed
from hybridwatch.records.run import UNKNOWN, Run

_RESULTS_VERSION: Final = 2
_BENCHMARKS_VERSION: Final = 2
_MACHINE_VERSION: Final = 1
_DIGITS: Final = 5
_COMMIT: Final = 8
_STATS: Final = slice(5, 11)
"""Where the columns are that ``compute_stats`` gives."""
_UNSAFE: Final = re.compile(r'[<>:"/^|?*\x00-\x1f]')
_COLUMNS: Final = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
    "stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile",
)  # fmt: skip
_MACHINE: Final = ("machine", "os", "arch", "cpu", "num_cpu", "ram")
_PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The harness's; an engine has its own."""
_LONGEST: Final = 128
"""Characters of an environment's name, from which asv calls the file by a digest."""
_GIB: Final = 1024**3

Known = Callable[[str], Mapping[str, Any]]
"""Gives what a file of the folder holds, by its path there; nothing where it is not there."""


def to_asv(runs: Iterable[Run], known: Known) -> dict[str, bytes]:
    """Give a results folder of asv: bytes by path in it. What the folder has (``known``) stays.

    Runs of one commit, build and testbed share a file, their trials together.
    """
    by_file: defaultdict[str, list[ExportedPoint]] = defaultdict(list)
    machines: dict[str, Mapping[str, str]] = {}
    as_read: list[AsvResult] = []
    for run in sorted(runs, key=lambda run: run.started_at):
        if (found := _find_as_read(run)) is not None:
            as_read.append(found)
            continue
        facts = _facts(run)
        machines[facts["machine"]] = facts
        for point in build_points(run):
            name = _file_name(_commit(run), _environment(point))
            by_file[f"{facts['machine']}/{name}"].append(point)
    learned = _learned(point for points in by_file.values() for point in points)
    benchmarks = dict(known("benchmarks.json")) | {"version": _BENCHMARKS_VERSION}
    files = {
        f"{name}/machine.json": _json({**facts, "version": _MACHINE_VERSION})
        for name, facts in machines.items()
    }
    for name, points in by_file.items():
        results = _results(points, machines[name.partition("/")[0]], learned)
        files[name] = _json(_merged(name, known(name), results))
        benchmarks |= {_name(point): _described(point) for point in points}
    files |= _files_as_read(as_read, known)
    benchmarks |= {one.name: one.benchmark for one in as_read if one.benchmark is not None}
    return files | {"benchmarks.json": _json(benchmarks)}


@dataclass(frozen=True, slots=True)
class AsvResult:
    """What a file of asv said of one benchmark; ``head`` is the file without its results."""

    file: str
    head: Mapping[str, Any]
    machine: Mapping[str, Any]
    name: str
    row: Mapping[str, Any]
    benchmark: Mapping[str, Any] | None


def _find_as_read(run: Run) -> AsvResult | None:
    """Give what asv wrote; ``None`` where it is not kept, or has got other names since."""
    kept = (trial.client_result for trial in run.trials if trial.client_result is not None)
    text = next((one.get("asv") for one in kept), None)
    if text is None or run.source is None:
        return None
    try:
        written = json.loads(text)
        head, name, row = dict(written["file"]), str(written["name"]), dict(written["row"])
        machine = {**head["params"], **(written["machine"] or {})}
        build, environment = run.builds[0].label, str(head["env_name"])
        own = (f"asv/{name}", str(machine.get("machine") or UNKNOWN), environment[:_LONGEST])
    except (KeyError, TypeError, ValueError) as error:
        raise ExportError(f"run {run.id}: expected what asv wrote, next to the record") from error
    if own != (run.scenario.id, run.testbed.id, build):
        return None
    folder = safe_name(run.testbed.id)
    return AsvResult(
        f"{folder}/{_file_name(_commit(run), environment)}",
        {**head, "params": {**head["params"], "machine": folder}},
        {key: machine[key] for key in _MACHINE if key in machine}
        | {"machine": folder, "version": _MACHINE_VERSION},
        name,
        row,
        written.get("benchmark"),
    )


def _files_as_read(found: Iterable[AsvResult], known: Known) -> dict[str, bytes]:
    files: dict[str, dict[str, Any]] = {}
    machines = {}
    for one in found:
        new = {**one.head, "result_columns": list(_COLUMNS), "results": {}}
        file = files.setdefault(one.file, new | {"version": _RESULTS_VERSION})
        row = [one.row.get(column) for column in _COLUMNS]
        while row and row[-1] is None:  # as asv does
            del row[-1]
        file["results"][one.name] = row
        machines[f"{one.file.partition('/')[0]}/machine.json"] = _json(one.machine)
    merged = {name: _json(_merged(name, known(name), file)) for name, file in files.items()}
    return machines | merged


def find_commit(run: Run) -> str | None:
    """Name the commit under which asv files a run, if it knows of one."""
    commit = run.source.commit if run.source else run.harness.revision
    return None if commit is None else commit.removesuffix("+")


def machine_facts(testbed: Testbed) -> dict[str, str]:
    """Give what asv shall know of a machine; it begins a new curve where one of these is another.

    So a host's name, its kernel and the last digits of its memory are left out.
    """
    return {
        "machine": safe_name(testbed.id),
        "os": UNKNOWN,
        "arch": UNKNOWN,
        "cpu": testbed.cpu_model,
        "num_cpu": str(testbed.cores),
        "ram": str(round(testbed.memory_bytes / _GIB) * _GIB),
    }


def _facts(run: Run) -> dict[str, str]:
    facts, own = machine_facts(run.testbed), {}
    if run.source is not None:  # as the file said that it was ingested from
        own = {"os": run.testbed.kernel, "ram": str(run.testbed.memory_bytes or UNKNOWN)}
    return facts | own


def _commit(run: Run) -> str:
    commit = find_commit(run)
    if commit is None:
        raise ExportError(
            f"run {run.id}: asv files its results by commit, and this run knows of none"
        )
    return commit


def _python(run: Run) -> str:
    return _PYTHON if run.source is None else UNKNOWN


def _variables(point: ExportedPoint) -> dict[str, str]:
    # The release of an ingested run is its commit, and every commit would begin a curve.
    release = {RELEASE_VARIABLE: point.build.release} if point.run.source is None else {}
    return {BUILD_VARIABLE: point.build.label, **release}


def _environment(point: ExportedPoint) -> str:
    """Name asv's environment as it does itself (``environment.get_env_name``)."""
    parts = [f"{name}{value}" for name, value in sorted(_variables(point).items())]
    return _UNSAFE.sub("_", "-".join(["existing", f"py{_python(point.run)}", *parts]))


def _file_name(commit: str, environment: str) -> str:
    """Name a result file as asv does itself (``results.get_filename``)."""
    name = _UNSAFE.sub("_", environment)
    if len(name) >= _LONGEST:
        name = f"env-{hashlib.md5(environment.encode(), usedforsecurity=False).hexdigest()}"
    return f"{safe_name(commit[:_COMMIT])}-{name}.json"


def _benchmark(point: ExportedPoint) -> TrackedMetric:
    benchmark = build_benchmark(point.subject.metric, point.subject.statistic)
    if benchmark.form is Form.INVERSE and point.low_high[0] <= 0:
        raise ExportError(f"run {point.run.id}: {benchmark.metric.id}: 0 has no inverse for asv")
    return benchmark


def _name(point: ExportedPoint) -> str:
    return benchmark_name(point.run.scenario.id, _benchmark(point).name)


def _described(point: ExportedPoint) -> dict[str, Any]:
    return {
        "code": point.subject.metric.doc,
        "name": _name(point),
        "param_names": [],
        "params": [],
        "pretty_name": f"{point.run.scenario.id}: {_benchmark(point).name}",
        "timeout": 0.0,
        "type": "track",
        "unit": _benchmark(point).unit,
        "version": _version(point),
    }


def _version(point: ExportedPoint) -> str:
    """Asv shows no result of another version; an ingested scenario has a digest alone."""
    scenario = point.run.scenario
    return str(scenario.version) if point.run.source is None else scenario.digest


def _series(point: ExportedPoint) -> tuple[str, ...]:
    scenario = point.run.scenario
    return (scenario.id, scenario.digest, point.run.testbed.id, point.build.label, point.name)


def _learned(points: Iterable[ExportedPoint]) -> dict[tuple[str, ...], float | None]:
    by_series: defaultdict[tuple[str, ...], list[ExportedPoint]] = defaultdict(list)
    for point in points:
        if point.subject.metric.kind.has_noise:
            by_series[_series(point)].append(point)
    found: dict[tuple[str, ...], float | None] = {}
    for _, names in groupby(sorted(by_series), key=lambda name: name[:-1]):
        of_build = list(names)
        lasting = (_oldest_first(by_series[name])[-REMEMBERED:] for name in of_build)
        noises = learned_noise(
            (some[0].subject.metric, [point.center for point in some]) for some in lasting
        )
        found |= zip(of_build, noises, strict=True)
    return found


def _oldest_first(points: Iterable[ExportedPoint]) -> list[ExportedPoint]:
    return sorted(points, key=lambda point: point.run.started_at)


def _merged(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep what asv has measured, but for the benchmarks that are written again."""
    if not old:
        return new
    if old.get("result_columns") != new["result_columns"]:
        found = old.get("result_columns")
        raise ExportError(f"{name}: expected result_columns {list(_COLUMNS)}, found {found}")
    kept = {"results": {**old["results"], **new["results"]}, "durations": old.get("durations", {})}
    return {**new, **kept}


def _results(
    points: Sequence[ExportedPoint],
    facts: Mapping[str, str],
    learned: Mapping[tuple[str, ...], float | None],
) -> dict[str, Any]:
    first = points[0]
    by_name: defaultdict[str, list[ExportedPoint]] = defaultdict(list)
    for point in points:
        by_name[_name(point)].append(point)
    return {
        "commit_hash": _commit(first.run),
        "env_name": _environment(first),
        "date": int(render_time(first.run).timestamp() * 1000),
        "params": {**facts, "python": _python(first.run)},
        "python": _python(first.run),
        "requirements": {},
        "env_vars": _variables(first),
        "result_columns": list(_COLUMNS),
        "results": {name: _row(same, learned) for name, same in sorted(by_name.items())},
        "durations": {},
        "version": _RESULTS_VERSION,
    }


def _row(
    points: Sequence[ExportedPoint], learned: Mapping[tuple[str, ...], float | None]
) -> list[Any]:
    newest = _oldest_first(points)[-1]
    # Other versions of the scenario are not comparable; the newest stands.
    same = [p for p in points if p.run.scenario.digest == newest.run.scenario.digest]
    rated = [
        (
            compute_noise(
                point.subject, OneSide(point.run, point.side), learned.get(_series(point))
            ),
            point,
        )
        for point in _oldest_first(same)
    ]
    rated = [one for one in rated if one[0] != IN_DOUBT] or rated
    noise, sure = rated[-1][0], [point for _, point in rated]
    benchmark, values = _benchmark(newest), _values(sure)
    stats = compute_stats(benchmark, values, noise) or {}
    own = [benchmark.form.of(value) for value in values]
    seconds = sum((p.run.finished_at - p.run.started_at).total_seconds() for p in sure)
    columns = (stats.get(name.removeprefix("stats_")) for name in _COLUMNS[_STATS])
    return [
        [_reduced(benchmark, own)],
        [],
        _version(newest),
        int(sure[-1].run.started_at.timestamp() * 1000),
        float(f"{seconds:.{_DIGITS}g}"),
        *(None if value is None else [value] for value in columns),
        None if newest.run.source is None else [own],
    ]


def _reduced(benchmark: TrackedMetric, values: Sequence[float]) -> float:
    if benchmark.form is Form.WORST:
        return max(values)
    return float(np.mean(values) if benchmark.form is Form.WRONG else np.median(values))


def _values(points: Sequence[ExportedPoint]) -> Sequence[float]:
    """Gather one number per trial; of answers the newest: a second time they are as before."""
    newest = points[-1]
    if newest.subject.metric.kind is Kind.PROPORTION:
        return reduce_side(OneSide(newest.run, newest.side), newest.subject).values
    return [value for point in points for _, value in point.values]


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
