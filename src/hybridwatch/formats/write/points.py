"""A run as points, one for each metric, statistic and side, and the forms that are lists of these.

CSV and Parquet have a row for each trial, metric and statistic. Their columns ``series``,
``digest``, ``time`` and ``value`` are those that ``hybridwatch detect`` reads: rows of one run
share its time and so are repeats.

github-action-benchmark and Bencher hold one value under a name. github-action-benchmark takes one
direction for a whole file, so there are two. Bencher keeps directions on its server, by measure.

Benchmark records of PyTorch's HUD, version 3 (``oss_ci_benchmark_v3``), are one for each point.
Where a job's identity is known, each record has it; where it is not, pytorch/test-infra's uploader
adds it, as it does for the records that vLLM itself writes.
"""

import csv
import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from hybridwatch.analysis.pair import reduce_side
from hybridwatch.analysis.subject import OneSide, Subject, list_subjects
from hybridwatch.errors import ExportError
from hybridwatch.formats.write.serving import find_model
from hybridwatch.metrics import Direction
from hybridwatch.records.identity import EngineBuild, name_line
from hybridwatch.records.run import UNKNOWN, Run
from hybridwatch.system.plain_text import csv_cell

_COLUMNS: Final = (
    "series", "time", "value", "metric", "statistic", "unit", "better", "scenario", "testbed",
    "build", "release", "run", "side", "trial", "ingested", "line", "digest",
)  # fmt: skip
_FILES: Final = {
    Direction.LOWER: "smaller-is-better.json",
    Direction.HIGHER: "bigger-is-better.json",
}
_LONGEST_BENCHMARK: Final = 1024
_LONGEST_MEASURE: Final = 64
"""Bencher's limits of a name, in bytes of UTF-8."""
_DIGEST: Final = 10
"""Hexadecimal digits that distinguish names with the same beginning."""
_SCHEMA: Final = "v3"
_GIB: Final = 1024**3
_JOB: Final = {
    "repo": "GITHUB_REPOSITORY",
    "head_branch": "GITHUB_REF_NAME",
    "head_sha": "GITHUB_SHA",
    "workflow_id": "GITHUB_RUN_ID",
    "run_attempt": "GITHUB_RUN_ATTEMPT",
    "job_id": "JOB_ID",
    "name": "GITHUB_JOB",
}
_NUMBERS: Final = frozenset({"workflow_id", "run_attempt", "job_id"})


@dataclass(frozen=True, slots=True)
class ExportedPoint:
    """One metric and statistic of one side of a run, in base units, by index of the trial."""

    run: Run
    side: int
    subject: Subject
    values: tuple[tuple[int, float], ...]
    center: float

    @property
    def build(self) -> EngineBuild:
        """What was measured."""
        return self.run.builds[self.side]

    @property
    def name(self) -> str:
        """Metric and statistic in one word, such as ``ttft_p99``."""
        return f"{self.subject.metric.id}_{self.subject.statistic}"

    @property
    def low_high(self) -> tuple[float, float]:
        """The smallest and the largest trial."""
        numbers = [value for _, value in self.values]
        return min(numbers), max(numbers)


def build_points(run: Run) -> Iterator[ExportedPoint]:
    """Lay out a run; metrics of which no trial has a value are left out."""
    for side in range(len(run.builds)):
        own = OneSide(run, side)
        for subject in list_subjects(own, own):
            reduced = reduce_side(own, subject)
            if reduced.summary is not None:
                values = tuple(reduced.by_trial.items())
                yield ExportedPoint(run, side, subject, values, reduced.summary.center)


def render_time(run: Run) -> datetime:
    """Say where a run stands in a history: by its commit where that is known, else by its start."""
    committed = run.source.committed_at if run.source else None
    return committed or run.started_at


def _one_each(runs: Iterable[Run]) -> list[ExportedPoint]:
    """Lay out runs for a form that knows no time: one value under each name."""
    found: dict[tuple[str, str, str, str], ExportedPoint] = {}
    for run in runs:
        for point in build_points(run):
            key = run.scenario.id, run.testbed.id, point.build.label, point.name
            other = found.setdefault(key, point)
            # The sides of an A/A run are one build, and the first speaks.
            if other.run is not run:
                raise ExportError(
                    f"{', '.join(key[:3])}: this form holds one run each, found {other.run.id} "
                    f"and {run.id}: name one, or latest"
                )
    return list(found.values())


def to_csv(runs: Iterable[Run]) -> bytes:
    """Give a CSV with a header, rows in order of time; no cell is a formula (``csv_cell``)."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in _rows(runs):
        row["time"] = row["time"].isoformat().replace("+00:00", "Z")
        writer.writerow({name: csv_cell(cell) for name, cell in row.items()})
    return text.getvalue().encode()


def to_parquet(runs: Iterable[Run]) -> bytes:
    """Give a Parquet file of the same columns; ``time`` is a timestamp in UTC."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise ExportError("parquet: needs pyarrow: pip install 'hybridwatch[parquet]'") from error
    types = {
        "time": pa.timestamp("us", tz="UTC"),
        "value": pa.float64(),
        "side": pa.int8(),
        "trial": pa.int32(),
    }
    schema = pa.schema([(name, types.get(name, pa.string())) for name in _COLUMNS])
    buffer = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(_rows(runs)), schema=schema), buffer)
    return buffer.getvalue()


