"""``python -m hybridwatch_engine_lab.studies.sync_check MODEL``: does a profiler count the same?

One engine in one process decodes a batch on a CUDA device while the host-sync probe and
``torch.profiler`` watch the same steps. The waits that the probe counts must be those that the
profiler finds among the calls of the CUDA runtime, to within 2 %, and so must the time: what the
two say was lost may differ by 2 % of the steps' time. Prints one JSON object; the exit status is 1
when they do not agree, 2 when there is no CUDA device.
"""

import argparse
import json
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hybridwatch_engine.model_runner import is_step, steps
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.host_sync import HostSyncProbe

from hybridwatch_engine_lab.studies.stepping import (
    device_name,
    give,
    has_cuda,
    own_answer,
    start,
    stretch,
)

MARK: Final = "hybridwatch step"
"""Name of the range that a step begins with."""

_WAITS: Final = frozenset(
    {
        *("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize"),
        *("cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"),
        *("cudaMemcpy", "cudaMemcpy2D"),
    }
)
_COPY: Final = "cudaMemcpyAsync"
_STREAM: Final = "cudaStreamSynchronize"
_FREE: Final = "cudaFree"
_CALLS: Final = frozenset({"cuda_runtime", "cuda_driver"})
_PAGEABLE: Final = "(Device -> Pageable)"
_VARIANT: Final = "_ptsz"
"""Ending of a call's name in builds with a default stream for each thread."""


@dataclass(frozen=True, slots=True)
class TracedStep:
    """What the thread of a step waited for until the next step began."""

    waits: Mapping[str, int]
    seconds: float

    @property
    def count(self) -> int:
        """Number of waits."""
        return sum(self.waits.values())


@dataclass(slots=True)
class _Wait:
    name: str
    begin_us: float
    us: float


def read_steps(trace: Mapping[str, Any]) -> tuple[TracedStep, ...]:
    """Read the steps of a trace, in order.

    A trace is what ``export_chrome_trace`` writes: kineto's form of the Chrome trace format, times
    in microseconds. Calls of the CUDA runtime are events of the category ``cuda_runtime`` on the
    thread that made them; a copy is one of the category ``gpu_memcpy`` too, tied to its call by
    ``correlation``, and its name says whether the host's memory was pinned. A step begins with a
    range of ``torch.profiler.record_function``, of the category ``user_annotation``.

    Raises:
        ValueError: No step is marked in it, or steps of several threads are.
    """
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    marks = [
        event for event in events if event.get("cat") == "user_annotation" and event["name"] == MARK
    ]
    threads = {(event["pid"], event["tid"]) for event in marks}
    if len(threads) != 1:
        raise ValueError(f"expected steps of one thread, marked {MARK!r}; found {len(threads)}")
    (thread,) = threads
    begins = sorted(float(event["ts"]) for event in marks)
    found: list[list[_Wait]] = [[] for _ in begins]
    for wait in _waits(_read_calls(events, thread), _into_pageable(events)):
        at = bisect_right(begins, wait.begin_us)
        if at:  # else before the first step
            found[at - 1].append(wait)
    return tuple(_step(waits) for waits in found)


def _step(waits: Sequence[_Wait]) -> TracedStep:
    return TracedStep(Counter(wait.name for wait in waits), sum(wait.us for wait in waits) / 1e6)


def _read_calls(events: Sequence[Any], thread: tuple[Any, Any]) -> list[Any]:
    """A thread's calls of the runtime, in order."""
    calls = [event for event in events if event.get("cat") in _CALLS]
    of_thread = [event for event in calls if (event["pid"], event["tid"]) == thread]
    return sorted(of_thread, key=lambda event: float(event["ts"]))


def _into_pageable(events: Sequence[Any]) -> set[int]:
    """Correlations of copies into memory of the host that is not pinned."""
    return {
        event["args"]["correlation"]
        for event in events
        if event.get("cat") == "gpu_memcpy" and event["name"].endswith(_PAGEABLE)
    }


