"""What a check found on each engine, as it is kept and as a table."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.analysis.control import ENGINE_DIED
from hybridwatch_lab.mutants.table import HEALTHY, ORDER, MutantCell, MutantState, false_alarms

FOLDER: Final = "server_check"
TAKEN_OUT: Final = "~"
"""Stands before a fix that was taken out, as in a build's label."""

TOKEN_METRICS: Final = frozenset(
    f"contract.{name}" for name in ("changed_tokens", "wrong_tokens", "wrong_answers")
) | {ENGINE_DIED}
"""What kills a mutant that a client can see: other answers, or none."""


class CheckCell(MutantCell):
    """What one check found; ``metrics`` are the relations that broke.

    Attributes:
        minutes: How long the check was to take.
        requests: How many it sent.
    """

    minutes: float
    requests: int

    @property
    def key(self) -> tuple[str, str, str]:
        """Each check of a healthy engine is kept, and the last one of each fault."""
        name = f"{self.mutant} {self.measured_at}" if self.mutant == HEALTHY else self.mutant
        return self.build, self.scenario, name


def table_file(results: Path, build: str) -> Path:
    """Where the table of a build is kept."""
    return results / FOLDER / f"{build}.jsonl"


def list_candidates(cells: Iterable[MutantCell], scenario: str) -> list[str]:
    """Name the mutants that change what a client reads, as the kill tables of mutants say.

    Those of this scenario come first.
    """
    visible = [cell for cell in cells if not TOKEN_METRICS.isdisjoint(cell.metrics)]
    visible.sort(key=lambda cell: cell.scenario != scenario)
    return list(dict.fromkeys(cell.mutant for cell in visible if cell.mutant != HEALTHY))


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A fault of a build, over all the settings in which it was switched on.

    Attributes:
        best: The cell that says most of it.
        named: In how many settings a check named it, of ``tried`` where its code was reached.
    """

    best: CheckCell
    named: int
    tried: int


def list_faults(cells: Sequence[CheckCell]) -> list[FaultRow]:
    """Give each fault once, the fixes that were taken out first; those never reached left out."""
    found: dict[tuple[str, str], list[CheckCell]] = {}
    for cell in cells:
        if cell.mutant != HEALTHY and cell.state not in _SAYS_NOTHING:
            found.setdefault((cell.build, cell.mutant), []).append(cell)
    rows = [
        FaultRow(
            min(mine, key=lambda cell: ORDER.index(cell.state)),
            sum(cell.state is MutantState.KILLED for cell in mine),
            len(mine),
        )
        for mine in found.values()
    ]
    return sorted(rows, key=lambda row: not is_fix(row.best))


_SAYS_NOTHING: Final = {MutantState.NOT_REACHED, MutantState.EQUIVALENT}


def is_fix(cell: MutantCell) -> bool:
    """Whether the fault is a fix that was taken out."""
    return cell.mutant.startswith(TAKEN_OUT)


def markdown(cells: Sequence[CheckCell]) -> str:
    """The table for a page, with the sums below it."""
    lines = ["| engine | fault | settings | check says |", "| --- | --- | --- | --- |"]
    lines += [_line(row) for row in list_faults(cells)]
    return "\n".join([*lines, "", *(f"- {line}" for line in sum_up(cells))])


def _line(row: FaultRow) -> str:
    cell = row.best
    named = ", ".join(cell.metrics) if cell.metrics else "**not seen**"
    more = f" ({row.named} of {row.tried})" if row.tried > 1 else ""
    return f"| {cell.build} | `{cell.mutant}` | {cell.scenario} | {named}{more} |"


def sum_up(cells: Sequence[CheckCell]) -> Iterator[str]:
    """Say how often healthy engines were blamed, and how many faults were named."""
    for build in dict.fromkeys(cell.build for cell in cells):
        mine = [cell for cell in cells if cell.build == build]
        healthy = [cell for cell in mine if cell.mutant == HEALTHY]
        settings = len({cell.scenario for cell in healthy})
        alarms = len(false_alarms(mine))
        yield f"{build}, healthy: {alarms} alarms in {len(healthy)} checks of {settings} settings"
        rows = list_faults(mine)
        for word, kind in (("fixes taken out", True), ("mutants that changed something", False)):
            of_kind = [row for row in rows if is_fix(row.best) is kind]
            if of_kind:
                yield f"{build}, {word}: {sum(map(_is_named, of_kind))} of {len(of_kind)} named"


def _is_named(row: FaultRow) -> bool:
    return row.named > 0
