"""What prompts say: letters without sense, or something that a model must remember.

A model that was trained to recall notices a damaged state at once, where one that babbles on after
random letters may not. Token ids are printable bytes, which every vocabulary has among its small
ids and which are the tokens of the embedded models.
"""

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

Unit = Callable[[], float]
"""A stream of numbers from 0 to below 1."""

Tokens = tuple[int, ...]

_T = TypeVar("_T")

_SYMBOLS: Final = (string.ascii_letters + string.digits + " ").encode("ascii")
_LETTERS: Final = string.ascii_lowercase
_WORDS: Final = ("the", "old", "mill", "is", "quiet", "rain", "falls", "on", "stone", "steps")
_PAIRS: Final = 4
_VALUE: Final = 4
QUESTION: Final = len("?K4=")
"""Tokens of a question alone."""

SHORTEST_RECALL: Final = 2 * len("K4=abcd\n") + QUESTION
"""Prompts that are shorter than two pairs and a question are random letters."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The beginning of a prompt.

    Attributes:
        keys: What can be asked about it; none for random letters.
    """

    tokens: Tokens = ()
    keys: tuple[str, ...] = ()


def random_text(unit: Unit, tokens: int) -> Tokens:
    """Letters, digits and blanks."""
    return tuple(_pick(unit, _SYMBOLS) for _ in range(tokens))


def listing(unit: Unit, tokens: int) -> Listing:
    """Lines such as ``K4=abcd``, then words, so many tokens in all."""
    lines, keys = "", list[str]()
    while len(keys) < _PAIRS and len(lines) + len("K4=abcd\n") <= tokens:
        key = _pick(unit, string.ascii_uppercase) + _pick(unit, string.digits)
        if key not in keys:
            keys.append(key)
            lines += f"{key}={''.join(_pick(unit, _LETTERS) for _ in range(_VALUE))}\n"
    return Listing(_encode(lines + _words(unit, tokens - len(lines))), tuple(keys))


def question(unit: Unit, about: Listing, tokens: int) -> Tokens:
    """Words, and at the end the question for one of a listing's values."""
    if not about.keys or tokens < QUESTION:
        return random_text(unit, tokens)
    query = f"?{_pick(unit, about.keys)}="
    return _encode(_words(unit, tokens - len(query)) + query)


def _words(unit: Unit, length: int) -> str:
    """Words on one line, cut to the length; ends its line."""
    text = ""
    while len(text) < length:
        text += f"{_pick(unit, _WORDS)} "
    return text[: length - 1] + "\n" if length else ""


def _pick(unit: Unit, of: Sequence[_T]) -> _T:
    return of[int(unit() * len(of))]


def _encode(text: str) -> Tokens:
    return tuple(text.encode("ascii"))
