"""State update of a decode step, with one state slot a row or, for drafts, one a token.

Semantics are those of ``_selective_scan_update_kernel`` (``ops/mamba_ssm.py``), except that outputs
of rows of the null block are left as they are. A row may write another slot than it reads, which in
``all`` mode is in the prefix cache and stays as it is; no row reads a slot that another writes,
since a written block has one owner.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from hybridwatch_engine.cpu.kernels.slots import Ending, column_slots, positions, row_bounds


@dataclass(frozen=True, slots=True)
class StateRow:
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
) -> list[StateRow]:
    """The rows that have tokens and a state to go on from.

    Args:
        sources: Slots to read, (rows,) or (rows, columns); with ``accepted`` the column of the last
            accepted token is read, else the first.
        targets: Slots to write, likewise; with ``accepted`` one per token, else the first column
            takes the state after the last token.
        accepted: Tokens accepted after the previous step, (rows,).
        starts: Cumulated tokens of the rows, (rows + 1,); one token each when absent.
        null_block: Slot that no request has.
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
        found.append(StateRow(first, length, read[number], slots))
    return found


@dataclass(frozen=True, slots=True)
class UpdateInputs:
    """Contributions of the tokens to the states, in 32 bits; an axis of one is broadcast.

    Heads are split by groups that share B and C.

    Attributes:
        decay: What is left of a state, (tokens, groups, heads, channels or 1, entries or 1).
        drive: Inputs times step size, (tokens, groups, heads, channels, 1).
        b: (tokens, groups, 1, 1, entries).
        c: (tokens, groups, entries, 1).
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
    ) -> "UpdateInputs":
        """Prepare all tokens at once.

        Args:
            x: (tokens, heads, channels).
            dt: Step sizes, like ``x``; what has been expanded over channels is computed once.
            a: (heads, channels, entries), likewise.
            b: (tokens, groups, entries).
            c: Like ``b``.
            bias: Added to ``dt``, (heads, channels).
            softplus: Whether the step size is the softplus of the sum.
        """
        tokens, heads, channels = x.shape
        groups = b.shape[1]
        sizes = _once(dt).float() + _once(bias).float()
        if softplus:
            sizes = functional.softplus(sizes)
        decay = torch.exp(sizes.unsqueeze(-1) * _once(_once(a), -2).float())
        drive = sizes * x.float()
        split = (tokens, groups, heads // groups)
        return cls(
            decay.view(*split, *decay.shape[2:]),
            drive.view(*split, channels, 1),
            b.float().reshape(tokens, groups, 1, 1, b.shape[2]),
            c.float().unsqueeze(-1),
        )


def _once(tensor: Tensor, dim: int = -1) -> Tensor:
    """The tensor with an axis of one where it was expanded."""
    return tensor.narrow(dim, 0, 1) if tensor.stride(dim) == 0 else tensor


def advance(
    states: Tensor, step: UpdateInputs, rows: Sequence[StateRow], null_block: int = 0
) -> Tensor:
    """Run rows of tokens through the recurrence and store their states.

    Row by row and token by token, since one state fits into a processor's cache and many do not.

    Args:
        states: Cache, (slots, heads, channels, entries), changed in place at the rows' targets.
        step: Inputs of all tokens.
        rows: Rows to work on.
        null_block: A target that is not stored.

    Returns:
        The states' output for each token, (tokens, heads, channels), in 32 bits; undefined for
        tokens of no row.
    """
    heads, channels, entries = states.shape[1:]
    groups = step.b.shape[1]
    split = (groups, heads // groups, channels, entries)
    scratch = states.new_empty(split, dtype=torch.float)
    output = scratch.new_empty((len(step.b), groups, heads // groups * channels, 1))
    parts = (step.decay, step.drive, step.b, step.c, output)
    tokens = list(zip(*(part.unbind() for part in parts), strict=True))
    for row in rows:
        held = states[row.source].view(split)
        for slot, (decay, drive, b, c, result) in zip(
            row.targets, tokens[row.first :], strict=False
        ):
            stored = states[slot].view(split)
            direct = slot != null_block and states.dtype is torch.float
            into = stored if direct else scratch
            held = torch.mul(held, decay, out=into).addcmul_(drive, b)
            torch.matmul(held.flatten(1, 2), c, out=result)
            if slot != null_block and not direct:
                stored.copy_(held)
    return output.view(-1, heads, channels)


def update(
    states: Tensor,
    step: UpdateInputs,
    rows: Sequence[StateRow],
    ending: Ending,
    out: Tensor,
    null_block: int = 0,
) -> None:
    """The state update of a decode step.

    Args:
        states: Cache, (slots, heads, channels, entries).
        step: Inputs of all tokens.
        rows: Rows to work on.
        ending: The part of the output that does not depend on states.
        out: (tokens, heads, channels); changed only at the tokens of the rows.
        null_block: Slot that no request has.
    """
    output = ending.apply(advance(states, step, rows, null_block))
    worked = sum(row.length for row in rows)
    if worked == len(out):
        out.copy_(output)
    else:
        tokens = positions((row.first, row.length) for row in rows)
        out[tokens] = output[tokens].to(out.dtype)
