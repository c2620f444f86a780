"""Training rows: a listing, then a question about every pair of it, with weight on the answers.

The curriculum begins with bare pairs and ends with listings longer than the evaluation's, so that
a value is still known after 300 bytes of filler. Later, part of the listings is spoilt by foreign
tokens at one place. What then is no listing any more is answered with `NO_ANSWER`, whatever is
asked; so the model is made to notice a state that has read what it should not have. Attention does
not see foreign tokens: in an engine whose Mamba states alone are damaged, its cache is as it should
be. No evaluation prompt is ever part of a batch.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from recipe.tokenizer import PAD, VOCABULARY_SIZE

from hybridwatch.measurement.accuracy.embedded import EmbeddedQuestion
from hybridwatch_lab.embedded_tasks import (
    EVALUATION_COUNT,
    FILLER_WORDS,
    HEAD,
    STATE_RECALL_SEED,
    Pair,
    RecallShape,
    draw_listing,
    state_recall_documents,
)

FIRST_LONGEST, LAST_LONGEST = 60, 300  # bytes of the longest listings, first and at last
BARE_HEAD = 45  # bytes of the most and longest pairs
SPREAD = 12  # bytes between the shortest and the longest listing of a step
STEP_BYTES = 3000  # of a training step, about
QUESTION_BYTES = 36  # of the questions of a listing, about

ANSWER_WEIGHT = 1.0
PROMPT_WEIGHT = 0.01  # A little: it teaches the shape of the text; most of it cannot be foretold.
NO_ANSWER = "-"
MOST_SPOILT = 16  # tokens
BLOCK = 128  # tokens: where an engine's cached state is taken up again

FIRST_TRAINING_SEED = 10_000
HELD_OUT_SEED = 990_001  # Not the evaluation seed, and above every training seed.
FAR_SEED = 990_002
FAR = RecallShape(head=HEAD // 2, shortest=285, longest=LAST_LONGEST)

WORD = f"(?:{'|'.join(FILLER_WORDS)})"
LISTING = re.compile(rf"(?:[A-Z]\d=[a-z]{{3,5}}\n|{WORD}(?: {WORD})+\n)+")
PAIR = re.compile(r"^([A-Z]\d)=([a-z]+)\n", re.MULTILINE)

EVALUATION_LISTINGS = frozenset(
    document.prompt[:-4] for document in state_recall_documents(EVALUATION_COUNT, STATE_RECALL_SEED)
)


class Row:
    """Tokens in the making, each with the weight of predicting it, and whether it is foreign."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.weights: list[float] = []
        self.foreign: list[bool] = []

    def add(self, tokens: Sequence[int], weight: float, *, foreign: bool = False) -> None:
        """Add tokens at the end."""
        self.tokens += tokens
        self.weights += [weight] * len(tokens)
        self.foreign += [foreign] * len(tokens)

    def ask(self, key: str, answer: str) -> None:
        """Add a question and its answer."""
        self.add(f"?{key}=".encode(), PROMPT_WEIGHT)
        self.add(f"{answer}\n".encode(), ANSWER_WEIGHT)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of equal length.

    Attributes:
        tokens: Padded at the end.
        weights: The weight of predicting each token from those before it; 0 for padding.
        foreign: Which tokens attention does not see from later ones.
    """

    tokens: torch.Tensor
    weights: torch.Tensor
    foreign: torch.Tensor


def training_rows(step: int, longest: int, spoilt_share: float) -> Rows:
    """Return the rows of a training step: listings of about one length, up to `longest`."""
    rng = random.Random(FIRST_TRAINING_SEED + step)
    length = min(rng.randint(FIRST_LONGEST, longest) for _ in range(2))  # Short ones teach most.
    head = rng.randint(BARE_HEAD, max(BARE_HEAD, min(HEAD, length - SPREAD)))
    shape = RecallShape(head, shortest=length - SPREAD, longest=length)
    rows = []
    for _ in range(STEP_BYTES // (length + QUESTION_BYTES)):
        listing, pairs = draw_listing(rng, shape)
        if listing in EVALUATION_LISTINGS:
            continue
        row = None
        if rng.random() < spoilt_share:
            row = _spoilt(rng, listing, rng.randint(1, len(listing)), pairs)
        if row is None:
            row = Row()
            row.add(listing.encode(), PROMPT_WEIGHT)
        elif not _is_listing(row):
            pairs = [(key, NO_ANSWER) for key, _ in pairs]
        for key, value in pairs:
            row.ask(key, value)
        rows.append(row)
    return _to_rows(rows)


def far_documents(count: int) -> list[EmbeddedQuestion]:
    """Return documents whose values lie over 225 bytes before the question, none trained on."""
    rng = random.Random(FAR_SEED)
    documents: list[EmbeddedQuestion] = []
    while len(documents) < count:
        listing, pairs = draw_listing(rng, FAR)
        documents += [EmbeddedQuestion(f"{listing}?{key}=", value) for key, value in pairs]
    return documents[:count]


def held_out_rows(count: int) -> dict[str, Rows]:
    """Return documents, one a row: the evaluation's kind, far ones, and ones spoilt at a block."""
    rng = random.Random(HELD_OUT_SEED)
    documents = state_recall_documents(count, HELD_OUT_SEED)
    spoilt = []
    for document in documents:
        row = _spoilt(rng, document.prompt[:-4], BLOCK, PAIR.findall(document.prompt))
        if row is not None and not _is_listing(row):
            row.ask(document.prompt[-3:-1], NO_ANSWER)
            spoilt.append(row)
    drawn = {"state_recall": documents, "far": far_documents(count)}
    return {name: _to_rows(map(_whole, kind)) for name, kind in drawn.items()} | {
        "spoilt": _to_rows(spoilt)
    }


def _whole(document: EmbeddedQuestion) -> Row:
    row = Row()
    row.add(document.prompt[:-4].encode(), PROMPT_WEIGHT)
    row.ask(document.prompt[-3:-1], document.answer)
    return row


def _to_rows(rows: Sequence[Row]) -> Rows:
    rows = list(rows)
    length = max(len(row.tokens) for row in rows)
    tokens = torch.full((len(rows), length), PAD)
    weights = torch.zeros(len(rows), length)
    foreign = torch.zeros(len(rows), length, dtype=torch.bool)
    for index, row in enumerate(rows):
        end = len(row.tokens)
        tokens[index, :end] = torch.tensor(row.tokens)
        weights[index, :end] = torch.tensor(row.weights)
        foreign[index, :end] = torch.tensor(row.foreign)
    return Rows(tokens, weights, foreign)


def _spoilt(rng: random.Random, listing: str, at: int, pairs: Sequence[Pair]) -> Row | None:
    """Return a listing with foreign tokens in it, or None if they only made it another listing."""
    row = Row()
    row.add(listing[:at].encode(), PROMPT_WEIGHT)
    row.add(_foreign(rng, min(rng.randint(1, MOST_SPOILT) for _ in range(2))), 0.0, foreign=True)
    row.add(listing[at:].encode(), PROMPT_WEIGHT)
    same = sorted(PAIR.findall(_text(row))) == sorted(pairs)
    return row if same or not _is_listing(row) else None


def _foreign(rng: random.Random, count: int) -> list[int]:
    """Return any tokens, or one token again and again."""
    if rng.random() < 0.5:
        return [rng.randrange(VOCABULARY_SIZE)] * count
    return [rng.randrange(VOCABULARY_SIZE) for _ in range(count)]


def _text(row: Row) -> str:
    return "".join(map(chr, row.tokens))


def _is_listing(row: Row) -> bool:
    return LISTING.fullmatch(_text(row)) is not None
