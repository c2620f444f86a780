"""Waits for the device in a trace of ``torch.profiler``, step by step.

A trace is what ``export_chrome_trace`` writes: kineto's form of the Chrome trace format, times in
microseconds. Calls of the CUDA runtime are events of the category ``cuda_runtime`` on the thread
that made them; a copy is one of the category ``gpu_memcpy`` too, tied to its call by
``correlation``, and its name says whether the host's memory was pinned. Where a step begins is told
by a range of ``torch.profiler.record_function``, of the category ``user_annotation``.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
    """What the thread of a step waited for until the next step began.

    Attributes:
        waits: Number of waits by the runtime's call.
        seconds: All of them together.
    """

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
    """What a thread asked of the runtime, in order."""
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
