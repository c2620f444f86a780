"""Writes ``scenarios/traces/chats-and-agents.jsonl``, byte for byte, in Mooncake's form.

Two shapes of load that users of hybrid models have, from a seed and with made-up numbers:

- **Chats**: a person reads an answer and writes the next message, so each prompt is the one before,
  its answer, and a new text: prefixes grow, and come back after seconds.
- **Agents**: a program has one long text of rules and tools, which all agents share, and sends the
  result of a tool at once: short turns behind a long prefix.

    python -m hybridwatch_lab.traces.make --write scenarios/traces/chats-and-agents.jsonl
"""

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SEED: Final = 20
BLOCK: Final = 512
"""Tokens that an id stands for, as in Mooncake's traces."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How sessions of one kind go on: tokens, and ms between an arrival and the next.

    Attributes:
        shared: Tokens at the begin of every session, alike in all of the kind.
    """

    name: str
    sessions: int
    turns: tuple[int, int]
    shared: int
    first: tuple[int, int]
    new: tuple[int, int]
    answer: tuple[int, int]
    pause_ms: tuple[int, int]
    begin_ms: tuple[int, int]


SHAPES: Final = (
    Shape(
        "chat",
        sessions=5,
        turns=(2, 4),
        shared=0,
        first=(300, 1500),
        new=(60, 500),
        answer=(60, 300),
        pause_ms=(8_000, 30_000),
        begin_ms=(0, 40_000),
    ),
    Shape(
        "agent",
        sessions=3,
        turns=(4, 6),
        shared=3072,
        first=(100, 400),
        new=(40, 300),
        answer=(30, 120),
        pause_ms=(2_000, 6_000),
        begin_ms=(5_000, 45_000),
    ),
)


@dataclass(frozen=True, slots=True)
class _Turn:
    at_ms: int
    tokens: int
    answer: int
    session: str
    shape: Shape


def make(seed: int = SEED) -> str:
    """Write the trace: one JSON object a line, in the order of arrival."""
    turns = sorted(_turns(seed), key=lambda turn: (turn.at_ms, turn.session))
    ids: dict[str, int] = {}
    begin = turns[0].at_ms
    rows = (
        {
            "timestamp": turn.at_ms - begin,
            "input_length": turn.tokens,
            "output_length": turn.answer,
            "hash_ids": [ids.setdefault(name, len(ids)) for name in _blocks(turn)],
        }
        for turn in turns
    )
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _turns(seed: int) -> Iterator[_Turn]:
    for shape in SHAPES:
        for number in range(shape.sessions):
            name = f"{seed}/{shape.name}/{number}"
            draw = random.Random(name).random  # noqa: S311 - repeatable is what is wanted
            at_ms, tokens = _pick(draw(), shape.begin_ms), shape.shared + _pick(draw(), shape.first)
            for _ in range(_pick(draw(), shape.turns)):
                answer = _pick(draw(), shape.answer)
                yield _Turn(at_ms, tokens, answer, f"{shape.name}/{number}", shape)
                at_ms += _pick(draw(), shape.pause_ms)
                tokens += answer + _pick(draw(), shape.new)


def _pick(unit: float, span: tuple[int, int]) -> int:
    low, high = span
    return low + int(unit * (high - low + 1))


def _blocks(turn: _Turn) -> Iterator[str]:
    """Name each block by what is in it; the last, if not full, is another in the next turn."""
    for at in range(-(-turn.tokens // BLOCK)):
        end = (at + 1) * BLOCK
        owner = turn.shape.name if end <= turn.shape.shared else turn.session
        yield f"{owner}/{at}" if end <= turn.tokens else f"{owner}/{at}/{turn.tokens}"


def main() -> None:
    """Print the trace, or write it."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_lab.traces.make")
    parser.add_argument("--write", type=Path, metavar="FILE", help="Write it there.")
    file: Path | None = parser.parse_args().write
    if file is None:
        print(make(), end="")  # noqa: T201 - it is what was asked for
    else:
        file.write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