def _rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    for run in sorted(runs, key=lambda run: (render_time(run), run.id)):
        for point in build_points(run):
            if _is_of_another_night(point):
                continue
            for trial, value in point.values:
                yield _row(point, trial, value)


def _is_of_another_night(point: ExportedPoint) -> bool:
    """Whether it is a line's build of before, which tonight's was held against: no repeat of it."""
    last = point.run.builds[-1]
    return name_line(point.build) == name_line(last) and point.build.label != last.label


def _row(point: ExportedPoint, trial: int, value: float) -> dict[str, Any]:
    run, metric, statistic = point.run, point.subject.metric, point.subject.statistic
    return {
        "series": " ".join([run.scenario.id, run.testbed.id, name_line(point.build), point.name]),
        "time": render_time(run),
        "value": value,
        "metric": metric.id,
        "statistic": statistic,
        "unit": metric.unit.value,
        "better": metric.better.value,
        "scenario": run.scenario.id,
        "testbed": run.testbed.id,
        "build": point.build.label,
        "release": point.build.release,
        "run": run.id,
        "side": point.side,
        "trial": trial,
        "ingested": run.source.format if run.source else "",
        "line": name_line(point.build),
        "digest": run.scenario.digest,
    }


def to_github_action_benchmark(runs: Iterable[Run]) -> dict[str, bytes]:
    """Give the inputs of its tools ``customSmallerIsBetter`` and ``customBiggerIsBetter``."""
    points = _by_name(_one_each(runs), lambda p: (f"{p.run.scenario.id} {p.build.label} {p.name}",))
    return {
        file: _json([_bench(name, p) for (name,), p in points if p.subject.metric.better is better])
        for better, file in _FILES.items()
    }


def to_bencher(runs: Iterable[Run]) -> bytes:
    """Give Bencher Metric Format: benchmark, measure, value between smallest and largest trial."""
    found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for (benchmark, measure), point in _by_name(_one_each(runs), _bencher_name):
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


def to_hud(runs: Iterable[Run], environment: Mapping[str, str]) -> bytes:
    """Give records, with name and numbers of the GitHub job of the environment: all or none."""
    job = _job(environment)
    records = [_record(point, job) for run in runs for point in build_points(run)]
    return _json(records)


def _job(environment: Mapping[str, str]) -> dict[str, Any] | None:
    fields = {key: environment.get(variable, "") for key, variable in _JOB.items()}
    if not all(fields.values()) or not all(fields[key].isdigit() for key in _NUMBERS):
        return None
    return {key: int(text) if key in _NUMBERS else text for key, text in fields.items()}


def _record(point: ExportedPoint, job: Mapping[str, Any] | None) -> dict[str, Any]:
    run, build, metric = point.run, point.build, point.subject.metric
    fields = {
        "benchmark": {
            "name": run.scenario.id,
            "mode": "inference",
            "dtype": build.flags.get("dtype", UNKNOWN),
            "extra_info": {
                "scenario_version": str(run.scenario.version),
                "scenario_digest": run.scenario.digest,
                "build": build.label,
                "run": run.id,
                "side": str(point.side),
            },
        },
        "model": {"name": find_model(run), "backend": "vllm", "origins": [], "extra_info": {}},
        "metric": {
            "name": point.name,
            "benchmark_values": [value for _, value in point.values],
            "target_value": 0.0,
            "extra_info": {"unit": metric.unit.value, "better": metric.better.value},
        },
        "runners": [_runner(run)],
        "dependencies": {
            "vllm": {
                "repo": "vllm-project/vllm",
                "version": build.release,
                "extra_info": {"distribution": build.distribution, "wheel": build.wheel_digest},
            }
        },
    }
    if job is None:
        return fields
    return {
        "timestamp": int(run.started_at.timestamp()),
        "schema_version": _SCHEMA,
        **job,
        **fields,
    }


def _runner(run: Run) -> dict[str, Any]:
    """The machine; what an ingested file does not say of it is left out, or ``unknown``."""
    testbed = run.testbed
    unknown = {field.removeprefix("testbed.") for field in run.source.unknown} if run.source else ()
    fields: dict[str, Any] = {
        "name": testbed.id,
        "type": "gpu" if testbed.gpus else UNKNOWN if "gpus" in unknown else "cpu",
        "cpu_info": testbed.cpu_model,
        "extra_info": {"kernel": testbed.kernel, "driver": testbed.driver or ""},
    }
    if "cores" not in unknown:
        fields["cpu_count"] = testbed.cores
    if "memory_bytes" not in unknown:
        fields["avail_mem_in_gb"] = testbed.memory_bytes // _GIB
    if "gpus" not in unknown:
        fields["gpu_info"] = testbed.gpus[0] if testbed.gpus else ""
        fields["gpu_count"] = len(testbed.gpus)
    return fields
