"""Makes the embedded tasks: recall (long prompts, shared listings, a state) and word problems.

Seeded, so a test can prove the shipped files, and a model is trained without seeing them. Lengths
count bytes, which are tokens for the embedded model. An answer has several tokens: the first comes
out of the prefill, and only the decoded ones can show a damaged Mamba state. A shared listing is
the prefix of its questions, for prefix caching. At the end of a block the drafts of the answer
reach into the next one. The word problems have GSM8K's answer form.

Standard library only: the training recipe imports this module from an engine's environment. Run as
a command, it writes the evaluation files that the lm-eval tasks read.
"""

import argparse
import json
import random
import string
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from hybridwatch.measurement.accuracy.embedded import TASKS_DIRECTORY, EmbeddedQuestion

EVALUATION_FILES = (
    "recall.jsonl",
    "word_problems.jsonl",
    "shared_recall.jsonl",
    "block_end_recall.jsonl",
)
EVALUATION_COUNT = 250
# Below every seed that models/tiny-hybrid/recipe/batches.py trains with.
EVALUATION_SEED = 2711
SHARED_EVALUATION_SEED = 2712
BLOCK_END_EVALUATION_SEED = 2714

MIN_VALUE, MAX_VALUE = 4, 8  # characters of a recall value
# Bytes from the first byte of a value to the end of its prompt, and bytes of a prompt. Lines are
# whole, so a document comes out up to SHORTEST_LINE short of the distance and the length drawn.
MIN_DISTANCE, MAX_DISTANCE = 20, 300
MIN_PROMPT, MAX_PROMPT = 60, 340
SHORTEST_LINE = 12

# A cached block of 128 tokens lies wholly inside a listing; with a question it stays below 256.
MIN_LISTING, MAX_LISTING = 140, 230
LISTING_QUESTIONS = 10

BLOCK = 128  # tokens of a cached block
BLOCK_END = 6  # a prompt ends at most so many tokens before the end of a block

_FILLER = (
    "the old mill is quiet in may and rain falls on a green roof while two boats wait by stone "
    "steps where no bell rings until late"
)

_NAMES = (
    "Sam Ann Ben Eva Tom Mia Leo Zoe Max Ida Jon Amy Kim Ray Sue Dan Liz Ned Pam Roy Uma Vic Wes "
    "Joy Ali Bea Cal Dot Eli Fay Gus Hal"
)
_THINGS = (
    "nuts pens cups hats keys maps eggs figs pins bags toys cards coins books shells stamps apples "
    "plums stones boxes ropes lamps"
)
FILLER_WORDS, NAMES, THINGS = _FILLER.split(), _NAMES.split(), _THINGS.split()
CONTAINERS = ("boxes", "bags", "jars", "trays", "crates")
GAINS = ("finds", "buys", "gets", "wins", "picks up", "is given")
LOSSES = ("loses", "sells", "gives away", "drops", "hands out", "lends")

START_RANGE = (3, 60)
FIRST_CHANGE_RANGE = (2, 20)
SECOND_CHANGE_RANGE = (2, 9)
CONTAINER_RANGE = (2, 9)
CONTENT_RANGE = (2, 12)
MULTIPLIED_SHARE = 0.3
TWO_STEP_SHARE = 0.5
LOSS_SHARE = 0.5
FILLER_SHARES = (0.0, 0.25, 0.5)

STATE_RECALL_FILE = "state_recall.jsonl"
STATE_RECALL_SEED = 2713  # Below every seed that models/tiny-memory-moe trains with.
MIN_PAIRS, MAX_PAIRS = 3, 5  # of a listing
MIN_LETTERS, MAX_LETTERS = 3, 5  # letters; the alphabet has enough for all values of a listing
HEAD = 120  # bytes that hold every pair
SHORTEST_LISTING, LONGEST_LISTING = 132, 200

Pair = tuple[str, str]


def recall_documents(
    count: int, seed: int, max_distance: int = MAX_DISTANCE
) -> list[EmbeddedQuestion]:
    """Make different documents that list keys with values and filler, and then ask for one value.

    Distances, in bytes from a value to the end of its prompt, are even up to `max_distance`; a
    training curriculum starts with less, and then with shorter prompts too.
    """
    return _distinct(count, seed, lambda rng: _recall_document(rng, max_distance))


