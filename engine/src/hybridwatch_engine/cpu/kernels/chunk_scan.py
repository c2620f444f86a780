"""Chunked scan of a prefill step that also returns the state at the end of every chunk.

Within a chunk the recurrence is a masked matrix product, between chunks it is a recurrence of
states (Dao and Gu, "Transformers are SSMs", 2024, section 6). A short chunk is padded by tokens
with a step size of zero, which leave a state as it is. The Triton path is
``_mamba_chunk_scan_combined_fwd`` (``ops/ssd_combined.py``).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Chunks:
    """The tokens of a step, cut into chunks of one row each.

    Attributes:
        tokens: Token of each place, (chunks, longest); any token where there is none.
        real: Whether there is one, likewise.
        rows: Row of each chunk, (chunks,).
    """

    tokens: Tensor
    real: Tensor
    rows: list[int]

    @classmethod
    def cut(cls, bounds: Tensor, rows: Tensor) -> "Chunks":
        """Chunks by their cumulated lengths, (chunks + 1,), and their rows, (chunks,)."""
        first, lengths = bounds[:-1].long().unsqueeze(1), bounds.diff().unsqueeze(1)
        places = torch.arange(int(lengths.max()))
        real = places < lengths
        return cls(torch.where(real, first + places, 0), real, rows.tolist())


@dataclass(frozen=True, slots=True)
class ScanInputs:
    """Contributions of the tokens to the states, in 32 bits; tokens first.

    Attributes:
        log_decay: Logarithm of what a token leaves of a state, (tokens, heads), in 64 bits: sums of
            many are subtracted from each other.
        drive: Inputs times step size, (tokens, heads, channels).
        b: (tokens, groups, entries).
        c: Like ``b``.
    """

    log_decay: Tensor
    drive: Tensor
    b: Tensor
    c: Tensor

    @classmethod
    def of(cls, x: Tensor, sizes: Tensor, a: Tensor, b: Tensor, c: Tensor) -> "ScanInputs":
        """Prepare all tokens.

        Args:
            x: (tokens, heads, channels).
            sizes: Step sizes, (tokens, heads).
            a: Rate of decay, (heads,).
            b: (tokens, groups, entries).
            c: Like ``b``.
        """
        drive = sizes.unsqueeze(-1) * x.float()
        return cls(sizes.double() * a.double(), drive, b.float(), c.float())


def step_sizes(
    dt: Tensor, bias: Tensor | None, *, softplus: bool, limits: tuple[float, float]
) -> Tensor:
    """Step sizes of the tokens, (tokens, heads), in 32 bits."""
    sizes = dt.float()
    if bias is not None:
        sizes = sizes + bias.float()
    if softplus:
        sizes = functional.softplus(sizes)
    return sizes.clamp(*limits)


def scan(chunks: Chunks, inputs: ScanInputs, initial: Tensor | None) -> tuple[Tensor, Tensor]:
    """Run the recurrence over all rows.

    Args:
        chunks: How the tokens are cut; every token is in one chunk.
        inputs: What the tokens add.
        initial: State of each row before its first chunk, (rows, heads, channels, entries); zeros
            when absent.

    Returns:
        The states' output for each token, (tokens, heads, channels), and the states at chunk ends,
        (chunks, heads, channels, entries), both in 32 bits.
    """
    count, longest = chunks.tokens.shape
    heads, channels = inputs.drive.shape[1:]
    groups, entries = inputs.b.shape[1:]
    real = chunks.real
    summed = (inputs.log_decay[chunks.tokens] * real.unsqueeze(-1)).cumsum(1).transpose(1, 2)
    drive = (inputs.drive[chunks.tokens] * real[..., None, None]).permute(0, 2, 1, 3)
    b = inputs.b[chunks.tokens].transpose(1, 2)
    c = inputs.c[chunks.tokens].transpose(1, 2)

    # (chunks, groups, heads of a group, ...) wherever B or C meets the heads.
    split = (count, groups, heads // groups)
    to_end = torch.exp(summed[..., -1:] - summed).float().unsqueeze(-1)
    added = torch.einsum(
        "kghtp,kgtn->kghpn", (drive * to_end).reshape(*split, longest, channels), b
    )
    before, after = _pass_states(
        added.reshape(count, heads, channels, entries),
        torch.exp(summed[..., -1]).float(),
        chunks.rows,
        initial,
    )
    later = torch.ones(longest, longest, dtype=torch.bool).triu(1)
    between = (summed.unsqueeze(-1) - summed.unsqueeze(-2)).float().masked_fill_(later, -torch.inf)
    meet = (c @ b.transpose(-1, -2)).unsqueeze(2) * between.exp_().view(*split, longest, longest)
    y = meet.flatten(1, 2) @ drive
    from_start = torch.exp(summed).float().unsqueeze(-1)
    y += (c.unsqueeze(2) @ before.view(*split, channels, entries).mT).flatten(1, 2) * from_start
    out = torch.empty_like(inputs.drive)
    out[chunks.tokens[real]] = y.transpose(1, 2)[real]
    return out, after


def _pass_states(
    added: Tensor, decay: Tensor, rows: list[int], initial: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The states before and after each chunk.

    Args:
        added: What each chunk adds, (chunks, heads, channels, entries).
        decay: What each chunk leaves of a state, (chunks, heads).
        rows: Row of each chunk.
        initial: State of each row before its first chunk.
    """
    before, after = torch.empty_like(added), torch.empty_like(added)
    for chunk, row in enumerate(rows):
        if chunk and rows[chunk - 1] == row:
            before[chunk] = after[chunk - 1]
        else:
            before[chunk] = 0 if initial is None else initial[row]
        torch.addcmul(added[chunk], before[chunk], decay[chunk, :, None, None], out=after[chunk])
    return before, after
