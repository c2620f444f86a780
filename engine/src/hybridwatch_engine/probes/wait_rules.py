"""Which calls make the host wait for a CUDA device, where they were made, and how long they took.

A rule gets the arguments of a call beforehand. A read of one value, ``nonzero`` and every blocking
copy between host and device go through ``memcpy_and_sync``, which waits for the stream
(``c10/cuda/CUDAFunctions.h``, as in torch 2.13; pytorch#62092 lists what calls it). A tensor that
lives on the host is read without a wait.

``torch.Event`` is a static type of C, whose methods cannot be replaced, and torch's sync debug mode
does not report waits for events. So on a CUDA engine the name is replaced by a subclass that adds
nothing, as ``torch.cuda.Event`` is one. Only events made afterwards are of the subclass, so this
happens before the engine makes its own.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from threading import get_ident
from types import FrameType
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet


def name_site(caller: FrameType) -> str:
    """Name the line that a frame is at: ``file:function:line``, the file as it is imported."""
    code = caller.f_code
    return f"{_relative(code.co_filename)}:{code.co_qualname}:{caller.f_lineno}"


@cache
def _relative(file: str) -> str:
    """Name a file by its path of import, which is the same on every machine."""
    path = PurePath(file)
    folders = [PurePath(folder) for folder in sys.path if folder]
    inside = [path.relative_to(folder) for folder in folders if path.is_relative_to(folder)]
    return str(min(inside, key=lambda found: len(found.parts), default=PurePath(path.name)))


_IS_HEAP_TYPE = 1 << 9
"""``Py_TPFLAGS_HEAPTYPE``: a type whose attributes can be set."""


@cache
def watchable_events() -> PatchSet:
    """The patch, made once per process."""
    import torch

    return PatchSet(Patch(torch, "Event", _subclass))


def can_be_watched(kind: type) -> bool:
    """Whether methods of a type can be replaced."""
    return bool(kind.__flags__ & _IS_HEAP_TYPE)


def _subclass(original: Any) -> Any:
    return type("Event", (original,), {"__module__": "torch", "__doc__": original.__doc__})


class WaitTimes:
    """Waits of the thread that makes the steps; those of other threads hold no step up."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self._waited_ns: list[int] = []
        self._spans_ns: list[tuple[int, int]] = []
        self._sites: Counter[str] = Counter()
        self._times_ns: Counter[str] = Counter()
        self._kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._untimed = 0
        self._others, self._others_ns = 0, 0
        self._thread = 0

    def begin_step(self, now_ns: int) -> None:
        """Begin a step of this thread: its waits from now on belong to it."""
        self._thread = get_ident()
        self.counts.append(0)
        self._waited_ns.append(0)
        self._spans_ns.append((now_ns, now_ns))

    def extend_step(self, now_ns: int) -> None:
        """Extend this thread's step until now."""
        if self.counts and get_ident() == self._thread:
            self._spans_ns[-1] = self._spans_ns[-1][0], now_ns

    def add(self, site: str, kind: str, duration_ns: int | None, number: int = 1) -> None:
        """Count waits of this thread.

        Args:
            site: Name of the line that waited.
            kind: What it waited for.
            duration_ns: How long; ``None`` if not known.
            number: How many waits.
        """
        if get_ident() != self._thread:
            self._others += number
            self._others_ns += duration_ns or 0
            return
        self.counts[-1] += number
        self._waited_ns[-1] += duration_ns or 0
        self._sites[site] += number
        self._times_ns[site] += duration_ns or 0
        self._kinds[site][kind] += number
        self._untimed += number if duration_ns is None else 0

    def summary(self) -> dict[str, Any]:
        """Everything, in seconds; the keys are explained at ``DeviceWaitsProbe.stop``."""
        return {
            "reads_per_step": self.counts,
            "sites": dict(self._sites.most_common()),
            "site_seconds": {site: time / 1e9 for site, time in self._times_ns.items()},
            "site_kinds": {site: dict(kinds) for site, kinds in self._kinds.items()},
            "wait_seconds_per_step": [time / 1e9 for time in self._waited_ns],
            "step_seconds": [(end - begin) / 1e9 for begin, end in self._spans_ns],
            "untimed": self._untimed,
            "other_threads": {"waits": self._others, "seconds": self._others_ns / 1e9},
        }


Rule = Callable[[Sequence[Any], Mapping[str, Any]], bool]


def reads_device(args: Sequence[Any], _kwargs: Mapping[str, Any]) -> bool:
    """Reading a tensor's values waits when they are on the device."""
    return bool(args[0].is_cuda)


def lists_device(args: Sequence[Any], _kwargs: Mapping[str, Any]) -> bool:
    """Reading many values is a copy, and nothing is copied of a tensor without any."""
    return bool(args[0].is_cuda) and args[0].numel() > 0


def finds_nonzero(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """``torch.nonzero(input=...)`` may name its tensor."""
    return bool((args[0] if args else kwargs["input"]).is_cuda)


def converts(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """``Tensor.to`` waits when it crosses between host and device, unless it is non-blocking.

    A non-blocking copy to the host gets pinned memory from torch.
    """
    source, *rest = args
    target = _device_type(kwargs.get("device", kwargs.get("other", rest[0] if rest else None)))
    if target not in {"cpu", "cuda"} or (target == "cuda") == source.is_cuda:
        return False
    return not _is_non_blocking(rest, kwargs) and source.numel() > 0


def uploads(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """``Tensor.cuda`` waits when the tensor is on the host, unless it is non-blocking."""
    source, *rest = args
    return not source.is_cuda and not _is_non_blocking(rest, kwargs) and bool(source.numel() > 0)


def fills(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """``Tensor.copy_`` waits when it crosses; a non-blocking one only into pageable memory.

    The driver returns from a copy into pageable memory when it is done, non-blocking or not (CUDA
    runtime API, "API synchronization behavior"). A copy out of pageable memory it stages in memory
    of its own, and returns before the device has it.
    """
    target = args[0]
    source = args[1] if len(args) > 1 else kwargs.get("src", kwargs.get("other"))
    if source is None or target.is_cuda == source.is_cuda or not target.numel():
        return False
    if not _is_non_blocking(args[2:], kwargs):
        return True
    return bool(source.is_cuda) and not target.is_pinned()


def waits(args: Sequence[Any], _kwargs: Mapping[str, Any]) -> bool:
    """An explicit wait waits, except for an event that was never recorded."""
    if not args:
        return True
    handle = getattr(args[0], "cuda_event", None)  # of torch.cuda.Event; torch.Event has an id
    return (getattr(args[0], "event_id", True) if handle is None else handle) != 0


def _device_type(target: Any) -> str | None:
    """Type of the device that ``Tensor.to`` was given; ``None`` when it was given a dtype."""
    if isinstance(target, str):
        return target.partition(":")[0]
    if isinstance(target, int):
        return "cuda"
    if hasattr(target, "device"):  # a tensor; its ``type`` is a method
        target = target.device
    kind = getattr(target, "type", None)
    return kind if isinstance(kind, str) else None


def _is_non_blocking(rest: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """``non_blocking`` by name, else the first truth value among what was given by place."""
    given = next((value for value in rest if isinstance(value, bool)), False)
    return bool(kwargs.get("non_blocking", given))