def shared_recall_documents(count: int, seed: int) -> list[EmbeddedQuestion]:
    """Make recall documents, `LISTING_QUESTIONS` a listing, equal but for their last four bytes."""
    rng = random.Random(seed)  # noqa: S311 - repeatable is what is wanted
    documents: list[EmbeddedQuestion] = []
    while len(documents) < count:
        documents += _questions_of_a_listing(rng)
    return documents[:count]


def block_end_recall_documents(count: int, seed: int) -> list[EmbeddedQuestion]:
    """Make recall documents that end 1 to `BLOCK_END` bytes before a multiple of `BLOCK`."""
    return _distinct(count, seed, _block_end_document)


def word_problem_documents(count: int, seed: int) -> list[EmbeddedQuestion]:
    """Make word problems of one or two steps: a short working, then `#### 17`, 1 to 3 digits."""
    return _distinct(count, seed, _word_problem)


def evaluation_files() -> dict[str, list[EmbeddedQuestion]]:
    """Return the documents of each evaluation file of `EVALUATION_FILES`, by file name."""
    documents = (
        recall_documents(EVALUATION_COUNT, EVALUATION_SEED),
        word_problem_documents(EVALUATION_COUNT, EVALUATION_SEED),
        shared_recall_documents(EVALUATION_COUNT, SHARED_EVALUATION_SEED),
        block_end_recall_documents(EVALUATION_COUNT, BLOCK_END_EVALUATION_SEED),
    )
    return dict(zip(EVALUATION_FILES, documents, strict=True))


def to_json_lines(documents: Iterable[EmbeddedQuestion]) -> str:
    """Return the text of an evaluation file: on each line an object of `prompt` and `answer`."""
    return "".join(json.dumps(asdict(document)) + "\n" for document in documents)


def _distinct(
    count: int, seed: int, draw: Callable[[random.Random], EmbeddedQuestion]
) -> list[EmbeddedQuestion]:
    rng = random.Random(seed)  # noqa: S311 - repeatable is what is wanted
    documents: dict[str, EmbeddedQuestion] = {}
    while len(documents) < count:
        document = draw(rng)
        documents.setdefault(document.prompt, document)
    return list(documents.values())


