"""``python -m hybridwatch_engine.cpu.kernels.speed MODEL``: decode steps, ours over compiled.

Runs the decode path of the model's Mamba layers (projections, convolution, state update, norm) with
the kernels in and out, one after the other in every round, on batches of requests of

- one token in ``all`` mode, against the compiled kernels with one slot a request;
- one token and three drafts, against the compiled kernels in the same call, which take their time
  for it although what they store is wrong (``fault``).

Prints a table; the exit status is 1 when a ratio is above the limit.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import MISSING, dataclass, fields
from statistics import median
from typing import Any, Final

LIMIT: Final = 3.0
BATCHES: Final = (1, 4, 8)
DRAFTS: Final = 3
ROUNDS, STEPS = 15, 30
COLUMNS: Final = 4
"""Blocks of a request in ``all`` mode."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Microseconds of a decode step of one Mamba layer, by processor time of this thread.

    Attributes:
        what: Which step.
        batch: Requests in it.
        compiled: Median over the rounds, with the compiled kernels.
        ours: Likewise, with the kernels in.
        ratio: Median over the rounds of ours over compiled.
    """

    what: str
    batch: int
    compiled: float
    ours: float
    ratio: float


def metadata(mode: str, batch: int, drafts: int) -> Any:
    """What vLLM's builder tells the layers about a step of decodes only."""
    import torch
    from vllm.v1.attention.backends.mamba2_attn import Mamba2AttentionMetadata

    tokens, columns = 1 + drafts, COLUMNS if mode == "all" else 1 + drafts
    slots = torch.arange(1, batch * columns + 1, dtype=torch.int32).view(batch, columns)
    zeros = torch.zeros(batch, dtype=torch.int32)
    given: dict[str, Any] = {
        "num_decodes": batch,
        "num_reqs": batch,
        "num_decode_tokens": batch * tokens,
        "num_prefills": 0,
        "num_prefill_tokens": 0,
        "state_indices_tensor_d": slots,
        "block_idx_last_scheduled_token": zeros,
        "block_idx_last_computed_token": zeros,
    }
    if drafts:
        given["query_start_loc_d"] = torch.arange(batch + 1, dtype=torch.int32) * tokens
        given["num_accepted_tokens"] = zeros + 2
    required = [f.name for f in fields(Mamba2AttentionMetadata) if f.default is MISSING]
    return Mamba2AttentionMetadata(**{**dict.fromkeys(required), **given})


class Layers:
    """The Mamba layers of a loaded model, with small caches of their own."""

    def __init__(self, worker: Any) -> None:
        from vllm.model_executor.layers.mamba.mamba_mixer2 import MambaMixer2

        self._config = worker.vllm_config
        modules = worker.model_runner.model.modules()
        self._layers = [module for module in modules if isinstance(module, MambaMixer2)]
        self._hidden = worker.model_config.get_hidden_size()

    def step(self, mode: str, batch: int, drafts: int) -> Callable[[], None]:
        """A decode step of all layers."""
        import torch
        from vllm.forward_context import set_forward_context

        batch_metadata = metadata(mode, batch, drafts)
        hidden = torch.randn(batch_metadata.num_decode_tokens, self._hidden)
        slots = 1 + batch * max(COLUMNS, 1 + drafts)
        caches = [self._caches(layer, slots, drafts) for layer in self._layers]
        named = {layer.prefix: batch_metadata for layer in self._layers}

        def run() -> None:
            with torch.inference_mode(), set_forward_context(named, self._config):
                for layer, cache in zip(self._layers, caches, strict=True):
                    layer.kv_cache = cache
                    layer.cache_config.mamba_cache_mode = mode
                    layer(hidden)

        return run

    def _caches(self, layer: Any, slots: int, drafts: int) -> tuple[Any, Any]:
        """Caches of a layer, in the layout that vLLM has by default."""
        import torch

        window, state = layer.get_state_shape()
        entries = layer.conv_kernel_size - 1 + drafts
        conv = torch.randn(slots, entries, max(window))
        return conv, torch.randn(slots, *state)

    def times(self, what: str, sides: Sequence[Callable[[], None]], batch: int) -> Timed:
        """Time the compiled side and ours, one after the other in every round."""
        from hybridwatch_engine.cpu.kernels.install import (
            speculation_kernels,
            speculative_state_update,
        )

        kernels, rounds = (speculation_kernels(), speculative_state_update()), []
        for _ in range(ROUNDS):
            compiled = _microseconds(sides[0]) / len(self._layers)
            for patches in kernels:
                patches.install()
            rounds.append((compiled, _microseconds(sides[1]) / len(self._layers)))
            for patches in kernels:
                patches.remove()
        compiled, ours = (median(side) for side in zip(*rounds, strict=True))
        return Timed(what, batch, compiled, ours, median(b / a for a, b in rounds))


def _microseconds(step: Callable[[], None]) -> float:
    """Processor time of this thread for one step: what others do on the machine does not count."""
    step()
    start = time.thread_time_ns()
    for _ in range(STEPS):
        step()
    return (time.thread_time_ns() - start) / STEPS / 1000


def measure(worker: Any) -> list[Timed]:
    """Time every step on a worker that has its model loaded."""
    layers, rows = Layers(worker), []
    for batch in BATCHES:
        one = [layers.step(mode, batch, 0) for mode in ("none", "all")]
        rows.append(layers.times("one token, all mode", one, batch))
        drafts = [layers.step("none", batch, DRAFTS)] * 2
        rows.append(layers.times(f"{DRAFTS} drafts", drafts, batch))
    return rows


def main(arguments: Sequence[str]) -> int:
    """Load the model and print the table."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_engine.cpu.kernels.speed")
    parser.add_argument("model", help="folder of the model")
    options = parser.parse_args(arguments)
    os.environ.pop("HYBRIDWATCH_ENGINE", None)  # or the plugin would put the kernels in
    # One thread and one process, so that a thread's processor time is the step's.
    os.environ |= {
        "OMP_NUM_THREADS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with redirect_stdout(sys.stderr):  # vLLM talks on standard output
        from vllm import LLM

        engine = LLM(
            options.model, dtype="float32", enforce_eager=True, max_model_len=1024, max_num_seqs=8
        )
        (rows,) = engine.collective_rpc(measure)
    sys.stdout.write(f"{'step':<20} {'batch':>5} {'compiled us':>12} {'ours us':>8} {'ratio':>6}\n")
    for row in sorted(rows, key=lambda row: (row.what, row.batch)):
        times = f"{row.compiled:>12.0f} {row.ours:>8.0f} {row.ratio:>6.2f}"
        sys.stdout.write(f"{row.what:<20} {row.batch:>5} {times}\n")
    worst = max(row.ratio for row in rows)
    sys.stdout.write(f"largest ratio {worst:.2f}, limit {LIMIT:.2f}\n")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
