"""``python -m hybridwatch_engine_lab.studies.state_column``: where V2 looks for the state of a hit.

Model runner V2 remembers of each request in which column of the block table its Mamba state lies.
Of one that begins with a hit it works the column out, and columns are as wide as Mamba's blocks.
Calls the function of the installed vLLM for a hit of 46 Mamba blocks of 2,176 tokens, once where
attention has blocks as long and once where a cache group has blocks of 128 (the lengths of
vllm#53142). Prints one JSON object; the exit status is 0 when a column is another than the last
one of the hit, 1 when none is, and 2 for a release whose runner keeps no columns.
"""

import json
import sys
from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import Final

_MAMBA_BLOCK: Final = 2176
_SMALLEST: Final = {"equal blocks": _MAMBA_BLOCK, "a group of smaller blocks": 128}
_BLOCKS: Final = 46


def column(smallest: int) -> int:
    """The column that a request with a hit is given.

    Args:
        smallest: Tokens in a block of the cache group whose blocks are smallest: the length to
            which the engine sets ``cache_config.block_size``.
    """
    import torch
    from vllm.v1.worker.gpu.model_states.mamba_hybrid import MambaHybridModelState

    # Nothing of a state matters here but its columns.
    state = MambaHybridModelState.__new__(MambaHybridModelState)
    columns = torch.zeros(1, dtype=torch.int32)
    own = {
        "rope_state": None,
        "prompt_embeds_state": None,
        "_align_mode": True,
        "cache_config": SimpleNamespace(block_size=smallest, mamba_block_size=_MAMBA_BLOCK),
        "num_accepted_tokens_gpu": torch.zeros(1, dtype=torch.int32),
        "_mamba_state_idx_gpu": columns,
    }
    for name, value in own.items():
        setattr(state, name, value)
    state.add_request(0, SimpleNamespace(num_computed_tokens=_BLOCKS * _MAMBA_BLOCK))
    return int(columns[0])


def main() -> int:
    """Look, and say what was found."""
    with redirect_stdout(sys.stderr):  # vLLM talks on standard output
        import vllm

        try:
            found = {name: column(smallest) for name, smallest in _SMALLEST.items()}
        except (ImportError, AttributeError) as error:
            sys.stderr.write(f"{vllm.__version__} keeps no columns of its own: {error}\n")
            return 2
    right = _BLOCKS - 1
    sys.stdout.write(
        json.dumps({"release": vllm.__version__, "right": right, "columns": found}) + "\n"
    )
    return int(all(one == right for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
