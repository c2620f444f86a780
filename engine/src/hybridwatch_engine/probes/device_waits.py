"""Host synchronisations on CUDA: calls in which the host waits for the device, per engine step.

Three ways of detection, and no wait is counted twice:

- **wrapped calls**: reads, copies, waits for events, streams and devices. Whether one waits
  follows from where its tensors live (``wait_rules.py``); how long is measured.
- **torch's sync debug mode**: warns of every wait that torch itself begins, with the line of
  Python that caused it. It is off inside a wrapped call that counts, and so warns of all others:
  masks used as an index, ``torch.unique``, and other reads of a size from the device. Their time
  is not known, except for those wrapped to be timed. It does not warn of waits for events and
  devices, of non-blocking copies into pageable memory, and of other libraries.
- **the allocator's statistics**: it waits for all streams before it gives memory back.

``python -m hybridwatch_engine_lab.studies.sync_check`` holds the counts against the profiler's.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter_ns
from types import FrameType
from typing import Any, Final

from hybridwatch_engine.model_runner import Function, is_step, steps
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes import wait_rules
from hybridwatch_engine.probes.wait_rules import Rule, WaitTimes, can_be_watched, name_site

WARNING: Final = "called a synchronizing CUDA operation"
"""How torch's warning begins (``c10/cuda/CUDAFunctions.cpp``)."""

ALLOCATOR_EVERY: Final = 32
"""Steps between two reads of the allocator's statistics, which cost tens of microseconds: its waits
may be attributed to a step up to 31 steps too late."""

