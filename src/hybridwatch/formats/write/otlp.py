"""A run as a trace of OpenTelemetry: a span for the run, its phases and its trials.

JSON lines as the collector's file exporter writes them and its file receiver reads them: ids are
hexadecimal, not base64 as elsewhere in the JSON of protocol buffers; nanoseconds are texts. Names
of attributes are those of the semantic conventions where there is one, else begin with
``hybridwatch.``.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from itertools import groupby
from typing import Any, Final

from hybridwatch.records.run import Run, Trial
from hybridwatch.system.plain_text import visible

_INTERNAL: Final = 1
_ERROR: Final = 2
"""Numbers of a kind of span and of a status, in ``opentelemetry.proto.trace.v1``."""
_TRACE_DIGITS: Final = 32
_SPAN_DIGITS: Final = 16
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NEEDED: Final = frozenset({"started_at", "trials[0].started_at", "trials[0].duration_s"})


def to_otlp(runs: Iterable[Run]) -> bytes:
    """Give a line for each run, of which each ``has_times``; the same run makes the same trace."""
    return b"".join(json.dumps(_trace(run), allow_nan=False).encode() + b"\n" for run in runs)


def has_times(run: Run) -> bool:
    """Whether a run says when its trials ran; a file of another tool may not."""
    return run.source is None or _NEEDED.isdisjoint(run.source.unknown)


def _trace(run: Run) -> dict[str, Any]:
    own = run.source is None
    resource = {
        "service.name": "hybridwatch" if own else run.harness.version,
        "service.version": run.harness.version if own else None,
        "host.name": run.testbed.id,
        "host.cpu.model.name": run.testbed.cpu_model,
        "vcs.ref.head.revision": run.harness.revision and run.harness.revision.removesuffix("+"),
    }
    scope = {"name": "hybridwatch", "version": version("hybridwatch")}
    scoped = {"scope": scope, "spans": list(_spans(run))}
    return {
        "resourceSpans": [
            {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scoped]}
        ]
    }


def _spans(run: Run) -> Iterator[dict[str, Any]]:
    failed = any(trial.failure is not None for trial in run.trials)
    facts = {
        "test.suite.name": run.scenario.id,
        "test.suite.run.status": "failure" if failed else "success",
        "hybridwatch.run.id": run.id,
        "hybridwatch.scenario.version": run.scenario.version,
        "hybridwatch.scenario.digest": run.scenario.digest,
    }
    yield _span(run, "run", "", run.scenario.id, (run.started_at, run.finished_at), facts)
    phases = groupby(run.trials, key=lambda trial: trial.phase)
    for number, (phase, group) in enumerate(phases):
        trials = list(group)
        place = f"phase/{number}"
        times = (trials[0].started_at, max(map(_end, trials)))
        yield _span(run, place, "run", phase.value, times, {"hybridwatch.phase": phase.value})
        yield from (_of_trial(run, place, trial) for trial in trials)


def _of_trial(run: Run, phase: str, trial: Trial) -> dict[str, Any]:
    failure, build = trial.failure, run.builds[trial.side]
    name = f"{trial.phase.value} {build.label}"
    facts = {
        "test.case.name": f"{run.scenario.id} {name}",
        "test.case.result.status": "pass" if failure is None else "fail",
        "hybridwatch.phase": trial.phase.value,
        "hybridwatch.trial": trial.index,
        "hybridwatch.side": trial.side,
        "hybridwatch.warmup": trial.warmup,
        "hybridwatch.build": build.label,
        "hybridwatch.release": build.release,
    }
    if failure is not None:
        facts["error.type"] = "engine_died" if failure.engine_died else "trial_failed"
    times = trial.started_at, _end(trial)
    span = _span(run, f"trial/{trial.index}", phase, name, times, facts)
    if failure is not None:
        span["status"] = {"code": _ERROR, "message": visible(failure.reason)}
    return span


def _span(
    run: Run,
    place: str,
    parent: str,
    name: str,
    times: tuple[datetime, datetime],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    started, ended = times
    return {
        "traceId": _id(run, "", _TRACE_DIGITS),
        "spanId": _id(run, place, _SPAN_DIGITS),
        "parentSpanId": _id(run, parent, _SPAN_DIGITS) if parent else "",
        "name": visible(name),
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(started),
        "endTimeUnixNano": _nanoseconds(max(started, ended)),
        "attributes": _attributes(facts),
    }


def _end(trial: Trial) -> datetime:
    return trial.started_at + timedelta(seconds=trial.duration_s)


def _id(run: Run, place: str, digits: int) -> str:
    """Two runs may have one id in different stores, but not one start."""
    text = f"{run.id} {run.started_at.isoformat()} {place}"
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _nanoseconds(moment: datetime) -> str:
    return str((moment - _EPOCH) // _MICROSECOND * 1000)


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write attributes; a fact that is not known is left out."""
    return [
        {"key": key, "value": _value(value)} for key, value in facts.items() if value is not None
    ]


def _value(value: object) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": visible(str(value))}
