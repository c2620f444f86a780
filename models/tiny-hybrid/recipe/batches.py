"""Training batches: rows of bytes with a weight on every byte, heavy on answers.

Every row starts with one document exactly as an evaluation asks it. What follows in the row only
makes better use of it: further questions about the same listing, or further word problems. The
steps of workings are also drilled by themselves. No evaluation prompt is ever part of a batch.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from hybridwatch.measurement.accuracy.embedded import EmbeddedQuestion
from hybridwatch_lab.embedded_tasks import (
    MAX_PROMPT,
    SHORTEST_LINE,
    evaluation_files,
    recall_documents,
    word_problem_documents,
)
from recipe.tokenizer import PAD

RECALL_QUESTIONS = 12  # at most in a row
ROW_LENGTH = 216
PROBLEMS_DRAWN = 150  # More than fit into the rows.

ANSWER_WEIGHT = 1.0
PROMPT_WEIGHT = 0.03  # A little: it teaches the shape of the text; most of it cannot be foretold.

HELD_OUT_SEED = 990_001  # Not the evaluation seed, and above every training seed.
FIRST_TRAINING_SEED = 10_000

STEP = re.compile(r"(\d+[-+*]\d+=)(\d+)")
PAIR = re.compile(r"^([A-Z]\d)=([a-z]+)$", re.MULTILINE)

Segment = tuple[str, float]


@dataclass(frozen=True, slots=True)
class Mix:
    """How much of each kind a training step takes.

    Attributes:
        recall_bytes: About; short rows early in a curriculum are more rows.
        problem_rows: Rows of whole word problems.
        drill_rows: Rows of steps of workings alone, which teach arithmetic fastest.
    """

    recall_bytes: int
    problem_rows: int
    drill_rows: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of equal length.

    Attributes:
        tokens: Bytes, padded at the end.
        weights: The weight of predicting each token from those before it; 0 for padding.
    """

    tokens: torch.Tensor
    weights: torch.Tensor


def training_batches(step: int, max_distance: int, mix: Mix) -> list[Batch]:
    """Return the batches of recall, of word problems and of drill for a training step."""
    seed = FIRST_TRAINING_SEED + step
    longest = min(MAX_PROMPT, 2 * max_distance + SHORTEST_LINE)
    recall = _unseen(recall_documents(mix.recall_bytes // longest, seed, max_distance))
    problems = _unseen(word_problem_documents(PROBLEMS_DRAWN, seed))
    kinds = [
        [_recall_row(document) for document in recall],
        _packed([_segments(document) for document in problems])[: mix.problem_rows],
        _packed([_drill(document) for document in reversed(problems)])[: mix.drill_rows],
    ]
    return [to_batch(rows) for rows in kinds if rows]


def held_out_batches(count: int) -> dict[str, Batch]:
    """Return documents of each task, one a row, neither trained on nor part of the evaluation."""
    drawn = {
        "recall": recall_documents(count, HELD_OUT_SEED),
        "word_problems": word_problem_documents(count, HELD_OUT_SEED),
    }
    return {task: document_batch(_unseen(documents)) for task, documents in drawn.items()}


def document_batch(documents: Sequence[EmbeddedQuestion]) -> Batch:
    """Return documents exactly as an evaluation asks them, one a row."""
    return to_batch([_segments(document) for document in documents])


def to_batch(rows: Sequence[Sequence[Segment]]) -> Batch:
    """Return rows of weighted text as tensors."""
    length = max(sum(len(text) for text, _ in row) for row in rows)
    tokens = torch.full((len(rows), length), PAD)
    weights = torch.zeros(len(rows), length)
    for index, row in enumerate(rows):
        end = 0
        for text, weight in row:
            start, end = end, end + len(text)
            tokens[index, start:end] = torch.tensor(list(text.encode("ascii")))
            weights[index, start:end] = weight
    return Batch(tokens, weights)


EVALUATION_PROMPTS = frozenset(
    document.prompt for documents in evaluation_files().values() for document in documents
)


def _unseen(documents: Sequence[EmbeddedQuestion]) -> list[EmbeddedQuestion]:
    return [document for document in documents if document.prompt not in EVALUATION_PROMPTS]


def _segments(document: EmbeddedQuestion) -> list[Segment]:
    return [(document.prompt, PROMPT_WEIGHT), (f"{document.answer}\n", ANSWER_WEIGHT)]


def _recall_row(document: EmbeddedQuestion) -> list[Segment]:
    """Return a document and then questions about other pairs, in an order foreign to the list."""
    row = _segments(document)
    asked = document.prompt[-3:-1]
    pairs = [(key, value) for key, value in PAIR.findall(document.prompt) if key != asked]
    for key, value in sorted(pairs, key=lambda pair: pair[1][::-1])[: RECALL_QUESTIONS - 1]:
        row += _segments(EmbeddedQuestion(f"?{key}=", value))
    return row


def _drill(document: EmbeddedQuestion) -> list[Segment]:
    """Return the steps of a word problem's working, with weight on their results only."""
    segments = []
    for step, result in STEP.findall(document.answer):
        segments += [(f" {step}", PROMPT_WEIGHT), (result, ANSWER_WEIGHT)]
    return segments


def _packed(pieces: Sequence[list[Segment]]) -> list[list[Segment]]:
    """Return rows that hold as many of the pieces as fit, in order."""
    rows: list[list[Segment]] = [[]]
    room = ROW_LENGTH
    for piece in pieces:
        length = sum(len(text) for text, _ in piece)
        if length > room:
            rows.append([])
            room = ROW_LENGTH
        rows[-1] += piece
        room -= length
    return rows
