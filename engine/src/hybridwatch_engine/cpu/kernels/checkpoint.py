"""Storing the state amid a prompt, as a prefix cache wants it from release 0.32.0 on.

Semantics are those of ``_store_prefill_checkpoint_kernel`` (``ops/ssd_checkpoint.py``), which a CPU
cannot launch: a row with a checkpoint leaves the convolution's inputs up to there and the scan's
state at the end of that chunk in a block of their own.
"""

from torch import Tensor


def store(
    offsets: Tensor,
    blocks: Tensor,
    chunks: Tensor,
    x: Tensor,
    conv_state: Tensor,
    chunk_states: Tensor,
    ssm_state: Tensor,
    starts: Tensor,
    state_len: int,
) -> None:
    """Store the checkpoint of every row that has one.

    Args:
        offsets: Tokens of each row before its checkpoint, (rows,); 0 for none.
        blocks: Block that gets it, (rows,).
        chunks: Chunk that ends there, (rows,).
        x: Inputs of the convolution, (channels, tokens).
        conv_state: (blocks, channels, at least ``state_len``).
        chunk_states: State at the end of every chunk.
        ssm_state: (blocks, ...).
        starts: First token of each row.
        state_len: Inputs that the convolution goes on from.
    """
    rows = zip(*(fact.tolist() for fact in (offsets, blocks, chunks)), strict=True)
    for start, (offset, block, chunk) in zip(starts.tolist(), rows, strict=False):
        if offset > 0:
            end = start + offset
            conv_state[block, :, :state_len] = x[:, end - state_len : end]
            ssm_state[block] = chunk_states[chunk]
