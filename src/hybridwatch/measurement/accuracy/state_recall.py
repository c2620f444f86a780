"""Recall that a Mamba state has to carry: few pairs early in a listing, and filler after them.

All pairs lie within the first `HEAD` bytes, so within the first cached block of 128 tokens, and
every question of a listing comes after more than a block. An engine that serves the block from its
prefix cache has read the pairs long before the question: the answer comes out of what it kept.
`models/tiny-memory-moe` is trained on such documents; there only Mamba layers can bind a value to
its key. Lengths count bytes, which are tokens for its byte tokenizer.

Standard library only: the training recipe imports this module from an engine's environment.
Run as a command, it writes the evaluation file that the lm-eval task reads.
"""

import argparse
import random
import string
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hybridwatch.measurement.accuracy.embedded import (
    FILLER_WORDS,
    SHORTEST_LINE,
    TASKS_DIRECTORY,
    EmbeddedQuestion,
    to_json_lines,
)

EVALUATION_FILE = "state_recall.jsonl"
EVALUATION_COUNT = 250
EVALUATION_SEED = 2713  # Below every seed that models/tiny-memory-moe trains with.

MIN_PAIRS, MAX_PAIRS = 3, 5  # of a listing
MIN_VALUE, MAX_VALUE = 3, 5  # letters; the alphabet has enough for all values of a listing
HEAD = 120  # bytes that hold every pair
MIN_LISTING, MAX_LISTING = 132, 200

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RecallShape:
    """How long a listing is, in bytes, and where its pairs are; the default is the evaluation's.

    Attributes:
        head: Bytes at its start that hold every pair, at least enough for `MAX_PAIRS` of them.
    """

    head: int = HEAD
    shortest: int = MIN_LISTING
    longest: int = MAX_LISTING


def state_recall_documents(count: int, seed: int) -> list[EmbeddedQuestion]:
    """Make documents listing by listing, of each listing one for every pair.

    Within a listing they are equal but for the key in the question, their last four bytes. The last
    listing may not have all its questions.
    """
    rng = random.Random(seed)  # noqa: S311 - repeatable is what is wanted
    documents: list[EmbeddedQuestion] = []
    while len(documents) < count:
        listing, pairs = draw_listing(rng, RecallShape())
        documents += [EmbeddedQuestion(f"{listing}?{key}=", value) for key, value in pairs]
    return documents[:count]


def draw_listing(rng: random.Random, shape: RecallShape) -> tuple[str, list[Pair]]:
    """Draw a listing of whole lines, and its pairs of key and value in a random order."""
    pairs = _draw_pairs(rng)
    lines = [f"{key}={value}\n" for key, value in pairs]
    spare = shape.head - sum(map(len, lines))
    lines += _filler_lines(rng, rng.randint(0, max(0, spare)))
    rng.shuffle(lines)
    head = "".join(lines)
    length = rng.randint(min(shape.shortest + SHORTEST_LINE - 1, shape.longest), shape.longest)
    listing = head + "".join(_filler_lines(rng, length - len(head)))
    rng.shuffle(pairs)
    return listing, pairs


def _draw_pairs(rng: random.Random) -> list[Pair]:
    """Return pairs of which no two share a letter or digit in their keys, or one in their values.

    That keeps them apart for a small model: the letter decides what comes after it.
    """
    count = rng.randint(MIN_PAIRS, MAX_PAIRS)
    initials = rng.sample(string.ascii_uppercase, count)
    digits = rng.sample(string.digits, count)
    letters = iter(rng.sample(string.ascii_lowercase, len(string.ascii_lowercase)))
    values = ["".join(islice(letters, rng.randint(MIN_VALUE, MAX_VALUE))) for _ in range(count)]
    return [(a + b, value) for a, b, value in zip(initials, digits, values, strict=True)]


def _filler_lines(rng: random.Random, room: int) -> list[str]:
    """Return lines of filler words: at most `room` bytes, and fewer by less than a short line."""
    lines = []
    while room >= SHORTEST_LINE:
        line = rng.choice(FILLER_WORDS)
        for word in rng.choices(FILLER_WORDS, k=rng.randint(1, 7)):
            if len(line) + len(word) + 2 <= room:
                line += f" {word}"
        lines.append(line + "\n")
        room -= len(lines[-1])
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the evaluation file, by default where the lm-eval task looks for it."""
    parser = argparse.ArgumentParser(
        prog="python -m hybridwatch.measurement.accuracy.state_recall", description=main.__doc__
    )
    parser.add_argument("directory", nargs="?", type=Path, default=TASKS_DIRECTORY)
    path: Path = parser.parse_args(arguments).directory / EVALUATION_FILE
    documents = state_recall_documents(EVALUATION_COUNT, EVALUATION_SEED)
    path.write_text(to_json_lines(documents), encoding="utf-8")
    sys.stdout.write(f"{path}: {len(documents)} documents\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
