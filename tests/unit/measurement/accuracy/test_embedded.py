"""The embedded tasks: what a document promises, and that the shipped files are what is made."""

import re
from pathlib import Path

import pytest

from hybridwatch.measurement.accuracy import embedded
from hybridwatch.measurement.accuracy.embedded import EmbeddedQuestion

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
def test_documents_are_distinct_plain_single_line_answers(
    documents: list[EmbeddedQuestion],
) -> None:
    assert len({document.prompt for document in documents}) == len(documents)
    for document in documents:
        assert (document.prompt + document.answer).isascii()
        assert "\n" not in document.answer
        assert 4 <= len(document.answer) <= 31


@pytest.mark.parametrize("documents", [RECALL, SHARED], ids=["recall", "shared_recall"])
def test_recall_has_one_right_answer_of_four_to_eight_characters(
    documents: list[EmbeddedQuestion],
) -> None:
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
        path = embedded.TASKS_DIRECTORY / name
        assert len(documents) == embedded.EVALUATION_COUNT
        assert path.read_text(encoding="utf-8") == embedded.to_json_lines(documents)
        assert embedded.read_documents(path) == documents


def test_command_writes_the_files_elsewhere(tmp_path: Path) -> None:
    assert embedded.main([str(tmp_path)]) == 0
    for name in embedded.EVALUATION_FILES:
        shipped = (embedded.TASKS_DIRECTORY / name).read_bytes()
        assert (tmp_path / name).read_bytes() == shipped
