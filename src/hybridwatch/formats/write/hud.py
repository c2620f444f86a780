"""Benchmark records of PyTorch's HUD, version 3 (``oss_ci_benchmark_v3``): one for each point.

Where a job's identity is known, each record has it; where it is not, pytorch/test-infra's uploader
adds it, as it does for the records that vLLM itself writes.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hybridwatch.formats.write.points import ExportedPoint, build_points
from hybridwatch.formats.write.serving import find_model
from hybridwatch.records.run import UNKNOWN, Run

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


def to_hud(runs: Iterable[Run], environment: Mapping[str, str]) -> bytes:
    """Give a list of records.

    The environment is that of a GitHub job, whose name and numbers go into every record; all or
    none.
    """
    job = _job(environment)
    records = [_record(point, job) for run in runs for point in build_points(run)]
    return (json.dumps(records, indent=2, allow_nan=False) + "\n").encode()


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
