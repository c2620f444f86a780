"""The embedded tasks: what a document promises, and that the shipped files are what is made."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.measurement.accuracy.embedded import (
    TASKS_DIRECTORY,
    EmbeddedQuestion,
    read_documents,
)
from hybridwatch_lab import embedded_tasks as embedded
from hybridwatch_lab.embedded_tasks import EVALUATION_COUNT, EVALUATION_FILES

PAIR = re.compile(r"^([A-Z]\d)=([a-z]+)$", re.MULTILINE)
PROBLEM = re.compile(
    r"Q: (?P<name>\w+) has (?P<start>\d+)(?: \w+ of (?P<content>\d+))? (?P<thing>\w+)"
    r"(?P<changes>.*)\. How many (?P=thing) does (?P=name) have\?\nA:"
)
CHANGE = re.compile(r"(?: and |, then )(\D+) (\d+)( more)?")
STEP = re.compile(r"(\d+)([-+*])(\d+)=(\d+)")

RECALL = embedded.recall_documents(400, seed=5)
SHARED = embedded.shared_recall_documents(400, seed=5)
PROBLEMS = embedded.word_problem_documents(400, seed=5)


def stated_result(prompt: str) -> int:
    """Work a problem out from its story alone."""
    story = PROBLEM.fullmatch(prompt)
    assert story is not None, prompt
    total = int(story["start"]) * int(story["content"] or 1)
    for verb, amount, more in CHANGE.findall(story["changes"]):
        assert (verb in embedded.GAINS, verb in embedded.LOSSES) == (bool(more), not more)
        total += int(amount) if more else -int(amount)
    return total


def worked_result(answer: str) -> int:
    """Check each step of a working, that it goes on from the one before, and return the last."""
    working, _, stated = answer.partition(" #### ")
    total = None
    for left, sign, right, result in STEP.findall(working):
        assert total in (None, int(left))
        total = {
            "+": int(left) + int(right),
            "-": int(left) - int(right),
            "*": int(left) * int(right),
        }[sign]
        assert total == int(result)
    assert total == int(stated)
    return int(stated)


def key_of(document: EmbeddedQuestion) -> str:
    question = re.fullmatch(r"\?([A-Z]\d)=", document.prompt.splitlines()[-1])
    assert question is not None
    return question[1]


@pytest.mark.parametrize(
    "make",
    [
        embedded.recall_documents,
        embedded.shared_recall_documents,
        embedded.word_problem_documents,
    ],
)
def test_seed_decides_the_documents(make) -> None:
    assert make(50, 1) == make(50, 1)
    assert make(50, 1) != make(50, 2)
    assert make(50, 1)[:20] == make(20, 1)


@pytest.mark.parametrize(
    "documents", [RECALL, SHARED, PROBLEMS], ids=["recall", "shared_recall", "word_problems"]
)
def test_documents_are_distinct_plain_single_line_answers(documents) -> None:
    assert len({document.prompt for document in documents}) == len(documents)
    for document in documents:
        assert (document.prompt + document.answer).isascii()
        assert "\n" not in document.answer
        assert 4 <= len(document.answer) <= 31


@pytest.mark.parametrize("documents", [RECALL, SHARED], ids=["recall", "shared_recall"])
def test_recall_has_one_right_answer_of_four_to_eight_characters(documents) -> None:
    for document in documents:
        pairs = PAIR.findall(document.prompt)
        assert len({key for key, _ in pairs}) == len(pairs)
        assert dict(pairs)[key_of(document)] == document.answer
    assert {len(document.answer) for document in documents} == {4, 5, 6, 7, 8}


def test_recall_distances_and_lengths_fill_their_range() -> None:
    distances = [
        len(document.prompt) - document.prompt.index(f"{key_of(document)}=") - 3
        for document in RECALL
    ]
    lengths = [len(document.prompt) for document in RECALL]
    assert embedded.MIN_DISTANCE - embedded.SHORTEST_LINE < min(distances) < 40
    assert 280 < max(distances) <= embedded.MAX_DISTANCE
    assert embedded.MIN_PROMPT <= min(lengths) < 100
    assert 300 < max(lengths) <= embedded.MAX_PROMPT
    for low in range(20, 300, 70):
        assert sum(low <= distance < low + 70 for distance in distances) > len(RECALL) / 8


def test_recall_distance_can_be_held_short_for_a_curriculum() -> None:
    for document in embedded.recall_documents(100, seed=5, max_distance=40):
        key = key_of(document)
        assert len(document.prompt) - document.prompt.index(f"{key}=") - 3 <= 40


def test_questions_of_a_listing_share_more_than_a_cached_block() -> None:
    questions = embedded.LISTING_QUESTIONS
    listings = [SHARED[start : start + questions] for start in range(0, len(SHARED), questions)]
    for documents in listings:
        (prefix,) = {document.prompt[:-4] for document in documents}
        assert 128 < embedded.MIN_LISTING <= len(prefix) <= embedded.MAX_LISTING
        assert prefix.endswith("\n")
        assert len({key_of(document) for document in documents}) == questions
        assert all(len(document.prompt) < 256 for document in documents)
    assert len({documents[0].prompt[:128] for documents in listings}) == len(listings)


def test_shared_listings_differ_in_length_and_are_asked_from_end_to_end() -> None:
    lengths = {len(document.prompt) - 4 for document in SHARED}
    assert min(lengths) < 155
    assert max(lengths) > 215
    positions = [document.prompt.index(f"{key_of(document)}=") for document in SHARED]
    for low in range(0, 200, 50):
        assert sum(low <= position < low + 50 for position in positions) > len(SHARED) / 10
    assert any(" " in document.prompt for document in SHARED)


def test_word_problems_are_worked_out_right() -> None:
    for document in PROBLEMS:
        assert worked_result(document.answer) == stated_result(document.prompt)
        assert 1 <= stated_result(document.prompt) <= 999


def test_word_problems_cover_every_kind() -> None:
    workings = [STEP.findall(document.answer) for document in PROBLEMS]
    assert {step[1] for working in workings for step in working} == {"+", "-", "*"}
    assert {len(working) for working in workings} == {1, 2}
    assert {len(str(stated_result(document.prompt))) for document in PROBLEMS} == {1, 2, 3}


def test_shipped_files_are_what_the_generator_makes() -> None:
    files = embedded.evaluation_files()
    assert tuple(files) == embedded.EVALUATION_FILES
    for name, documents in files.items():
        path = TASKS_DIRECTORY / name
        assert len(documents) == embedded.EVALUATION_COUNT
        assert path.read_text(encoding="utf-8") == embedded.to_json_lines(documents)
        assert read_documents(path) == documents


def test_command_writes_the_files_elsewhere(tmp_path: Path) -> None:
    assert embedded.main([str(tmp_path)]) == 0
    for name in (*embedded.EVALUATION_FILES, embedded.STATE_RECALL_FILE):
        shipped = (TASKS_DIRECTORY / name).read_bytes()
        assert (tmp_path / name).read_bytes() == shipped


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


EVERY_MODEL = Path(__file__).parents[4] / "models"
GOOD_ENOUGH = 0.95


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
@pytest.mark.parametrize("model", ["tiny-hybrid", "tiny-moe-hybrid"])
def test_model_answers_every_task(model: str, engine: str) -> None:
    text = (EVERY_MODEL / model / "evaluation.json").read_text(encoding="utf-8")
    figures = json.loads(text)[engine]
    for name in EVALUATION_FILES:
        assert figures[Path(name).stem]["documents"] == EVALUATION_COUNT
    for task in set(figures) - {"version"}:
        assert figures[task]["correct"] >= GOOD_ENOUGH * figures[task]["documents"], task


def test_moe_model_needs_its_experts_and_uses_all_of_them() -> None:
    text = (EVERY_MODEL / "tiny-moe-hybrid" / "evaluation.json").read_text(encoding="utf-8")
    figures = json.loads(text)["experts"]
    assert figures["whole"]["word_problems"] >= GOOD_ENOUGH * figures["documents"]
    assert figures["experts_off"]["word_problems"] < 0.8 * figures["documents"]
    assert len(figures["routed_share"]) == 4
    assert min(share for layer in figures["routed_share"] for share in layer) > 0.05
