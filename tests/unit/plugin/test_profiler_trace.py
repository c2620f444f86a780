"""Waits in a trace of torch's profiler, in the form that kineto writes."""

import json
from pathlib import Path

import pytest
from hybridwatch_engine_lab.studies.sync_check import read_steps

TRACE = Path(__file__).parents[2] / "fixtures" / "profiler" / "trace.json"


@pytest.fixture
def trace():
    return json.loads(TRACE.read_text(encoding="utf-8"))


def test_waits_are_told_by_step_and_call(trace):
    first, second = read_steps(trace)
    assert first.waits == {
        "cudaStreamSynchronize": 2,
        "cudaEventSynchronize": 1,
        "cudaDeviceSynchronize": 1,
    }
    assert second.waits == {"cudaMemcpyAsync": 1, "cudaFree": 1, "cudaStreamSynchronize": 1}
    assert (first.count, second.count) == (4, 3)
    assert first.seconds == pytest.approx((50 + 32 + 100 + 10) / 1e6)
    assert second.seconds == pytest.approx((20 + 12 + 9) / 1e6)


def test_a_copy_into_pinned_memory_does_not_wait(trace):
    for event in trace["traceEvents"]:
        event["name"] = event["name"].replace("(Device -> Pageable)", "(Device -> Pinned)")
    first, second = read_steps(trace)
    assert (first.count, second.count) == (4, 2)
    assert "cudaMemcpyAsync" not in second.waits


def test_a_copy_and_a_later_wait_are_two(trace):
    """Something else between them, so the wait is not the copy's own."""
    calls = [e for e in trace["traceEvents"] if e.get("cat") == "cuda_runtime"]
    at = next(i for i, e in enumerate(calls) if e["name"] == "cudaMemcpyAsync" and e["dur"] == 30.0)
    launch = dict(calls[1], ts=calls[at]["ts"] + 30.2, dur=0.1)
    assert launch["name"] == "cudaLaunchKernel"
    trace["traceEvents"].append(launch)
    assert read_steps(trace)[0].count == 5


def test_the_order_in_the_file_does_not_matter(trace):
    told = read_steps(trace)
    trace["traceEvents"].reverse()
    assert read_steps(trace) == told


def test_a_trace_without_steps_is_refused(trace):
    trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("cat") != "user_annotation"]
    with pytest.raises(ValueError, match="expected steps of one thread"):
        read_steps(trace)
