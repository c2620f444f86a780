"""``python -m hybridwatch_engine.cpu.kernels.fault``: what the compiled state update gets wrong.

The compiled ``selective_state_update`` of the installed vLLM, untouched, in four calls: three draft
tokens with a state slot each; a step after two accepted tokens; two rows; a step that goes on in
another slot. Prints what each slot should hold and holds. The exit status is 0 when the fault shows
and 1 when it is gone.
"""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from torch import Tensor

TOKENS: Final = 3
HEADS, CHANNELS, ENTRIES = 1, 2, 8
SOURCE: Final = 1
"""Slot of the first token; those of the others follow. Slot 0 is the null block."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What one slot should hold after a call and what it holds.

    Attributes:
        call: Which call.
        slot: Which slot.
        expected: Its content, in words.
        found: Likewise.
    """

    call: str
    slot: int
    expected: str
    found: str


class Demonstration:
    """One row of random tokens and the states it should go through."""

    def __init__(self) -> None:
        import torch

        torch.manual_seed(0)
        self.x = torch.randn(TOKENS, HEADS, CHANNELS)
        self.dt = torch.rand(TOKENS, HEADS)
        self.b = torch.randn(TOKENS, 1, ENTRIES)
        self.rate = -torch.rand(HEADS)
        self.cache = torch.randn(6, HEADS, CHANNELS, ENTRIES)

    def drafts(self) -> list[Slot]:
        """Three tokens, a slot each: slot by slot the state after its token."""
        slots = list(range(SOURCE, SOURCE + TOKENS))
        cache = self.run([slots], [slots], accepted=[1], lengths=[TOKENS])
        known = self.known(SOURCE, TOKENS)
        return [
            Slot("three tokens, a slot each", slot, f"state after token {place}", named)
            for place, slot in enumerate(slots, 1)
            for named in [name(cache[slot], known)]
        ]

    def accepted(self) -> list[Slot]:
        """One token after two accepted ones: the step goes on from the second slot."""
        slots = [SOURCE, SOURCE + 1]
        cache = self.run([slots], [slots], accepted=[2], lengths=[1])
        known = self.known(SOURCE, 1, "first") | self.known(SOURCE + 1, 1, "second")
        expected = "state after token 1, from the second slot"
        return [Slot("two tokens accepted before", SOURCE, expected, name(cache[SOURCE], known))]

    def two_rows(self) -> list[Slot]:
        """Two rows of one token with two slots each: the second row has its own."""
        slots = [[1, 2], [3, 4]]
        cache = self.run(slots, slots, accepted=[1, 1], lengths=[1, 1])
        known = self.known(slots[1][0], 1, first=1)
        known = {what.replace("token 2", "its token"): state for what, state in known.items()}
        found = name(cache[slots[1][0]], known)
        return [Slot("two rows, two slots each", slots[1][0], "state after its token", found)]

    def moved(self) -> list[Slot]:
        """One token whose state goes to another slot: the slot it comes from stays."""
        target = SOURCE + 1
        cache = self.run([[SOURCE]], [[target]], accepted=None, lengths=[1])
        known = self.known(SOURCE, 1)
        call = "another slot to write to"
        return [
            Slot(call, SOURCE, "as before", name(cache[SOURCE], known)),
            Slot(call, target, "state after token 1", name(cache[target], known)),
        ]

    def known(
        self, source: int, tokens: int, slot: str = "", first: int = 0
    ) -> dict[str, "Tensor"]:
        """The states that a row passes, by names."""
        import torch

        state, origin = self.cache[source].clone(), f", from the {slot} slot" if slot else ""
        states = {f"as before{origin}": state}
        for token in range(first, first + tokens):
            step = self.dt[token].reshape(HEADS, 1, 1)
            added = step * self.x[token].unsqueeze(-1) * self.b[token].unsqueeze(1)
            state = state * torch.exp(step * self.rate.reshape(HEADS, 1, 1)) + added
            states[f"state after token {token + 1}{origin}"] = state
        return states

    def run(
        self,
        read: Sequence[Sequence[int]],
        write: Sequence[Sequence[int]],
        accepted: Sequence[int] | None,
        lengths: Sequence[int],
    ) -> "Tensor":
        """Call the compiled kernel; the cache after it."""
        import torch
        from vllm._custom_ops import selective_state_update_cpu

        def int32(values: Sequence[int] | Sequence[Sequence[int]]) -> "Tensor":
            return torch.tensor(values, dtype=torch.int32)

        cache, tokens = self.cache.clone(), sum(lengths)
        nothing = torch.zeros(HEADS, 1).expand(HEADS, CHANNELS)
        counted = accepted is not None
        selective_state_update_cpu(
            cache,
            self.x[:tokens],
            self.dt[:tokens].unsqueeze(-1).expand(-1, -1, CHANNELS),
            self.rate.reshape(HEADS, 1, 1).expand(HEADS, CHANNELS, ENTRIES),
            self.b[:tokens],
            self.b[:tokens],
            nothing,
            None,
            nothing,
            False,
            int32(read) if counted else int32(read)[:, 0],
            int32(write) if counted else int32(write)[:, 0],
            0,
            torch.empty(tokens, HEADS, CHANNELS),
            None if accepted is None else int32(accepted),
            int32([0, *accumulate(lengths)]) if counted else None,
        )
        return cache


def name(state: "Tensor", known: dict[str, "Tensor"]) -> str:
    """Which of the states it is."""
    import torch

    names = [what for what, value in known.items() if torch.allclose(state, value, atol=1e-5)]
    return " or ".join(names) or "something else"


def main() -> int:
    """Print the table."""
    with redirect_stdout(sys.stderr):  # vLLM talks on standard output
        import vllm

        shown = Demonstration()
        slots = [*shown.drafts(), *shown.accepted(), *shown.two_rows(), *shown.moved()]
    rows = [("call", "slot", "should hold", "holds")]
    rows += [(slot.call, str(slot.slot), slot.expected, slot.found) for slot in slots]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row, mark in zip(rows, ["", *(s.expected != s.found for s in slots)], strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(f"{cells}{'  WRONG' if mark else ''}".rstrip() + "\n")
    wrong = sum(slot.expected != slot.found for slot in slots)
    sys.stdout.write(f"vLLM {vllm.__version__}: {wrong} of {len(slots)} slots wrong\n")
    return int(wrong == 0)


if __name__ == "__main__":
    sys.exit(main())
