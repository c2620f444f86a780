"""One engine in this process whose steps are made by hand, in several forms in turn.

A form is a set of patches that goes in for a stretch of steps and comes out again. Every other
round goes through the forms backwards, so whatever drifts hits all of them alike.
"""

import json
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, TextIO

from hybridwatch_engine.connections import every_rank
from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.probes.host_sync import HostSyncProbe

RESAMPLES: Final = 2000
CONFIDENCE: Final = 0.95
_SEED: Final = 20260522


@dataclass(frozen=True, slots=True)
class RatioInterval:
    """The median over rounds, and the interval that would hold it in 95 of 100 repetitions."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """For JSON."""
        return {"ratio": self.value, "low": self.low, "high": self.high}


def paired_ratio(contender: Sequence[float], baseline: Sequence[float]) -> RatioInterval:
    """One side over the other, round by round, so that what drifts hits both alike.

    The interval is a percentile bootstrap of the median over rounds, drawn with a fixed seed.

    Raises:
        ValueError: There is no round, or one side has more rounds than the other.
    """
    ratios = [one / other for one, other in zip(contender, baseline, strict=True)]
    if not ratios:
        raise ValueError("expected at least one round, found none")
    rng = random.Random(_SEED)  # noqa: S311 - repeatable is what is wanted
    medians = sorted(median(rng.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    tail = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    return RatioInterval(median(ratios), medians[tail], medians[-1 - tail])


STEPS: Final = 30
PROMPT: Final = 8
"""Tokens of each prompt."""

SETTINGS: Final = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "HF_HUB_OFFLINE": "1",
}
SETTINGS_OF_CPU: Final = {
    "HYBRIDWATCH_ENGINE": '{"graph_replay": true}',
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
_SETTINGS_OF_CUDA: Final = {
    "HYBRIDWATCH_ENGINE": "{}",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",  # needs a compiler for CUDA (vllm#49497)
    "VLLM_USE_FLASHINFER_MOE_FP16": "0",  # the same, up to 0.22.1
    "VLLM_USE_V2_MODEL_RUNNER": "0",  # 0.32.0 would choose V2, which most patches do not reach
}


@dataclass(frozen=True, slots=True)
class StepStretch:
    """Steps of one batch in which every request gets a token."""

    seconds: tuple[float, ...]
    tokens: int

    @property
    def tokens_per_second(self) -> float:
        """Of all requests together."""
        return self.tokens / sum(self.seconds)


def own_answer() -> TextIO:
    """Standard output for the answer alone: vLLM and its libraries then talk on standard error."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answer


def give(answer: TextIO, content: Mapping[str, Any]) -> None:
    """Answer with one JSON object, on one line.

    What takes minutes answers again with each part of it: a study that has to be ended has not
    measured for nothing, and the last line is all that it found.
    """
    answer.write(json.dumps(content) + "\n")
    answer.flush()


def say(text: str) -> None:
    """Print progress."""
    sys.stderr.write(text + "\n")


def has_cuda() -> bool:
    """Whether torch has a device here that is used through ``torch.cuda``."""
    import torch

    return bool(torch.cuda.is_available())


def device_name() -> str:
    """What the engine runs on: the GPU's name, or ``cpu``."""
    import torch

    return str(torch.cuda.get_device_name()) if has_cuda() else "cpu"


