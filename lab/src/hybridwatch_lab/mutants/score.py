"""How many mutants are killed, of those that could be."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from hybridwatch.scenarios.fixes import OWN, Half, Mutant
from hybridwatch_lab.mutants.cell import HEALTHY, MutantCell, MutantState

ORDER: Final = (
    *(MutantState.KILLED, MutantState.SURVIVED, MutantState.NOT_MEASURED),
    *(MutantState.EQUIVALENT, MutantState.NOT_REACHED),
)
"""What a mutant counts as that different things became of: the first one of these."""


@dataclass(frozen=True, slots=True)
class Score:
    """The scenarios of a table together.

    Attributes:
        killed: Mutants that at least one scenario kills.
        survivors: Mutants that at least one scenario reaches and none kills, but those that change
            nothing wherever they are reached.
        unreached: Mutants that no scenario reaches.
        equivalent: Mutants that are reached and change nothing.
        unmeasured: Mutants that are reached, and what could show them was not measured.
    """

    killed: tuple[str, ...]
    survivors: tuple[str, ...]
    unreached: tuple[str, ...]
    equivalent: tuple[str, ...]
    unmeasured: tuple[str, ...]

    @property
    def share(self) -> float | None:
        """Of the reached mutants that are not equivalent, how many are killed; None without any."""
        reached = len(self.killed) + len(self.survivors)
        return len(self.killed) / reached if reached else None

    @property
    def reach(self) -> float | None:
        """Of all mutants that are not equivalent, how many are reached; None without any."""
        reached = len(self.killed) + len(self.survivors) + len(self.unmeasured)
        whole = reached + len(self.unreached)
        return reached / whole if whole else None


def compute_score(cells: Iterable[MutantCell], mutants: Mapping[str, Mutant]) -> Score:
    """Count the mutants that a table speaks of.

    Args:
        cells: The table; cells of mutants that are not in ``mutants`` are left out.
        mutants: The catalogue, or a half of it.
    """
    found: dict[MutantState, list[str]] = {state: [] for state in ORDER}
    by_mutant: dict[str, set[MutantState]] = {}
    for cell in cells:
        by_mutant.setdefault(cell.mutant, set()).add(cell.state)
    for name in mutants:
        if name in by_mutant:
            found[next(state for state in ORDER if state in by_mutant[name])].append(name)
    return Score(
        killed=tuple(found[MutantState.KILLED]),
        survivors=tuple(found[MutantState.SURVIVED]),
        unreached=tuple(found[MutantState.NOT_REACHED]),
        equivalent=tuple(found[MutantState.EQUIVALENT]),
        unmeasured=tuple(found[MutantState.NOT_MEASURED]),
    )


def halves(mutants: Mapping[str, Mutant]) -> dict[str, dict[str, Mutant]]:
    """Part the catalogue; a part for mutants of the user's own only where there are any."""
    parts = {
        half: {name: one for name, one in mutants.items() if one.half == half}
        for half in get_args(Half)
    }
    return {half: members for half, members in parts.items() if members or half != OWN}


def half_words(half: str) -> str:
    """Name a part of the catalogue."""
    return "own mutants" if half == OWN else f"{half} half"


def false_alarms(cells: Sequence[MutantCell]) -> tuple[MutantCell, ...]:
    """Cells in which something was found wrong that no mutant did."""
    return tuple(
        cell
        for cell in cells
        if cell.metrics and (cell.mutant == HEALTHY or cell.state is MutantState.NOT_REACHED)
    )