def _waits(calls: Sequence[Any], pageable: set[int]) -> Iterator[_Wait]:
    """What of these calls waits; calls that make up one wait are one.

    A blocking copy is a copy and a wait for the stream. The first alone waits when the memory is
    pageable, then the second has nothing left to wait for. What the allocator gives back at once
    are many calls.
    """
    last: _Wait | None = None
    for call in calls:
        name = call["name"].removesuffix(_VARIANT)
        copies = name == _COPY and call["args"].get("correlation") in pageable
        goes_on = last is not None and (last.name, name) in {(_COPY, _STREAM), (_FREE, _FREE)}
        if last is not None and goes_on:
            last.us += float(call["dur"])
            if name == _STREAM:
                last.name = _STREAM
            continue
        if last is not None:
            yield last
        waits = name in _WAITS or name == _FREE or copies
        last = _Wait(name, float(call["ts"]), float(call["dur"])) if waits else None
    if last is not None:
        yield last


TOLERANCE: Final = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the engine, watch its steps twice, print."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_engine_lab.studies.sync_check")
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=8, help="requests in the batch")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--engine", type=json.loads, default={}, help="engine arguments, as JSON")
    options = parser.parse_args(arguments)
    if not has_cuda():
        sys.stderr.write("sync_check: no CUDA device: nothing here waits for one\n")
        return 2
    with own_answer() as answer:
        engine = start(options.model, options.batch, options.engine)
        stretch(engine, "warm-up", options.batch)
        probed, traced = watch(engine, options.batch, options.steps)
        found = agreement(probed, traced)
        give(answer, {"device": device_name(), **found})
    return int(not found["agree"])


def watch(engine: Any, rows: int, number: int) -> tuple[dict[str, Any], tuple[TracedStep, ...]]:
    """Decode a batch under probe and profiler: what each saw of the same steps."""
    from torch.profiler import ProfilerActivity, profile

    probe = HostSyncProbe()
    marks = PatchSet(*(Patch(*function, _marked) for function in steps()))
    probe.start()
    marks.install()
    try:
        activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        with profile(activities=activities) as profiler:
            stretch(engine, "watched", rows, number)
    finally:
        marks.remove()
        probed = probe.stop()
    with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return probed, read_steps(json.loads(path.read_text(encoding="utf-8")))


def _marked(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let the trace say where a step begins."""
    from torch.profiler import record_function

    def execute_model(runner: Any, scheduled: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_step(scheduled, kwargs):
            return original(runner, scheduled, *args, **kwargs)
        with record_function(MARK):
            return original(runner, scheduled, *args, **kwargs)

    return execute_model


def agreement(probed: Mapping[str, Any], traced: Sequence[TracedStep]) -> dict[str, Any]:
    """Compare the probe's counts with the trace; the last step is left out of both.

    A profiler that stops waits for the device, which falls into the last step.

    Returns:
        ``steps``; ``probe`` and ``profiler``, each with ``waits`` and ``seconds``, the profiler's
        also ``calls``, by the runtime's names; ``steps_off``: steps whose waits differ;
        ``waits_off``: difference of all waits, as a share of the larger; ``time_off``: difference
        of the seconds, as a share of the steps' time; ``agree``.
    """
    counts, seconds = probed["reads_per_step"][:-1], probed["wait_seconds_per_step"][:-1]
    kept = traced[:-1]
    waits = sum(counts), sum(step.count for step in kept)
    lost = sum(seconds), sum(step.seconds for step in kept)
    whole = sum(probed["step_seconds"][:-1])
    waits_off = abs(waits[0] - waits[1]) / max(*waits, 1)
    time_off = abs(lost[0] - lost[1]) / whole if whole else 0.0
    steps_off = sum(count != step.count for count, step in zip(counts, kept, strict=False))
    same_steps = len(counts) == len(kept) and steps_off <= TOLERANCE * len(counts)
    within = waits_off <= TOLERANCE and time_off <= TOLERANCE
    calls = sum((Counter(step.waits) for step in kept), Counter[str]())
    return {
        "steps": len(counts),
        "probe": {"waits": waits[0], "seconds": lost[0], "sites": probed["sites"]},
        "profiler": {"waits": waits[1], "seconds": lost[1], "calls": dict(calls)},
        "untimed": probed["untimed"],
        "steps_off": steps_off,
        "waits_off": waits_off,
        "time_off": time_off,
        # Without any wait there was nothing to agree on.
        "agree": same_steps and within and waits[1] > 0,
    }


if __name__ == "__main__":
    sys.exit(main())
