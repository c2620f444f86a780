"""Measure the memory model's exact match and what damage to its Mamba state does to it.

    PYTHONPATH=src:lab/src:models/tiny-hybrid <engine python> models/tiny-memory-moe/measure.py vllm

The parts are `transformers` and `vllm` (greedy answers of either, the latter from a real engine on
CPU that serves repeated listings from its prefix cache) and `damage` (transformers, with the Mamba
states changed after the first cached block, and with the experts' output taken away). The figures
go to the model's `evaluation.json`, where each part keeps the others'.
"""

import argparse
import importlib.metadata
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from evaluate import record
from memory.rows import BLOCK, far_documents

from hybridwatch.measurement.accuracy.embedded import (
    TASKS_DIRECTORY,
    EmbeddedQuestion,
    read_documents,
)
from hybridwatch_lab.embedded_tasks import STATE_RECALL_FILE

HERE = Path(__file__).parent
MAX_NEW_TOKENS = 8
FAR_DOCUMENTS = 100
DISTANCES = (50, 100, 150, 200, 250, 300)  # bytes from a value's first to the end of the prompt

Ask = Callable[[Sequence[str]], Sequence[str]]
Figures = dict[str, object]


def main() -> None:
    """Measure one part and write its figures."""
    parts = {"transformers": _transformers, "vllm": _vllm, "damage": _damage}
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("part", choices=parts)
    parser.add_argument("--model", type=Path, default=HERE)
    arguments = parser.parse_args()
    model: Path = arguments.model
    record(model / "evaluation.json", arguments.part, parts[arguments.part](model))


def _transformers(model: Path) -> Figures:
    import torch
    from recipe.answering import greedy_answers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_grad_enabled(False)
    loaded = AutoModelForCausalLM.from_pretrained(model).eval()
    tokenizer = AutoTokenizer.from_pretrained(model)
    figures = _scores(lambda prompts: greedy_answers(loaded, tokenizer, prompts, MAX_NEW_TOKENS))
    return {"version": importlib.metadata.version("transformers")} | figures


def _vllm(model: Path) -> Figures:
    """Ask everything twice: the second time the engine has every listing's blocks in its cache."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from vllm import LLM, SamplingParams

    engine = LLM(
        model=str(model),
        dtype="float32",
        enforce_eager=True,
        max_model_len=1024,
        enable_prefix_caching=True,
        mamba_cache_mode="align",
    )
    sampling = SamplingParams(temperature=0, max_tokens=MAX_NEW_TOKENS, stop=["\n"])
    cached: list[int] = []

    def ask(prompts: Sequence[str]) -> list[str]:
        outputs = engine.generate(list(prompts), sampling)
        cached[:] = [output.num_cached_tokens or 0 for output in outputs]
        return [output.outputs[0].text for output in outputs]

    figures = {"version": importlib.metadata.version("vllm-cpu")} | _scores(ask)
    again: Figures = {**_scores(ask), "prompts_with_cached_tokens": sum(map(bool, cached))}
    return figures | {"asked_again": again}


def _damage(model: Path) -> Figures:
    import torch
    from memory.damage import MISREADINGS, answers_after, experts_off
    from recipe.answering import greedy_answers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_grad_enabled(False)
    loaded = AutoModelForCausalLM.from_pretrained(model).eval()
    tokenizer = AutoTokenizer.from_pretrained(model)
    documents = read_documents(TASKS_DIRECTORY / STATE_RECALL_FILE)
    prompts = [document.prompt for document in documents]
    figures: Figures = {}
    for name, misread in MISREADINGS.items():
        answers = answers_after(loaded, misread, prompts, BLOCK, MAX_NEW_TOKENS)
        figures[name] = _score(documents, answers)
    with experts_off(loaded):
        answers = greedy_answers(loaded, tokenizer, prompts, MAX_NEW_TOKENS)
    return figures | {"experts_off": _score(documents, answers)}


def _scores(ask: Ask) -> Figures:
    """Return how many answers are right: of the evaluation, and of both kinds by distance."""
    evaluation = read_documents(TASKS_DIRECTORY / STATE_RECALL_FILE)
    documents = [*evaluation, *far_documents(FAR_DOCUMENTS)]
    answers = ask([document.prompt for document in documents])
    figures: Figures = {"state_recall": _score(evaluation, answers[: len(evaluation)])}
    for low, high in zip((0, *DISTANCES), DISTANCES, strict=False):
        pairs = [
            (document, answer)
            for document, answer in zip(documents, answers, strict=True)
            if low < _distance(document) <= high
        ]
        if pairs:
            figures[f"distance_{low + 1}_to_{high}"] = _score(*zip(*pairs, strict=True))
    return figures


def _score(documents: Sequence[EmbeddedQuestion], answers: Sequence[str]) -> dict[str, int]:
    right = sum(d.answer == answer for d, answer in zip(documents, answers, strict=True))
    return {"correct": right, "documents": len(documents)}


def _distance(document: EmbeddedQuestion) -> int:
    """Return the bytes from the first byte of the asked value to the end of the prompt."""
    question = document.prompt[-3:]
    return len(document.prompt) - document.prompt.index(question) - len(question)


if __name__ == "__main__":
    main()
