"""State slots of batch rows, and the part of the output that follows the states."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, pairwise

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Ending:
    """The part of the output that does not depend on states.

    Attributes:
        x: Inputs, (tokens, heads, channels).
        skip: What of them goes straight to the output (``D``), (heads,) or (heads, channels).
        gate: The output is multiplied by its SiLU (``z``), like ``x``.
    """

    x: Tensor
    skip: Tensor | None
    gate: Tensor | None

    def apply(self, output: Tensor) -> Tensor:
        """Finish the states' output, (tokens, heads, channels) in 32 bits, in place."""
        if self.skip is not None:
            skip = self.skip if self.skip.dim() > 1 else self.skip.unsqueeze(-1)
            output.addcmul_(self.x.float(), skip.float())
        if self.gate is not None:
            output *= functional.silu(self.gate.float())
        return output


def column_slots(indices: Tensor, columns: Tensor | None) -> Tensor:
    """One state slot of each row, (rows,).

    Args:
        indices: Slots, (rows,) or (rows, columns).
        columns: Which column of each row; the first one when absent.
    """
    if indices.dim() == 1:
        return indices
    if columns is None:
        return indices[:, 0].contiguous()
    return indices.gather(1, columns.long().unsqueeze(1)).squeeze(1)


def move_states(cache: Tensor, sources: Tensor, targets: Tensor, null_block: int) -> None:
    """Copy the states of rows that go on in another slot.

    Args:
        cache: States, (slots, ...).
        sources: Slot of each row, (rows,).
        targets: Slot in which it goes on, likewise; nothing moves into the null block.
        null_block: Slot of no request.
    """
    moves = [
        (source, target)
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True)
        if source != target and null_block not in (source, target)
    ]
    if moves:
        before, after = torch.tensor(moves).unbind(1)
        cache.index_copy_(0, after, cache.index_select(0, before))


def row_bounds(rows: int, starts: Tensor | None) -> list[tuple[int, int]]:
    """First token and number of tokens of each row; one token a row without ``starts``.

    Args:
        rows: How many rows, padded ones included.
        starts: Cumulated lengths, (rows + 1,).
    """
    if starts is None:
        return [(row, 1) for row in range(rows)]
    bounds = starts.tolist()
    return [(first, after - first) for first, after in pairwise(bounds)]


def positions(spans: Iterable[tuple[int, int]]) -> Tensor:
    """The integers of spans (first, count), one span after the other."""
    places = chain.from_iterable(range(first, first + count) for first, count in spans)
    return torch.tensor(list(places), dtype=torch.long)


def repeated(values: Iterable[tuple[int, int]]) -> Tensor:
    """Each value as often as its count says."""
    copies = chain.from_iterable([value] * count for value, count in values)
    return torch.tensor(list(copies), dtype=torch.long)
