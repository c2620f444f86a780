"""Collectives that a CPU engine lacks: gathering and scattering rows of unequal counts.

Mixture-of-experts layers of a data-parallel engine send every token to every rank and back. vLLM's
communicator for CPUs leaves the two operations out (``distributed/device_communicators``); gloo has
what they are made of.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet


def _gather(communicator: Any, rows: Any, sizes: Sequence[int] | None) -> Any:
    """All ranks' rows, in order of rank; every rank sends as many as the largest has."""
    import torch

    counts = list(sizes) if sizes is not None else [rows.shape[0]] * communicator.world_size
    padded = rows.new_zeros((max(counts), *rows.shape[1:]))
    padded[: rows.shape[0]] = rows
    received = [torch.empty_like(padded) for _ in counts]
    torch.distributed.all_gather(received, padded, group=communicator.cpu_group)
    return torch.cat([part[:count] for part, count in zip(received, counts, strict=True)])


def _all_gatherv(_: Callable[..., Any]) -> Callable[..., Any]:
    def all_gatherv(
        communicator: Any, input_: Any, dim: int = 0, sizes: list[int] | None = None
    ) -> Any:
        if dim != 0:
            raise NotImplementedError(f"expected dim 0, got {dim}")
        if isinstance(input_, list):
            return [_gather(communicator, rows, sizes) for rows in input_]
        return _gather(communicator, input_, sizes)

    return all_gatherv


def _reduce_scatterv(_: Callable[..., Any]) -> Callable[..., Any]:
    def reduce_scatterv(
        communicator: Any, input_: Any, dim: int = -1, sizes: list[int] | None = None
    ) -> Any:
        import torch

        rows = input_.movedim(dim, 0).contiguous()
        counts = sizes or [rows.shape[0] // communicator.world_size] * communicator.world_size
        # gloo scatters no sums of unequal parts, so each rank takes its part of the whole sum.
        torch.distributed.all_reduce(rows, group=communicator.cpu_group)
        mine = rows.split(list(counts))[communicator.rank_in_group]
        return mine.movedim(0, dim).contiguous()

    return reduce_scatterv


@cache
def collectives() -> PatchSet:
    """The operations, made once per process."""
    from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator

    return PatchSet(
        Patch(CpuCommunicator, "all_gatherv", _all_gatherv),
        Patch(CpuCommunicator, "reduce_scatterv", _reduce_scatterv),
    )