_SILENT, _WARN = 0, 1
_UNWARNED: Final = frozenset({"event", "device"})
"""Kinds of waits that the debug mode never warns of. The mode is one for all threads, and a thread
that waits for an event, as another than the engine's may for most of a step, must not silence
others."""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A function that may make the host wait.

    Attributes:
        function: Where it is.
        kind: What a wait in it is called.
        rule: Decides beforehand whether a call waits; ``None`` when only the debug mode knows.
    """

    function: Function
    kind: str
    rule: Rule | None


@dataclass(frozen=True, slots=True)
class Surface:
    """What of torch and of the engine the probe holds on to.

    Attributes:
        steps: What runs a step.
        ends: What belongs to the step that was begun last.
        wrapped: What may wait.
        warn_on_sync: Sets torch's sync debug mode: 0 for silent, 1 for warnings.
        allocator_syncs: How often the allocator has waited for all streams so far.
    """

    steps: Sequence[Function]
    ends: Sequence[Function]
    wrapped: Sequence[Wrapped]
    warn_on_sync: Callable[[int], None]
    allocator_syncs: Callable[[], int]


class DeviceWaitsProbe:
    """Counts and times waits for the device per engine step while it is on.

    Args:
        surface: What to hold on to, made when the probe is first used.
        clock: Tells the time, in nanoseconds.
    """

    def __init__(
        self,
        surface: Callable[[], Surface] | None = None,
        clock: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self._make_surface = surface or cuda_surface
        self._clock = clock
        self._surface: Surface | None = None
        self._times = WaitTimes()
        self._hooks: PatchSet | None = None
        self._mode = _SILENT
        # By thread: warnings heard inside a call that is only timed, None inside one that counts.
        self._inside: dict[int, int | None] = {}
        self._allocator_syncs = 0

    def start(self) -> None:
        """Count from zero."""
        self._times = WaitTimes()
        if self._surface is None or self._hooks is None:
            self._surface = self._make_surface()
            self._hooks = self._make_hooks(self._surface)
        self._hooks.install()
        if self._mode == _SILENT:
            self._watch_warnings(self._surface)
        self._allocator_syncs = self._surface.allocator_syncs()

    def stop(self) -> dict[str, Any]:
        """Stop counting and return the counts.

        Returns:
            ``reads_per_step``: number of waits of each engine step, in order; ``sites``: number of
            waits by ``file:function:line``, the most frequent first; ``site_seconds``: how long
            those took; ``site_kinds``: of each site, how many waits of which kind;
            ``wait_seconds_per_step``; ``step_seconds``: from the beginning of a step to the end of
            the last thing that its thread did for it; ``untimed``: waits whose time is not known,
            in all of the others with 0 s; ``other_threads``: ``waits`` and ``seconds`` of threads
            that make no steps, in none of the others.
        """
        if self._surface is not None and self._mode == _WARN:
            self._read_allocator()
            self._mode = _SILENT
            self._surface.warn_on_sync(_SILENT)
            self._caught.__exit__(None, None, None)
        if self._hooks is not None:
            self._hooks.remove()
        return self._times.summary()

    def _watch_warnings(self, surface: Surface) -> None:
        """Hear torch's warnings, every one of them, and leave other warnings alone."""
        self._caught = warnings.catch_warnings()
        self._caught.__enter__()
        warnings.filterwarnings("always", message=WARNING)
        warnings.showwarning = self._note_warning(warnings.showwarning)
        self._mode = _WARN
        surface.warn_on_sync(_WARN)

    def _note_warning(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def showwarning(message: Any, category: Any, file: str, line: int, *more: Any) -> None:
            if not str(message).startswith(WARNING):
                original(message, category, file, line, *more)
                return
            thread = get_ident()
            if thread in self._inside:
                warned = self._inside[thread]
                self._inside[thread] = None if warned is None else warned + 1
            elif self._times.counts:
                caller = _frame_at(sys._getframe(1), file, line)  # noqa: SLF001
                self._times.add(name_site(caller), "other", None)

        return showwarning

    def _make_hooks(self, surface: Surface) -> PatchSet:
        waits = [
            Patch(
                *wrapped.function, self._counted(wrapped) if wrapped.rule else self._timed(wrapped)
            )
            for wrapped in surface.wrapped
        ]
        begin = [Patch(*function, self._step) for function in surface.steps]
        return PatchSet(*begin, *(Patch(*end, self._end) for end in surface.ends), *waits)

    def _step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(runner: Any, scheduled: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_step(scheduled, kwargs):
                return original(runner, scheduled, *args, **kwargs)
            if len(self._times.counts) % ALLOCATOR_EVERY == ALLOCATOR_EVERY - 1:
                self._read_allocator()
            self._times.begin_step(self._clock())
            return self._of_step(original, runner, scheduled, *args, **kwargs)

        return execute_model

    def _end(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def sample_tokens(*args: Any, **kwargs: Any) -> Any:
            return self._of_step(original, *args, **kwargs)

        return sample_tokens

    def _of_step(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            self._times.extend_step(self._clock())

    def _counted(self, wrapped: Wrapped) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Wrap a function of which a rule says beforehand whether a call waits."""
        kind, rule, warned = wrapped.kind, wrapped.rule, wrapped.kind not in _UNWARNED
        assert rule is not None  # noqa: S101 - what has none goes to the other wrapper

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                thread = get_ident()
                if not self._times.counts or thread in self._inside or not rule(args, kwargs):
                    return original(*args, **kwargs)
                site = name_site(sys._getframe(1))  # noqa: SLF001
                self._inside[thread] = None
                if warned:
                    self._warn(_SILENT)  # a warning costs more than many a wait
                begin = self._clock()
                try:
                    return original(*args, **kwargs)
                finally:
                    end = self._clock()
                    if warned:
                        self._warn(self._mode)
                    del self._inside[thread]
                    self._times.add(site, kind, end - begin)
                    self._times.extend_step(end)

            return call

        return wrap

    def _timed(self, wrapped: Wrapped) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Wrap a function without a rule, to time the calls that the debug mode warns of."""
        kind = wrapped.kind

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                thread = get_ident()
                if not self._times.counts or thread in self._inside:
                    return original(*args, **kwargs)
                caller = sys._getframe(1)  # noqa: SLF001
                self._inside[thread] = 0
                begin = self._clock()
                try:
                    return original(*args, **kwargs)
                finally:
                    end = self._clock()
                    if warned := self._inside.pop(thread):
                        self._times.add(name_site(caller), kind, end - begin, warned)
                        self._times.extend_step(end)

            return call

        return wrap

    def _warn(self, mode: int) -> None:
        if self._surface is not None:
            self._surface.warn_on_sync(mode)

    def _read_allocator(self) -> None:
        """Count the allocator's waits since its statistics were last read."""
        if self._surface is None or not self._times.counts:
            return
        known, self._allocator_syncs = self._allocator_syncs, self._surface.allocator_syncs()
        if new := self._allocator_syncs - known:
            self._times.add("(allocator)", "allocator", None, new)


def _frame_at(frame: FrameType, file: str, line: int) -> FrameType:
    """The frame that a warning names, above the one that shows it; else the outermost."""
    while frame.f_back and (frame.f_code.co_filename, frame.f_lineno) != (file, line):
        frame = frame.f_back
    return frame


def cuda_surface() -> Surface:
    """What there is to hold on to in a CUDA build of torch."""
    import torch

    tensor, cuda = torch.Tensor, torch.cuda
    names = ("item", "__bool__", "__int__", "__float__", "__index__")
    wrapped = [Wrapped((tensor, name), name.strip("_"), wait_rules.reads_device) for name in names]
    wrapped += [
        Wrapped((tensor, "tolist"), "tolist", wait_rules.lists_device),
        Wrapped((tensor, "nonzero"), "nonzero", wait_rules.reads_device),
        Wrapped((torch, "nonzero"), "nonzero", wait_rules.finds_nonzero),
        Wrapped((tensor, "cpu"), "copy", wait_rules.lists_device),
        Wrapped((tensor, "to"), "copy", wait_rules.converts),
        Wrapped((tensor, "cuda"), "copy", wait_rules.uploads),
        Wrapped((tensor, "copy_"), "copy", wait_rules.fills),
        Wrapped((cuda.Event, "synchronize"), "event", wait_rules.waits),
        Wrapped((cuda.Stream, "synchronize"), "stream", wait_rules.waits),
        Wrapped((cuda, "synchronize"), "device", lambda *_: True),
        Wrapped((torch.accelerator, "synchronize"), "device", lambda *_: True),
    ]
    if can_be_watched(torch.Event):
        wrapped.append(Wrapped((torch.Event, "synchronize"), "event", wait_rules.waits))
    for name in ("tensor", "as_tensor", "masked_select", "repeat_interleave"):
        wrapped.append(Wrapped((torch, name), "copy" if "tensor" in name else "other", None))
    for name in ("masked_select", "repeat_interleave", "unique"):
        wrapped.append(Wrapped((tensor, name), "other", None))
    begin = steps()
    return Surface(
        steps=begin,
        ends=[(runner, "sample_tokens") for runner, _ in begin],
        wrapped=wrapped,
        warn_on_sync=torch._C._cuda_set_sync_debug_mode,  # noqa: SLF001 - without its checks
        allocator_syncs=lambda: int(cuda.memory_stats().get("num_sync_all_streams", 0)),
    )
