"""State recall: pairs within the first cached block, filler, and one question for each pair."""

import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.measurement.accuracy.embedded import (
    TASKS_DIRECTORY,
    EmbeddedQuestion,
    read_documents,
)
from hybridwatch_lab import embedded_tasks as embedded
from hybridwatch_lab.embedded_tasks import to_json_lines

MODEL = Path(__file__).parents[4] / "models" / "tiny-memory-moe"
BLOCK = 128  # tokens of a cached block, bytes of a prompt
LISTING = re.compile(r"(?:[A-Z]\d=[a-z]{3,5}\n|[a-z]+(?: [a-z]+)+\n)+")
PAIR = re.compile(r"^([A-Z]\d)=([a-z]+)\n", re.MULTILINE)

DOCUMENTS = embedded.state_recall_documents(600, seed=5)
EVALUATION = embedded.state_recall_documents(embedded.EVALUATION_COUNT, embedded.STATE_RECALL_SEED)


def by_listing(documents: list[EmbeddedQuestion]) -> dict[str, list[EmbeddedQuestion]]:
    """Group documents by all but their question; a listing's questions follow each other."""
    groups = groupby(documents, key=lambda document: document.prompt[:-4])
    return {listing: list(group) for listing, group in groups}


def key_of(document: EmbeddedQuestion) -> str:
    question = re.fullmatch(r"\?([A-Z]\d)=", document.prompt[-4:])
    assert question is not None
    return question[1]


def model_figures() -> Any:
    """Return the shipped model's own record of its evaluation."""
    return json.loads((MODEL / "evaluation.json").read_text(encoding="utf-8"))


def test_seed_decides_the_documents() -> None:
    make = embedded.state_recall_documents
    assert make(50, 1) == make(50, 1)
    assert make(50, 1) != make(50, 2)
    assert make(50, 1)[:20] == make(20, 1)


@pytest.mark.parametrize("documents", [DOCUMENTS, EVALUATION], ids=["drawn", "shipped"])
def test_documents_are_distinct_and_answered_by_their_own_listing(documents) -> None:
    assert len({document.prompt for document in documents}) == len(documents)
    for document in documents:
        pairs = PAIR.findall(document.prompt)
        assert len({key for key, _ in pairs}) == len(pairs)
        assert dict(pairs)[key_of(document)] == document.answer
    assert {len(document.answer) for document in documents} == {3, 4, 5}


@pytest.mark.parametrize("documents", [DOCUMENTS, EVALUATION], ids=["drawn", "shipped"])
def test_questions_share_a_listing_whose_pairs_lie_in_its_first_block(documents) -> None:
    listings = by_listing(documents)
    assert sum(map(len, listings.values())) == len(documents)
    assert len({listing[:BLOCK] for listing in listings}) == len(listings)
    for listing in listings:
        assert LISTING.fullmatch(listing)
        assert BLOCK < embedded.SHORTEST_LISTING <= len(listing) <= embedded.LONGEST_LISTING
        assert len(listing) + 4 < 2 * BLOCK
        ends = [pair.end() for pair in PAIR.finditer(listing)]
        assert max(ends) <= embedded.HEAD < BLOCK


def test_every_pair_of_a_listing_is_asked_once_in_an_order_of_its_own() -> None:
    listings = by_listing(DOCUMENTS)
    listings.popitem()  # Cut off where the count was reached.
    told = [[key for key, _ in PAIR.findall(listing)] for listing in listings]
    asked = [[key_of(document) for document in group] for group in listings.values()]
    assert [sorted(keys) for keys in told] == [sorted(keys) for keys in asked]
    assert told != asked
    assert {len(keys) for keys in told} == {3, 4, 5}


def test_pairs_of_a_listing_share_no_letter_and_no_digit() -> None:
    for listing in by_listing(DOCUMENTS):
        pairs = PAIR.findall(listing)
        for texts in ([key[0] for key, _ in pairs], [key[1] for key, _ in pairs]):
            assert len(set(texts)) == len(pairs)
        letters = "".join(value for _, value in pairs)
        assert len(set(letters)) == len(letters)


def test_listings_fill_their_range() -> None:
    lengths = [len(listing) for listing in by_listing(DOCUMENTS)]
    assert min(lengths) < 140
    assert max(lengths) > 190
    ends = [pair.end() for listing in by_listing(DOCUMENTS) for pair in PAIR.finditer(listing)]
    assert min(ends) < 12
    assert max(ends) > embedded.HEAD - 12


def test_shipped_file_is_what_the_generator_makes() -> None:
    shipped = TASKS_DIRECTORY / embedded.STATE_RECALL_FILE
    assert shipped.read_text(encoding="utf-8") == to_json_lines(EVALUATION)
    assert read_documents(shipped) == EVALUATION


@pytest.mark.parametrize("part", ["transformers", "vllm"])
def test_model_remembers(part: str) -> None:
    figures = model_figures()[part]
    assert figures["state_recall"]["documents"] == embedded.EVALUATION_COUNT
    for name in set(figures) - {"version", "asked_again"}:
        assert figures[name]["correct"] >= 0.95 * figures[name]["documents"], name


def test_model_was_also_asked_from_the_prefix_cache() -> None:
    again = model_figures()["vllm"]["asked_again"]
    assert again["state_recall"]["correct"] >= 0.95 * again["state_recall"]["documents"]
    assert again["prompts_with_cached_tokens"] >= again["state_recall"]["documents"]


def test_model_is_wrong_as_soon_as_its_mamba_states_are() -> None:
    figures = model_figures()["damage"]
    assert figures.pop("as_it_should_be")["correct"] >= 0.95 * embedded.EVALUATION_COUNT
    for name in ("16_junk_tokens_more", "1_zero_token_more", "another_listing", "nothing"):
        assert figures[name]["correct"] < 0.5 * figures[name]["documents"], name
