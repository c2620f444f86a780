"""The embedded models: what a shipped model's own record of its evaluation must say."""

import json
from pathlib import Path

import pytest

from hybridwatch.measurement.accuracy.embedded import EVALUATION_COUNT, EVALUATION_FILES

MODELS = Path(__file__).parents[4] / "models"
GOOD_ENOUGH = 0.95


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
@pytest.mark.parametrize("model", ["tiny-hybrid", "tiny-moe-hybrid"])
def test_model_answers_every_task(model: str, engine: str) -> None:
    text = (MODELS / model / "evaluation.json").read_text(encoding="utf-8")
    figures = json.loads(text)[engine]
    for name in EVALUATION_FILES:
        assert figures[Path(name).stem]["documents"] == EVALUATION_COUNT
    for task in set(figures) - {"version"}:
        assert figures[task]["correct"] >= GOOD_ENOUGH * figures[task]["documents"], task


def test_moe_model_needs_its_experts_and_uses_all_of_them() -> None:
    text = (MODELS / "tiny-moe-hybrid" / "evaluation.json").read_text(encoding="utf-8")
    figures = json.loads(text)["experts"]
    assert figures["whole"]["word_problems"] >= GOOD_ENOUGH * figures["documents"]
    assert figures["experts_off"]["word_problems"] < 0.8 * figures["documents"]
    assert len(figures["routed_share"]) == 4
    assert min(share for layer in figures["routed_share"] for share in layer) > 0.05
