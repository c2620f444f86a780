"""The drafts of the tiny hybrid model: what they say of themselves, and that they fit their target.

Their weights are read without torch: a safetensors file begins with a JSON header of known length.
"""

import json
from pathlib import Path
from typing import Any

import pytest

MODELS = Path(__file__).parents[4] / "models"
TARGET = MODELS / "tiny-hybrid"
EAGLE, LLAMA = MODELS / "tiny-hybrid-eagle", MODELS / "tiny-llama-draft"
FOLDERS = {"eagle": EAGLE, "draft_model": LLAMA, "ngram": EAGLE}

TASKS = ("recall", "shared_recall", "word_problems")
MODES = ("none", "align", "all")
ACCEPTED_ENOUGH = 1.5
DRAFTS = 3
ROUNDING = 0.1  # without an engine, drafts beyond the end of a text are not counted

LARGEST = {EAGLE: 2_000_000, LLAMA: 1_000_000}  # bytes
LARGEST_TOGETHER = 22_000_000


def read(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


def shapes(folder: Path) -> dict[str, list[int]]:
    with (folder / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}


def disagreements(method: str, figures: dict[str, Any]) -> list[str]:
    """Kinds of text on which an engine accepts otherwise than the drafts agree without one."""
    alone, engine = figures[f"{method} transformers"], figures[f"{method} none"]
    return [
        kind
        for kind in set(alone) - {"version"}
        if abs(alone[kind] - engine[kind]["mean_acceptance_length"]) > ROUNDING
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", FOLDERS)
def test_target_accepts_drafts_and_says_what_it_says_alone(method: str, mode: str) -> None:
    figures = read(FOLDERS[method], "evaluation.json")[f"{method} {mode}"]
    for task in TASKS:
        assert ACCEPTED_ENOUGH <= figures[task]["mean_acceptance_length"] <= 1 + DRAFTS, task
    for kind in set(figures) - {"version"}:
        assert figures[kind]["equal"] == figures[kind]["texts"], kind


@pytest.mark.parametrize("method", ["eagle", "draft_model"])
def test_engine_drafts_what_was_trained(method: str) -> None:
    assert disagreements(method, read(FOLDERS[method], "evaluation.json")) == []


def test_draft_that_saw_what_follows_would_be_noticed() -> None:
    """A head trained with an attention mask that hid nothing agreed with 3.5 tokens a step."""
    engine = {"recall": {"mean_acceptance_length": 1.29}}
    figures = {"eagle transformers": {"version": "5", "recall": 3.53}, "eagle none": engine}
    assert disagreements("eagle", figures) == ["recall"]


@pytest.mark.parametrize("folder", [EAGLE, LLAMA], ids=lambda folder: folder.name)
def test_draft_fits_its_target(folder: Path) -> None:
    target, draft = read(TARGET, "config.json"), read(folder, "config.json")
    assert draft["vocab_size"] == target["vocab_size"]
    assert draft["max_position_embeddings"] == target["max_position_embeddings"]
    assert draft["num_key_value_heads"] == target["num_key_value_heads"]
    head_size = target["hidden_size"] // target["num_attention_heads"]
    assert draft["head_dim"] == head_size
    assert draft["rope_theta"] == draft["rope_parameters"]["rope_theta"]
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (folder / name).read_bytes() == (TARGET / name).read_bytes()


def test_eagle_head_has_what_vllm_loads_and_leaves_the_rest_to_its_target() -> None:
    hidden = read(TARGET, "config.json")["hidden_size"]
    weights = shapes(EAGLE)
    assert weights["fc.weight"] == [hidden, 2 * hidden]
    assert not {"layers.0.input_layernorm.weight", "embed_tokens.weight", "lm_head.weight"} & set(
        weights
    )


def test_llama_has_at_least_two_layers() -> None:
    assert read(LLAMA, "config.json")["num_hidden_layers"] >= 2
    assert "model.layers.1.self_attn.q_proj.weight" in shapes(LLAMA)


def test_models_stay_small_enough_to_ship() -> None:
    sizes = {path.parent: path.stat().st_size for path in MODELS.glob("*/model.safetensors")}
    assert all(sizes[folder] < limit for folder, limit in LARGEST.items())
    assert sum(sizes.values()) < LARGEST_TOGETHER
