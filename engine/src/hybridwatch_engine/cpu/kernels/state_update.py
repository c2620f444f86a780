"""State update of a decode step, with one state slot a row or, for drafts, one a token.

Semantics are those of ``_selective_scan_update_kernel`` (``ops/mamba_ssm.py``) but for rows of the
null block, whose outputs are left as they are. Every state is read before one is stored: rows of
``all`` mode move from one slot to another, and the slot they leave is in the prefix cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from hybridwatch_engine.cpu.kernels.ending import Ending
from hybridwatch_engine.cpu.kernels.slots import column_slots, row_bounds


@dataclass(frozen=True, slots=True)
class Row:
    """A row that is worked on.

    Attributes:
        first: Its first token.
        length: Its tokens, at least one.
        source: Slot of the state it goes on from.
        targets: Slot in which the state after each token is stored; the null block for none.
    """

    first: int
    length: int
    source: int
    targets: Sequence[int]


def rows_of(
    sources: Tensor,
    targets: Tensor,
    accepted: Tensor | None,
    starts: Tensor | None,
    null_block: int,
) -> list[Row]:
    """The rows that have tokens and a state to go on from.

    Args:
        sources: Slots to read, (rows,) or (rows, columns); with ``accepted`` the column of the last
            accepted token is read, else the first.
        targets: Slots to write, likewise; with ``accepted`` one per token, else the first column
            takes the state after the last token.
        accepted: Tokens accepted after the previous step, (rows,).
        starts: Cumulated tokens of the rows, (rows + 1,); one token each when absent.
        null_block: Slot that belongs to nobody.
    """
    count = len(sources) if starts is None else len(starts) - 1
    columns = None if accepted is None else (accepted - 1).clamp(min=0)
    read = column_slots(sources[:count], columns).tolist()
    written = targets.unsqueeze(1) if targets.dim() == 1 else targets
    found = []
    for number, (first, length) in enumerate(row_bounds(count, starts)):
        if length == 0 or read[number] == null_block:
            continue
        if accepted is None:
            slots = [null_block] * (length - 1) + [int(written[number, 0])]
        else:
            slots = written[number, :length].tolist()
        found.append(Row(first, length, read[number], slots))
    return found


@dataclass(frozen=True, slots=True)
class Order:
    """The tokens of the rows in the order they are worked on: all first tokens, all second ones.

    The longest rows come first, so that the rows that go on are always the first ones.

    Attributes:
        tokens: Tokens of the batch in this order, (worked on,).
        counts: How many rows have a first token, a second one and so on.
        sources: Slot that each row goes on from, (rows,).
        places: Places in this order of the states that are stored.
        targets: Slots in which they are stored, likewise.
    """

    tokens: Tensor
    counts: list[int]
    sources: Tensor
    places: Tensor
    targets: Tensor

    @classmethod
    def of(cls, rows: Sequence[Row], null_block: int) -> "Order":
        """Put the tokens of rows in order."""
        longest_first = sorted(rows, key=lambda row: -row.length)
        tokens, slots, counts = [], [], []
        for place in range(longest_first[0].length):
            live = [row for row in longest_first if row.length > place]
            tokens += [row.first + place for row in live]
            slots += [row.targets[place] for row in live]
            counts.append(len(live))
        stored = [(place, slot) for place, slot in enumerate(slots) if slot != null_block]
        places, targets = torch.tensor(stored, dtype=torch.long).reshape(-1, 2).unbind(1)
        sources = torch.tensor([row.source for row in longest_first])
        return cls(torch.tensor(tokens), counts, sources, places, targets)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the tokens add to the states, in 32 bits; an axis of one stands for all of its kind.

    Heads are split by groups that share B and C.

    Attributes:
        decay: What is left of a state, (tokens, groups, heads, channels or 1, entries or 1).
        drive: Inputs times step size, (tokens, groups, heads, channels, 1).
        b: (tokens, groups, 1, 1, entries).
        c: (tokens, groups, 1, entries).
    """

    decay: Tensor
    drive: Tensor
    b: Tensor
    c: Tensor

    @classmethod
    def of(
        cls,
        x: Tensor,
        dt: Tensor,
        a: Tensor,
        b: Tensor,
        c: Tensor,
        *,
        bias: Tensor,
        softplus: bool,
    ) -> "Inputs":
        """Prepare all tokens at once.

        Args:
            x: (tokens, heads, channels).
            dt: Step sizes, (tokens, heads, channels or 1).
            a: (heads, channels, entries); what has been expanded is computed once.
            b: (tokens, groups, entries).
            c: Like ``b``.
            bias: Added to ``dt``, (heads, channels).
            softplus: Whether the step size is the softplus of the sum.
        """
        tokens, heads, channels = x.shape
        groups = b.shape[1]
        sizes = dt.float() + _once(bias).float()
        if softplus:
            sizes = functional.softplus(sizes)
        decay = torch.exp(sizes.unsqueeze(-1) * _once(_once(a), -2).float())
        drive = sizes * x.float()
        split = (tokens, groups, heads // groups)
        return cls(
            decay.view(*split, *decay.shape[2:]),
            drive.view(*split, channels, 1),
            b.float().reshape(tokens, groups, 1, 1, -1),
            c.float().unsqueeze(2),
        )


def _once(tensor: Tensor, dim: int = -1) -> Tensor:
    """The tensor with an axis of one where it was expanded."""
    return tensor.narrow(dim, 0, 1) if tensor.stride(dim) == 0 else tensor


def advance(states: Tensor, step: Inputs, order: Order) -> Tensor:
    """Run the tokens through the recurrence and store their states.

    Args:
        states: Cache, (slots, heads, channels, entries), changed at the targets and nowhere else.
        step: Inputs of the tokens, in order.
        order: Where they come from and where their states go.

    Returns:
        What the states say of each token, in order, (tokens, heads, channels), in 32 bits.
    """
    heads, channels, entries = states.shape[1:]
    groups = step.b.shape[1]
    passed = states.new_empty((sum(order.counts), *states.shape[1:]), dtype=torch.float)
    split = passed.view(-1, groups, heads // groups, channels, entries)
    held = states.index_select(0, order.sources).float().view(-1, *split.shape[1:])
    parts = (part.split(order.counts) for part in (split, step.decay, step.drive, step.b))
    for into, decay, drive, b in zip(*parts, strict=True):
        torch.mul(held[: len(into)], decay, out=into)
        held = into.addcmul_(drive, b)
    states.index_copy_(0, order.targets, passed.index_select(0, order.places).to(states.dtype))
    # The smaller matrix first: several times faster than the other way round.
    return (step.c @ split.flatten(2, 3).mT).view(-1, heads, channels)


def update(
    states: Tensor,
    step: Inputs,
    order: Order,
    ending: Ending,
    out: Tensor,
) -> None:
    """The state update of a decode step.

    Args:
        states: Cache, (slots, heads, channels, entries).
        step: Inputs of the tokens, in order.
        order: Where they come from and where their states go.
        ending: What goes past the states, in order.
        out: Of the batch, (tokens, heads, channels); changed at the tokens worked on.
    """
    said = ending.apply(advance(states, step, order))
    out.index_copy_(0, order.tokens, said.to(out.dtype))
