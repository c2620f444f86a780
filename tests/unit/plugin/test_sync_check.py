"""Probe and profiler held against each other: what counts as agreement, and what does not."""

import json
from pathlib import Path

import pytest
from hybridwatch_engine_lab.studies import sync_check
from hybridwatch_engine_lab.studies.sync_check import (
    TOLERANCE,
    TracedStep,
    agreement,
    main,
    read_steps,
)

TRACE = Path(__file__).parents[2] / "fixtures" / "profiler" / "trace.json"


@pytest.fixture
def trace():
    return json.loads(TRACE.read_text(encoding="utf-8"))


def test_waits_are_reported_by_step_and_call(trace):
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


STEPS = 50


def traced(waits=4, seconds=0.002, steps=STEPS):
    return [TracedStep({"cudaStreamSynchronize": waits}, seconds)] * steps


def told(waits=4, seconds=0.002, steps=STEPS, step_seconds=0.01):
    return {
        "reads_per_step": [waits] * steps,
        "wait_seconds_per_step": [seconds] * steps,
        "step_seconds": [step_seconds] * steps,
        "sites": {"a.py:f:1": waits * steps},
        "untimed": 0,
    }


def test_the_same_waits_agree_and_the_last_step_is_left_out():
    at_the_end = [*traced(steps=STEPS - 1), TracedStep({"cudaDeviceSynchronize": 9}, 1.0)]
    found = agreement(told(), at_the_end)
    assert found["agree"]
    assert (found["steps"], found["steps_off"]) == (STEPS - 1, 0)
    assert found["probe"]["waits"] == found["profiler"]["waits"] == 4 * (STEPS - 1)
    assert found["profiler"]["calls"] == {"cudaStreamSynchronize": 4 * (STEPS - 1)}
    assert (found["waits_off"], found["time_off"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("probe", "trace"),
    [
        pytest.param(told(waits=8), traced(), id="every wait counted twice"),
        pytest.param(told(waits=5), traced(), id="a host tensor counted"),
        pytest.param(told(waits=3), traced(), id="a wait not seen"),
        pytest.param(told(seconds=0.0), traced(), id="waits not timed"),
        pytest.param(told(steps=STEPS + 1), traced(), id="other steps"),
        pytest.param(told(waits=0, seconds=0.0), traced(waits=0, seconds=0.0), id="nothing to see"),
    ],
)
def test_what_differs_does_not_agree(probe, trace):
    assert not agreement(probe, trace)["agree"]


def test_waits_put_down_to_other_steps_do_not_agree():
    probe = told()
    probe["reads_per_step"] = [3, 5] * (STEPS // 2)
    found = agreement(
        probe, [*traced(steps=STEPS - 2), *traced(waits=3, steps=1), *traced(steps=1)]
    )
    assert found["waits_off"] == 0.0
    assert found["steps_off"] == STEPS - 2
    assert not found["agree"]


def test_one_wait_in_a_hundred_is_within_the_tolerance_and_three_are_not():
    def off_by(number):
        probe = told(waits=2, steps=STEPS + 1)
        probe["reads_per_step"][0] += number
        return agreement(probe, traced(waits=2, steps=STEPS + 1))

    assert off_by(1)["agree"]
    assert off_by(1)["steps_off"] == 1
    assert not off_by(3)["agree"]
    assert off_by(3)["waits_off"] > TOLERANCE


def test_without_a_device_it_says_so_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sync_check, "has_cuda", lambda: False)
    assert main(["models/tiny-hybrid"]) == 2
    assert capsys.readouterr().err == "sync_check: no CUDA device: nothing here waits for one\n"


def test_its_answer_and_exit_status_are_those_of_the_agreement(monkeypatch, tmp_path):
    """The whole command, but for engine and device."""
    answers = tmp_path / "answer.json"
    monkeypatch.setattr(sync_check, "has_cuda", lambda: True)
    monkeypatch.setattr(sync_check, "device_name", lambda: "a device")
    monkeypatch.setattr(sync_check, "own_answer", lambda: answers.open("w", encoding="utf-8"))
    monkeypatch.setattr(sync_check, "start", lambda *_: None)
    monkeypatch.setattr(sync_check, "stretch", lambda *_: None)
    for waits, status in ((4, 0), (8, 1)):
        monkeypatch.setattr(sync_check, "watch", lambda *_, w=waits: (told(waits=w), traced()))
        assert main(["models/tiny-hybrid"]) == status
        assert json.loads(Path(answers).read_text(encoding="utf-8"))["agree"] is (status == 0)
