"""What an engine said to one request of a contract trial, token by token."""

from dataclasses import dataclass
from typing import Final, NamedTuple

CLOSE: Final = 0.5
"""Nats within which a token that was not chosen is kept beside the chosen one."""
DIGITS: Final = 5
"""Of a logarithm: a hundredth of the least gap that anybody asks about."""


class CloseCall(NamedTuple):
    """A token that was nearly chosen.

    Attributes:
        position: Place in the answer, from 0.
        token: Id of the token that was not chosen.
        gap: How far its logarithmic probability lies behind that of the chosen token, nats.
    """

    position: int
    token: int
    gap: float


@dataclass(frozen=True, slots=True)
class Completion:
    """A greedy answer.

    Attributes:
        prompt: First eight hexadecimal digits of the SHA-256 of the prompt's token ids, written in
            decimal with commas between them.
        tokens: Ids of the answer's tokens.
        logprobs: Natural logarithm of the probability of each; empty where the engine keeps that to
            itself.
        close_calls: Tokens less than ``CLOSE`` behind, of the five likeliest at each position.
        is_wrong: Whether the tokens differ from those of the same engine without graphs; ``None``
            where there is no such reference.
    """

    prompt: str
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...] = ()
    close_calls: tuple[CloseCall, ...] = ()
    is_wrong: bool | None = None

    def gap(self, position: int, token: int) -> float | None:
        """How far a token lies behind the chosen one; ``None`` when that is not known to be near.

        Args:
            position: Place in the answer.
            token: Id.
        """
        found = (one.gap for one in self.close_calls if one[:2] == (position, token))
        return next(found, None)