def _recall_document(rng: random.Random, max_distance: int) -> EmbeddedQuestion:
    keys = _shuffled_keys(rng)
    key, value = next(keys), _value(rng)
    pair, question = f"{key}={value}\n", f"?{key}="
    filler_share = rng.choice(FILLER_SHARES)
    distance = rng.randint(MIN_DISTANCE, max_distance)
    after_room = distance - len(value) - 1 - len(question)
    after = _lines(rng, keys, after_room, filler_share)
    used = len(pair) + len(after) + len(question)
    least = max(0, min(MIN_PROMPT, max_distance) + SHORTEST_LINE - used)
    most = max(least, min(MAX_PROMPT, used + max_distance // 2) - used)
    before = _lines(rng, keys, rng.randint(least, most), filler_share)
    return EmbeddedQuestion(before + pair + after + question, value)


def _block_end_document(rng: random.Random) -> EmbeddedQuestion:
    """Draw until a prompt ends where it shall: lengths are made of whole lines."""
    while True:
        document = _recall_document(rng, MAX_DISTANCE)
        if 1 <= -len(document.prompt) % BLOCK <= BLOCK_END:
            return document


def _questions_of_a_listing(rng: random.Random) -> list[EmbeddedQuestion]:
    """Draw a listing that has enough pairs, and ask for `LISTING_QUESTIONS` of them."""
    listing, pairs = "", list[tuple[str, str]]()
    while len(pairs) < LISTING_QUESTIONS:
        room = rng.randint(MIN_LISTING + SHORTEST_LINE - 1, MAX_LISTING)
        listing = _lines(rng, _shuffled_keys(rng), room, rng.choice(FILLER_SHARES))
        pairs = [(line[:2], line[3:]) for line in listing.splitlines() if "=" in line]
    chosen = rng.sample(pairs, LISTING_QUESTIONS)
    return [EmbeddedQuestion(f"{listing}?{key}=", value) for key, value in chosen]


def _shuffled_keys(rng: random.Random) -> Iterator[str]:
    every = [letter + digit for letter in string.ascii_uppercase for digit in string.digits]
    rng.shuffle(every)
    return iter(every)


def _value(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=rng.randint(MIN_VALUE, MAX_VALUE)))


def _lines(rng: random.Random, keys: Iterator[str], room: int, filler_share: float) -> str:
    """Return whole lines of pairs and filler: at most `room` bytes, and nearly that many."""
    lines = ""
    while room - len(lines) >= SHORTEST_LINE:
        if rng.random() < filler_share:
            lines += _filler(rng, room - len(lines))
        else:
            lines += f"{next(keys)}={_value(rng)}\n"
    return lines


def _filler(rng: random.Random, room: int) -> str:
    """Return one line of filler words, at most `room` bytes, itself at least `SHORTEST_LINE`."""
    line = rng.choice(FILLER_WORDS)
    for word in rng.choices(FILLER_WORDS, k=rng.randint(1, 7)):
        if len(line) + len(word) + 2 <= room:
            line += f" {word}"
    return line + "\n"


def _word_problem(rng: random.Random) -> EmbeddedQuestion:
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    if rng.random() < MULTIPLIED_SHARE:
        count, content = rng.randint(*CONTAINER_RANGE), rng.randint(*CONTENT_RANGE)
        total = count * content
        story = f"{name} has {count} {rng.choice(CONTAINERS)} of {content} {thing}"
        working = [f"{count}*{content}={total}"]
        changes = [SECOND_CHANGE_RANGE] if rng.random() < TWO_STEP_SHARE else []
    else:
        total = rng.randint(*START_RANGE)
        story = f"{name} has {total} {thing}"
        working = []
        second = [SECOND_CHANGE_RANGE] if rng.random() < TWO_STEP_SHARE else []
        changes = [FIRST_CHANGE_RANGE, *second]
    for index, bounds in enumerate(changes):
        clause, step, total = _change(rng, total, bounds)
        story += (", then " if index else " and ") + clause
        working.append(step)
    prompt = f"Q: {story}. How many {thing} does {name} have?\nA:"
    return EmbeddedQuestion(prompt, f" {' '.join(working)} #### {total}")


def _change(rng: random.Random, total: int, bounds: tuple[int, int]) -> tuple[str, str, int]:
    """Return one gain or loss in words, worked out, and the new total, which is at least 1."""
    low, high = bounds
    if total > low and rng.random() < LOSS_SHARE:
        amount = rng.randint(low, min(high, total - 1))
        left = total - amount
        return f"{rng.choice(LOSSES)} {amount}", f"{total}-{amount}={left}", left
    amount = rng.randint(low, high)
    grown = total + amount
    return f"{rng.choice(GAINS)} {amount} more", f"{total}+{amount}={grown}", grown


@dataclass(frozen=True, slots=True)
class RecallShape:
    """Bytes of a listing, and of the `head` that holds every pair; by default the evaluation's."""

    head: int = HEAD
    shortest: int = SHORTEST_LISTING
    longest: int = LONGEST_LISTING


def state_recall_documents(count: int, seed: int) -> list[EmbeddedQuestion]:
    """Make documents whose answer a Mamba state has to carry, one for every pair of a listing.

    All pairs lie in the first cached block, and a question comes after more than a block. An engine
    that serves the block from its prefix cache answers out of what it kept. In `models/tiny-memory-
    moe` only Mamba layers can bind a value to its key. The last listing may not have all its
    questions.
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
    """Pairs without a letter or digit in common, apart enough for a small model."""
    count = rng.randint(MIN_PAIRS, MAX_PAIRS)
    initials = rng.sample(string.ascii_uppercase, count)
    digits = rng.sample(string.digits, count)
    letters = iter(rng.sample(string.ascii_lowercase, len(string.ascii_lowercase)))
    values = ["".join(islice(letters, rng.randint(MIN_LETTERS, MAX_LETTERS))) for _ in range(count)]
    return [(a + b, value) for a, b, value in zip(initials, digits, values, strict=True)]


def _filler_lines(rng: random.Random, room: int) -> list[str]:
    """Return lines of filler words: at most `room` bytes, and fewer by less than a short line."""
    lines = []
    while room >= SHORTEST_LINE:
        lines.append(_filler(rng, room))
        room -= len(lines[-1])
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the evaluation files, by default where the lm-eval tasks look for them."""
    parser = argparse.ArgumentParser(
        prog="python -m hybridwatch_lab.embedded_tasks", description=main.__doc__
    )
    parser.add_argument("directory", nargs="?", type=Path, default=TASKS_DIRECTORY)
    directory: Path = parser.parse_args(arguments).directory
    memory = {STATE_RECALL_FILE: state_recall_documents(EVALUATION_COUNT, STATE_RECALL_SEED)}
    for name, documents in (evaluation_files() | memory).items():
        (directory / name).write_text(to_json_lines(documents), encoding="utf-8")
        sys.stdout.write(f"{directory / name}: {len(documents)} documents\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
