"""Which mutant is on in this process."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from hybridwatch_engine.mutants.headers import MutantHeader, Process, mutant_headers
from hybridwatch_engine.mutants.mutant import patches_of
from hybridwatch_engine.mutants.tally import Tally
from hybridwatch_engine.patch import PatchSet


class MutantBoard:
    """The mutants of one part of the engine, of which at most one is on.

    Args:
        headers: Those there are.
        process: The part of the engine; mutants of another one do nothing here.
    """

    def __init__(self, headers: Mapping[str, MutantHeader], process: Process) -> None:
        self._headers = headers
        self._process = process
        self._made: dict[str, PatchSet] = {}
        self._on: str | None = None
        self._tally = Tally()

    def switch(self, name: str | None) -> dict[str, Any]:
        """Have this mutant on from now on, counting from zero, and no other; None for none.

        Returns:
            ``error`` when there is no such mutant, or when it does not fit this plugin or this
            vLLM. Raising would end the engine; the caller decides what a refusal means.
        """
        try:
            patches = None if name is None else self._patches(name)
        except ValueError as error:
            return {"error": str(error)}
        if self._on is not None:
            self._made[self._on].remove()
        self._on = None if patches is None else name
        self._tally.clear()
        if patches is not None:
            patches.install()
        return {"mutant": name}

    def counts(self) -> dict[str, int]:
        """How often the code of the mutant that is on ran, and changed something."""
        return {"reached": self._tally.reached, "changed": self._tally.changed}

    def _patches(self, name: str) -> PatchSet | None:
        if name not in self._headers:
            known = ", ".join(self._headers)
            raise ValueError(f"no mutant {name!r} to switch on; known: {known}")
        if self._headers[name].process != self._process:
            return None
        if name not in self._made:
            self._made[name] = patches_of(self._headers[name], self._tally)
        return self._made[name]


@cache
def mutant_board(process: Process) -> MutantBoard:
    """The one of a part of the engine; with one process for all, both are in it."""
    return MutantBoard(mutant_headers(), process)
