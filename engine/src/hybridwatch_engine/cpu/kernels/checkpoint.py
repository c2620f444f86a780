"""Stores the state amid a prompt, for the prefix cache of release 0.32.0 and later.

Semantics are those of ``_store_prefill_checkpoint_kernel`` (``ops/ssd_checkpoint.py``), which a CPU
cannot launch: a row with a checkpoint leaves the convolution's inputs up to there and the scan's
state at the end of that chunk in a block of their own.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Where each row of a batch leaves a state amid its prompt; all of shape (rows,).

    Attributes:
        starts: First token of the row.
        offsets: Tokens of the row before its checkpoint; 0 for none.
        blocks: Block that gets it.
        chunks: Chunk that ends there.
    """

    starts: Tensor
    offsets: Tensor
    blocks: Tensor
    chunks: Tensor


def store(
    checkpoints: Checkpoints,
    x: Tensor,
    conv_state: Tensor,
    chunk_states: Tensor,
    ssm_state: Tensor,
    state_len: int,
) -> None:
    """Store the checkpoint of every row that has one.

    Args:
        checkpoints: Where.
        x: Inputs of the convolution, (channels, tokens).
        conv_state: (blocks, channels, at least ``state_len``).
        chunk_states: State at the end of every chunk.
        ssm_state: (blocks, ...).
        state_len: Inputs that the convolution goes on from.
    """
    facts = (checkpoints.offsets, checkpoints.blocks, checkpoints.chunks)
    rows = zip(*(fact.tolist() for fact in facts), strict=True)
    # The starts end with the end of the last row.
    for start, (offset, block, chunk) in zip(checkpoints.starts.tolist(), rows, strict=False):
        if offset > 0:
            end = start + offset
            conv_state[block, :, :state_len] = x[:, end - state_len : end]
            ssm_state[block] = chunk_states[chunk]
