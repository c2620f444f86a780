"""Which scenarios kill the most mutants in the least time: how the group smoke is chosen.

Greedy set cover, Chvatal 1979: the scenario with the most kills a second that no scenario before
it has, until all kills are covered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hybridwatch_lab.mutants.table import HEALTHY, MutantCell, MutantState

START_S: Final = 20.0
"""What an engine takes to start, whatever the scenario; ``make run`` says it."""


@dataclass(frozen=True, slots=True)
class CoverStep:
    """A scenario that is added to those before it."""

    scenario: str
    seconds: float
    new: tuple[str, ...]
    killed: int


def choose_cover(cells: Sequence[MutantCell]) -> list[CoverStep]:
    """Order scenarios by what each adds a second; those that add nothing are left out."""
    kills = _kills(cells)
    seconds = {one.scenario: START_S + one.seconds for one in cells if one.mutant == HEALTHY}
    steps: list[CoverStep] = []
    covered: set[str] = set()
    left = sorted(kills.keys() & seconds.keys())
    while left:
        best = max(left, key=lambda one: len(kills[one] - covered) / seconds[one])
        new = kills[best] - covered
        if not new:
            break
        covered |= new
        left.remove(best)
        steps.append(CoverStep(best, seconds[best], tuple(sorted(new)), len(covered)))
    return steps


def cover_lines(cells: Sequence[MutantCell]) -> Iterator[str]:
    """Say what each group of scenarios kills of all, and which few would kill them all."""
    kills = _kills(cells)
    every = frozenset[str]().union(*kills.values())
    for group in sorted({scenario.partition("/")[0] for scenario in kills}):
        of_group = (kills[one] for one in kills if one.startswith(f"{group}/"))
        mine = frozenset[str]().union(*of_group)
        missed = f"; not {', '.join(sorted(every - mine))}" if every - mine else ""
        yield f"{group}: {_share(len(mine), len(every))}{missed}"
    yield "in order of kills a second:"
    spent = 0.0
    for step in choose_cover(cells):
        spent += step.seconds
        more = f"{len(step.new)} more in {step.seconds:.0f} s"
        yield f"{step.scenario}: {more}; {_share(step.killed, len(every))}, {spent:.0f} s"


def _kills(cells: Sequence[MutantCell]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {cell.scenario: set() for cell in cells}
    for cell in cells:
        if cell.state is MutantState.KILLED and cell.mutant != HEALTHY:
            found[cell.scenario].add(cell.mutant)
    return {scenario: frozenset(names) for scenario, names in found.items()}


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} killed ({part / whole:.0%})" if whole else "nothing is killed"
