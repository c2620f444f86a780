"""``python -m hybridwatch_engine.fix_cost MODEL``: what an applied fix costs in every engine step.

One engine in one process decodes a batch; the patches that would put a fix into a release that
lacks it go in and out of the running engine between short stretches of steps, off on on off, so
both see the same machine. Where the release has the fix the patches change nothing but the time.
Fixes that act when an engine starts cannot be measured so.
Prints one JSON object: for each fix the ratio of median step times with and without the patches.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from hybridwatch_engine.fixes.registry import FIXES

STEPS = 30
ROWS = 3
LIVE = [id_ for id_, fix in FIXES.items() if fix.apply and fix.header.switch == "live"]


def main() -> None:
    """Start the engine, measure the fixes, print."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_engine.fix_cost")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=60, help="stretches of each kind, per fix")
    parser.add_argument("--fix", action="append", choices=LIVE, help="this one; else all")
    parser.add_argument(
        "--engine",
        type=json.loads,
        default={},
        help="more of the engine's arguments, as JSON: speculative_config, mamba_cache_mode",
    )
    options = parser.parse_args()
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM talks on standard output
    engine = start(options.model, options.engine)
    ratios = compare(engine, options.fix or LIVE, options.rounds)
    answer.write(json.dumps(ratios, indent=2) + "\n")


def start(model: str, more: Mapping[str, Any]) -> Any:
    """An engine whose steps are made by hand.

    Args:
        model: Folder of the model.
        more: Arguments that differ from those here, or come on top.
    """
    from vllm import LLM

    sizes = [4, 8, 16]  # up to 16 for three requests with three drafts each
    graphs = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": sizes}
    arguments: dict[str, Any] = {
        "dtype": "float32",
        "max_model_len": 1024,
        "max_num_seqs": 16,
        "compilation_config": graphs,
        "enable_prefix_caching": False,
        "disable_log_stats": True,
    }
    return LLM(model=model, **{**arguments, **more}).llm_engine


def compare(engine: Any, fix_ids: Sequence[str], rounds: int) -> dict[str, float]:
    """Ratio of step times by fix id, and of nothing against nothing as ``none``."""
    makers = {fix_id: FIXES[fix_id].apply for fix_id in fix_ids}
    patches = {fix_id: make() for fix_id, make in makers.items() if make}
    return {name: ratio(engine, patches.get(name), rounds) for name in ("none", *patches)}


def ratio(engine: Any, patches: Any, rounds: int) -> float:
    """Median step time with the patches over that without."""
    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds):
        for applied in (False, True) if number % 2 else (True, False):
            if applied and patches is not None:
                patches.install()
            times[applied] += stretch(engine, f"{number}-{applied}")
            if patches is not None:
                patches.remove()
    sys.stderr.write(f"{len(times[True])} steps with, {len(times[False])} without\n")
    return median(times[True]) / median(times[False])


def stretch(engine: Any, name: str) -> list[float]:
    """Seconds of each decode step of one batch, the prompts' own step left out."""
    from vllm import SamplingParams, TokensPrompt

    told = SamplingParams(temperature=0.0, max_tokens=STEPS, ignore_eos=True)
    for row in range(ROWS):
        prompt = TokensPrompt(prompt_token_ids=[97 + row] * 24)
        engine.add_request(f"{name}-{row}", prompt, told)
    seconds = []
    while engine.has_unfinished_requests():
        begin = time.perf_counter()
        engine.step()
        seconds.append(time.perf_counter() - begin)
    return seconds[1:]


if __name__ == "__main__":
    main()
