"""A run as a trace, read by OpenTelemetry's own messages."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybridwatch.formats.write.otlp import to_otlp
from hybridwatch.records.run import Phase, Run
from hybridwatch.records.store import write_run
from tests.builders import a_comparison, noisy, with_failures
from tests.command_line import run_verb
from tests.shipped import FOREIGN
from tests.situations import HOSTILE

# In no lock: with this package alone Ray takes OpenTelemetry for installed, and does not start.
pytest.importorskip(
    "opentelemetry.proto.trace.v1.trace_pb2", reason="needs `pip install opentelemetry-proto`"
)

from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData


@pytest.fixture
def run() -> Run:
    values = {"contract.padded_rows_prefilling": (0.0,) * 2, "tpot": noisy(1.0, 7, 0.01)}
    return with_failures(a_comparison(values, values), 1, Phase.PERFORMANCE, 1, "it hung")


def parsed(line: bytes) -> TracesData:
    """Read a line as OTLP says: the JSON of protocol buffers, with ids in hexadecimal."""
    told = json.loads(line)
    for span in _spans_in(told):
        for key, size in (("traceId", 16), ("spanId", 8), ("parentSpanId", 8)):
            raw = bytes.fromhex(span[key])
            assert len(raw) == size or (key == "parentSpanId" and not raw)
            span[key] = base64.b64encode(raw).decode()
    data = TracesData()
    json_format.ParseDict(told, data)
    return data


def _spans_in(told: dict[str, Any]) -> list[dict[str, Any]]:
    (resource,) = told["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    return list(scope["spans"])


def spans_of(line: bytes) -> list[Span]:
    (resource,) = parsed(line).resource_spans
    return list(resource.scope_spans[0].spans)


def facts_of(span: Span) -> dict[str, Any]:
    return {
        one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes
    }


def test_a_run_holds_its_phases_and_these_their_trials(run) -> None:
    root, *others = spans_of(to_otlp([run]))
    assert (root.name, root.parent_span_id) == (run.scenario.id, b"")
    phases = [span for span in others if span.parent_span_id == root.span_id]
    trials = [span for span in others if span.parent_span_id != root.span_id]
    assert {span.parent_span_id for span in trials} == {span.span_id for span in phases}
    assert [facts_of(span)["hybridwatch.trial"] for span in trials] == [
        trial.index for trial in run.trials
    ]
    assert len({span.span_id for span in (root, *others)}) == 1 + len(others)
    assert {span.trace_id for span in others} == {root.trace_id}


def test_a_trial_starts_and_ends_when_it_did(run) -> None:
    started = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    one = replace(run.trials[0], started_at=started, duration_s=2.5)
    span = spans_of(to_otlp([replace(run, trials=(one,))]))[-1]
    assert span.start_time_unix_nano == int(started.timestamp()) * 10**9 + 123_456_000
    assert span.end_time_unix_nano - span.start_time_unix_nano == 2_500_000_000
    assert span.kind == Span.SPAN_KIND_INTERNAL


def test_a_failed_trial_is_an_error_and_so_is_its_suite(run) -> None:
    root, *others = spans_of(to_otlp([run]))
    failed = [span for span in others if span.status.code == Status.STATUS_CODE_ERROR]
    assert [span.status.message for span in failed] == ["it hung"]
    facts = facts_of(failed[0])
    assert (facts["error.type"], facts["test.case.result.status"]) == ("trial_failed", "fail")
    assert facts["hybridwatch.build"] == run.builds[1].label
    assert facts_of(root)["test.suite.run.status"] == "failure"


def test_the_same_run_is_the_same_trace_and_another_is_another(run) -> None:
    assert to_otlp([run]) == to_otlp([run])
    later = replace(run, started_at=run.started_at + timedelta(seconds=1))
    (one, *_), (other, *_) = spans_of(to_otlp([run])), spans_of(to_otlp([later]))
    assert one.trace_id != other.trace_id
    assert len(to_otlp([run, later]).splitlines()) == 2


def test_who_measured_is_the_service(run) -> None:
    dirty = replace(run, harness=replace(run.harness, version="0.1.0", revision="ab" * 20 + "+"))
    (resource,) = parsed(to_otlp([dirty])).resource_spans
    facts = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert (facts["service.name"], facts["service.version"]) == ("hybridwatch", "0.1.0")
    assert (facts["host.name"], facts["vcs.ref.head.revision"]) == (run.testbed.id, "ab" * 20)


def test_hostile_text_is_text(run) -> None:
    trials = tuple(
        replace(one, failure=replace(one.failure, reason=HOSTILE + "\ud800"))
        if one.failure
        else one
        for one in run.trials
    )
    (line,) = to_otlp([replace(run, trials=trials)]).splitlines()
    message = spans_of(line)[-1].status.message
    assert "\\x1b[31m" in message
    assert "\\ud800" in message


@pytest.fixture
def export(tmp_path):
    def call(*words: str, status: int | None = None):
        return run_verb("export", "--to", "otlp", "--results", tmp_path, *words, status=status)

    return call


def test_the_verb_writes_lines(run, export, tmp_path) -> None:
    write_run(tmp_path, run)
    assert len(spans_of(export(status=0).stdout.encode())) > len(run.trials)


def test_what_has_no_times_is_named(export, tmp_path) -> None:
    rows = FOREIGN / "made-up" / "inferencex" / "agg.json"
    run_verb("ingest", rows, "--results", tmp_path)
    answer = export()
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "left out, since it is not known when their trials ran: " in answer.stderr
    run_verb("ingest", FOREIGN / "made-up/vllm-bench/multi-turn.json", "--results", tmp_path)
    export(status=0)
