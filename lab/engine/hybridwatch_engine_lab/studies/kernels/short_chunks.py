"""``python -m hybridwatch_engine_lab.studies.kernels.short_chunks``: Triton's convolution.

The Triton kernel of the installed vLLM, interpreted, on prompts in ``all`` mode that go on in short
chunks. Each input is the number of its token, so a conv state shows which tokens it remembers.
Prints what each block should remember and does. The exit status is 0 when a block remembers other
tokens than its last ones, and 1 when none does.
"""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final

from hybridwatch_engine.cpu.triton_interpreter import interpret_triton

if TYPE_CHECKING:
    from torch import Tensor

BLOCK: Final = 16
PAST: Final = 3
UNSEEN: Final = -1
OTHERS: Final = 1000
"""Added to the numbers of a second prompt's tokens."""

CHUNKS: Final = {
    "two tokens that begin a block": ((BLOCK, 2),),
    "a block ends two tokens into the chunk": ((0, 5), (BLOCK - 2, BLOCK + 4)),
    "eight tokens over a block's end": ((BLOCK - 4, 8),),
}
"""Tokens computed before and tokens of the chunk, of each prompt of a batch."""


def build_call(rows: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """The call of a batch of chunks, with right states before them."""
    import torch

    computed, lengths = zip(*rows, strict=True)
    last = [(before + length - 1) // BLOCK for before, length in rows]
    table = torch.arange(1, 1 + len(rows) * (max(last) + 1)).reshape(len(rows), -1).int()
    states = torch.full((table.numel() + 1, 1, PAST), float(UNSEEN))
    tokens = []
    for row, (before, length) in enumerate(rows):
        numbers = torch.arange(before + length, dtype=torch.float) + row * OTHERS
        tokens.append(numbers[before:])
        if before:
            states[table[row, (before - 1) // BLOCK], 0] = numbers[before - PAST : before]
    starts = torch.tensor([0, *lengths]).cumsum(0)
    return {
        "x": torch.cat(tokens).unsqueeze(0),
        "weight": torch.ones(1, PAST + 1),
        "bias": None,
        "activation": None,
        "conv_states": states,
        "query_start_loc": starts.int(),
        "cache_indices": table,
        "has_initial_state": torch.tensor([before > 0 for before in computed]),
        "block_idx_first_scheduled_token": torch.tensor([c // BLOCK for c in computed]).int(),
        "block_idx_last_scheduled_token": torch.tensor(last).int(),
        "initial_state_idx": torch.tensor([max(0, (c - 1) // BLOCK) for c in computed]).int(),
        "num_computed_tokens": torch.tensor(computed).int(),
        "block_size_to_align": BLOCK,
    }


def remembered(call: dict[str, Any], kernel: Any) -> "Tensor":
    """The tokens that each block of each prompt remembers after a call, (prompts, blocks, past)."""
    states = call["conv_states"].clone()
    kernel(**{**call, "conv_states": states})
    blocks: Tensor = states[call["cache_indices"].long(), 0]
    return blocks


def main() -> int:
    """Print the table."""
    interpret_triton()
    with redirect_stdout(sys.stderr):  # vLLM talks on standard output
        from hybridwatch_engine_lab.studies.kernels import plain
        from hybridwatch_engine_lab.studies.kernels.interpreted import triton_kernels

        triton, wrong = triton_kernels()["conv_prefill"], 0
        lines = [f"{'chunk':<40} {'block':>5}  {'should remember':<24} remembers"]
        for name, rows in CHUNKS.items():
            call = build_call(rows)
            found, expected = remembered(call, triton), remembered(call, plain.conv_prefill)
            for block in range(found.shape[1]):
                holds, should = found[-1, block].int().tolist(), expected[-1, block].int().tolist()
                if UNSEEN not in should:
                    mark = "  WRONG" if holds != should else ""
                    wrong += bool(mark)
                    lines.append(
                        f"{name:<40} {block:>5}  {should!s:<24} {holds!s:<24}{mark}".rstrip()
                    )
    sys.stdout.write("\n".join(lines) + f"\n{wrong} blocks wrong\n")
    return int(wrong == 0)


if __name__ == "__main__":
    sys.exit(main())
