"""Seeded prompts for an unknown model: lines that name things and ask for them again.

Text of this kind gives an unknown model something to continue with and a reason to look back. Where
the server takes token ids, prompts are cut to a length exactly; elsewhere they are words.
"""

import random
from typing import Final

from hybridwatch.server_check.client import Prompt

_NAMES: Final = (
    "river", "stone", "lamp", "garden", "paper", "wheel", "harbour", "winter", "copper", "bridge",
    "letter", "forest", "window", "silver", "market", "island", "thunder", "velvet", "orchard",
    "signal", "meadow", "anchor", "candle", "desert", "engine", "falcon", "glacier", "hammer",
)  # fmt: skip
_LINES: Final = 60
PROBE_LINES: Final = 12


def write_lines(rng: random.Random, lines: int) -> str:
    """Write lines that give values to names and ask for some of them."""
    known: dict[str, int] = {}
    written = []
    for _ in range(lines):
        name = f"{rng.choice(_NAMES)} {rng.choice(_NAMES)}"
        if known and rng.random() < 1 / 3:
            asked = rng.choice(list(known))
            written.append(f"What is {asked}? {asked} is {known[asked]}.")
        else:
            known[name] = rng.randrange(1000)
            written.append(f"The {name} is {known[name]}.")
    return "\n".join(written)


class Prompts:
    """Makes prompts.

    Args:
        rng: What they are drawn from.
        ids: Token ids of a text of ours; empty where the server takes no ids.
        tokens_a_word: Of the server's tokenizer.
    """

    def __init__(self, rng: random.Random, ids: tuple[int, ...], tokens_a_word: float) -> None:
        self._rng = rng
        self._ids = ids
        self._tokens_a_word = tokens_a_word

    @property
    def are_ids(self) -> bool:
        """Whether prompts are lists of token ids, of exact lengths."""
        return bool(self._ids)

    def make(self, tokens: int) -> Prompt:
        """Make a prompt of so many tokens, about so many where it is a text."""
        if not self._ids:
            words = write_lines(self._rng, tokens // 4 + 2).split(" ")
            return " ".join(words[: max(1, round(tokens / self._tokens_a_word))])
        found: list[int] = []
        while len(found) < tokens:
            begin = self._rng.randrange(len(self._ids))
            found += self._ids[begin : begin + self._rng.randrange(4, 80)]
        return tuple(found[:tokens])


def source_text(rng: random.Random) -> str:
    """Write the text whose token ids prompts are cut from."""
    return write_lines(rng, _LINES)


def beginning(prompt: Prompt, share: float) -> Prompt:
    """Cut a prompt to a share of itself; a text between words."""
    if isinstance(prompt, tuple):
        return prompt[: max(1, round(len(prompt) * share))]
    words = prompt.split(" ")
    return " ".join(words[: max(1, round(len(words) * share))])


def length(prompt: Prompt) -> int:
    """Count token ids, or words of a text."""
    return len(prompt) if isinstance(prompt, tuple) else len(prompt.split(" "))


def joined(one: Prompt, other: Prompt) -> Prompt:
    """Put one prompt behind another of the same kind."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return one + other
    return f"{one} {other}"
