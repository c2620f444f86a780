"""One engine in this process whose steps are made by hand, for what is measured step by step."""

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TextIO

from hybridwatch_engine.every_rank import every_rank

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
    """Steps of one batch in which every request gets a token.

    Attributes:
        seconds: Of each step, in order.
        tokens: That they gave, all requests together.
    """

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
    """Tell a person who waits."""
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
    """Start the engine; on a CPU its FULL graphs are replayed.

    Args:
        model: Folder of the model.
        rows: The largest batch that it will be given.
        more: Arguments that differ from those here, or come on top.

    Raises:
        RuntimeError: vLLM went on without our plugin.
    """
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