def start(model: str, rows: int, more: Mapping[str, Any]) -> Any:
    """Start the engine; on a CPU its FULL graphs are replayed."""
    own = _SETTINGS_OF_CUDA if has_cuda() else SETTINGS_OF_CPU
    for name, value in {**SETTINGS, **own}.items():
        os.environ.setdefault(name, value)
    from vllm import LLM

    drafts = (more.get("speculative_config") or {}).get("num_speculative_tokens", 0)
    batches = {rows, *(2**power for power in range(rows.bit_length()))}
    sizes = sorted(batch * (1 + drafts) for batch in batches)
    graphs = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": sizes}
    arguments: dict[str, Any] = {
        "dtype": "auto" if has_cuda() else "float32",
        "max_model_len": 1024,
        "max_num_seqs": max(16, rows),
        "max_num_batched_tokens": max(2048, rows * PROMPT),  # one step for all prompts
        "compilation_config": graphs,
        "enable_prefix_caching": False,
        "disable_log_stats": True,
    }
    engine = LLM(model=model, **{**arguments, **more}).llm_engine
    if not every_rank().in_place:  # vLLM logs what went wrong with a plugin, and starts
        raise RuntimeError("vLLM has not loaded the plugin hybridwatch; its log says why")
    return engine


def stretch(engine: Any, name: str, rows: int, steps: int = STEPS) -> StepStretch:
    """Let a batch come and go; the step of the prompts is left out, and so is the last.

    Where the engine schedules ahead, its first steps give nothing yet, and the last may hold fewer
    requests.
    """
    from vllm import SamplingParams, TokensPrompt

    sampling = SamplingParams(temperature=0.0, max_tokens=steps + 2, ignore_eos=True)
    for row in range(rows):
        prompt = TokensPrompt(prompt_token_ids=[97 + row % 26] * PROMPT)
        engine.add_request(f"{name}-{row}", prompt, sampling)
    seconds, totals, tokens_by_request = [], [], dict[str, int]()
    while engine.has_unfinished_requests():
        begin = time.perf_counter()
        outputs = engine.step()
        seconds.append(time.perf_counter() - begin)
        tokens_by_request |= {
            output.request_id: len(output.outputs[0].token_ids) for output in outputs
        }
        totals.append(sum(tokens_by_request.values()))
    prompts = next(nth for nth, tokens in enumerate(totals) if tokens)
    return StepStretch(tuple(seconds[prompts + 1 : -1]), totals[-2] - totals[prompts])


Forms = Mapping[str, PatchSet]
"""By name; one without patches is the engine as it is."""


def time_stretches(
    engine: Any, forms: Forms, rows: int, rounds: int
) -> dict[str, list[StepStretch]]:
    """Steps of each form, a stretch for each round; one more before them warms up."""
    found: dict[str, list[StepStretch]] = {name: [] for name in forms}
    for number in range(-1, rounds):
        for name in forms if number % 2 else reversed(list(forms)):
            forms[name].install()
            try:
                made = stretch(engine, f"{number}-{name}", rows)
            finally:
                forms[name].remove()
            if number >= 0:
                found[name].append(made)
    return found


def count_syncs(engine: Any, forms: Forms, rows: int) -> dict[str, float]:
    """Host synchronisations per step of each form, over equally many steps of the same batch."""
    return {name: _syncs(engine, patches, name, rows) for name, patches in forms.items()}


def _syncs(engine: Any, patches: PatchSet, name: str, rows: int) -> float:
    probe = HostSyncProbe()
    patches.install()
    probe.start()
    try:
        stretch(engine, f"syncs-{name}", rows)
    finally:
        probed = probe.stop()
        patches.remove()
    # The last steps are the fewer requests of an engine that schedules ahead.
    counts = probed["reads_per_step"][:STEPS]
    return float(sum(counts) / len(counts))


def compute_speeds(found: Mapping[str, Sequence[StepStretch]]) -> dict[str, dict[str, float]]:
    """Of each form, medians over rounds: seconds of a step and tokens per second."""
    return {
        name: {
            "step_seconds": median(median(one.seconds) for one in stretches),
            "tokens_per_second": median(one.tokens_per_second for one in stretches),
        }
        for name, stretches in found.items()
    }


def step_time_ratio(
    found: Mapping[str, Sequence[StepStretch]], contender: str, baseline: str
) -> dict[str, float]:
    """How long a step of one form lasts against one of another, round by round."""
    of = {name: [median(one.seconds) for one in found[name]] for name in (contender, baseline)}
    return paired_ratio(of[contender], of[baseline]).to_json()
