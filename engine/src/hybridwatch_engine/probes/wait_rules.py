"""Which calls of torch make the host wait for a CUDA device: a rule for each, asked beforehand.

A rule gets the arguments of a call. A read of one value, ``nonzero`` and every blocking copy
between host and device go through ``memcpy_and_sync``, which waits for the stream
(``c10/cuda/CUDAFunctions.h``, as in torch 2.13; pytorch#62092 lists what calls it). A tensor that
lives on the host is read without waiting for anybody.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    """``Tensor.to`` waits when it crosses between host and device, unless told not to block.

    A copy to the host that shall not block gets pinned memory from torch.
    """
    source, *rest = args
    target = _device_type(kwargs.get("device", kwargs.get("other", rest[0] if rest else None)))
    if target not in {"cpu", "cuda"} or (target == "cuda") == source.is_cuda:
        return False
    return not _is_told_not_to_block(rest, kwargs) and source.numel() > 0


def uploads(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """``Tensor.cuda`` waits when the tensor is on the host, unless told not to block."""
    source, *rest = args
    return (
        not source.is_cuda and not _is_told_not_to_block(rest, kwargs) and bool(source.numel() > 0)
    )


def fills(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """``Tensor.copy_`` waits when it crosses; without blocking only into pageable memory.

    The driver returns from a copy into pageable memory when it is done, whatever it was asked
    (CUDA runtime API, "API synchronization behavior"). One out of pageable memory it takes over
    into memory of its own, and returns before the device has it.
    """
    target = args[0]
    source = args[1] if len(args) > 1 else kwargs.get("src", kwargs.get("other"))
    if source is None or target.is_cuda == source.is_cuda or not target.numel():
        return False
    if not _is_told_not_to_block(args[2:], kwargs):
        return True
    return bool(source.is_cuda) and not target.is_pinned()


def waits(args: Sequence[Any], _kwargs: Mapping[str, Any]) -> bool:
    """A wait is one; but for an event that nobody has recorded."""
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


def _is_told_not_to_block(rest: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """``non_blocking`` by name, else the first truth value among what was given by place."""
    given = next((value for value in rest if isinstance(value, bool)), False)
    return bool(kwargs.get("non_blocking", given))
