"""The kill table: mutants, cells, where it lies, how many are killed, and all of it as text.

Tables and code of the lab's mutants lie in one folder, which an engine's settings name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final, get_args

from pydantic import ConfigDict

from hybridwatch.errors import ScenarioError
from hybridwatch.records.store.files import JournalEntry, append_entry, read_entries
from hybridwatch.scenarios.fixes import OWN, Half, Mutant, load_mutants, own_faults
from hybridwatch_lab.in_engine import MUTANTS

_CALLED: Final = f"{MUTANTS.parent.name}/{MUTANTS.name}"


def catalogue() -> Mapping[str, Mutant]:
    """Every mutant by its name, in the order of tables: the first half first, own ones last."""
    shipped, own = _shipped(), own_faults()
    for name in own.keys() & shipped.keys():
        raise ScenarioError(
            f"{own[name].file}: mutant.{name}: expected a name that is not taken yet, found one "
            f"that {_CALLED}/{shipped[name].half}.toml has"
        )
    return {**shipped, **{name: one.mutant for name, one in own.items()}}


@cache
def _shipped() -> Mapping[str, Mutant]:
    first, second = map(load_mutants, (MUTANTS / "first.toml", MUTANTS / "second.toml"))
    return {**first, **second}


HEALTHY: Final = "(healthy)"
"""Stands where a mutant's name stands, for the engine without any."""


class MutantState(StrEnum):
    """What became of a mutant in a scenario."""

    KILLED = "killed"
    SURVIVED = "survived"
    """Its code ran and changed something, and nothing that the scenario measures shows it."""
    EQUIVALENT = "equivalent"
    """Its code ran and, by its own count, changed nothing; or its header says that it cannot."""
    NOT_REACHED = "not reached"
    """Its code never ran."""
    NOT_MEASURED = "not measured"
    """What could show it, answers or times, was not measured."""


class MutantCell(JournalEntry):
    """What became of a mutant in a scenario.

    Attributes:
        mutant: Its name, or ``HEALTHY``.
        mutant_digest: Of what the mutant did; empty for the healthy engine.
        scenario_digest: Of the work that the engine got.
        metrics: What killed it, the clearest first; ``engine_died``, ``timeout`` and
            ``failed_trial`` stand for a trial that gave no measurement.
        detail: How clearly, in one line.
        seconds: Of trials until it was killed, or until all were over.
        reached: How often its code ran; None when the engine took the count with it.
        changed: How often it changed something, likewise.
        measured_at: UTC.
        revision: Commit of hybridwatch, None outside a checkout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mutant: str
    scenario: str
    build: str
    mutant_digest: str
    scenario_digest: str
    state: MutantState
    metrics: tuple[str, ...] = ()
    detail: str = ""
    seconds: float = 0.0
    reached: int | None = None
    changed: int | None = None
    trials: int = 0
    measured_at: datetime
    release: str
    revision: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Which cell of which table it is; a later one of the same key takes its place."""
        return self.build, self.scenario, self.mutant


FOLDER: Final = "mutants"


def table_file(results: Path, build: str) -> Path:
    """Where the table of a build is kept."""
    return results / FOLDER / f"{build}.jsonl"


def table_files(results: Path) -> list[Path]:
    """Find the tables in a results folder, by name."""
    return sorted((results / FOLDER).glob("*.jsonl"))


def read_cells(path: Path) -> list[MutantCell]:
    """Give the newest cell of each mutant and scenario (``read_entries``)."""
    return read_entries(path, MutantCell)


append_cell = append_entry


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
    """Count the mutants that a table speaks of."""
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


def render_half(half: str) -> str:
    """Name a part of the catalogue."""
    return "own mutants" if half == OWN else f"{half} half"


def false_alarms(cells: Sequence[MutantCell]) -> tuple[MutantCell, ...]:
    """Cells in which something was found wrong that no mutant did."""
    return tuple(
        cell
        for cell in cells
        if cell.metrics and (cell.mutant == HEALTHY or cell.state is MutantState.NOT_REACHED)
    )


MOST_COLUMNS: Final = 5
"""Scenarios that a table has room for."""


def render_kill(cell: MutantCell | None) -> str:
    """One cell: what killed the mutant and in how many seconds, or why nothing did."""
    if cell is None:
        return ""
    if cell.mutant == HEALTHY:
        return f"FALSE ALARM: {cell.metrics[0]}" if cell.metrics else "nothing found"
    if cell.state is not MutantState.KILLED:
        return cell.state.value
    return f"{cell.metrics[0].removeprefix('contract.')}, {cell.seconds:.0f} s"


def rows(
    cells: Sequence[MutantCell], mutants: Mapping[str, Mutant]
) -> Iterator[tuple[str, Mutant | None, dict[str, MutantCell]]]:
    """Yield the table's rows: the healthy engine, then each mutant that was measured."""
    for name in (HEALTHY, *mutants):
        mine = {cell.scenario: cell for cell in cells if cell.mutant == name}
        if mine:
            yield name, mutants.get(name), mine


def list_scenarios(cells: Sequence[MutantCell]) -> list[str]:
    """Name the table's columns."""
    return sorted({cell.scenario for cell in cells})


def grid(
    cells: Sequence[MutantCell], mutants: Mapping[str, Mutant]
) -> tuple[list[str], Iterator[list[str]]]:
    """Head and rows of the table for a reader.

    A column for each scenario; where these are more than ``MOST_COLUMNS``, the quickest kill of
    each mutant, and how many of the scenarios that reach it kill it.
    """
    columns = list_scenarios(cells)
    is_wide = len(columns) > MOST_COLUMNS
    head = ["found", "in", "killed in"] if is_wide else columns
    words = _shortened if is_wide else lambda mine: [render_kill(mine.get(one)) for one in columns]
    body = (
        [name, mutant.half if mutant else "", mutant.mechanism if mutant else "", *words(mine)]
        for name, mutant, mine in rows(cells, mutants)
    )
    return ["mutant", "half", "mechanism", *head], body


def _shortened(mine: Mapping[str, MutantCell]) -> list[str]:
    alarms = [cell for cell in mine.values() if cell.mutant == HEALTHY and cell.metrics]
    if HEALTHY in {cell.mutant for cell in mine.values()}:
        return [render_kill(next(iter(alarms or mine.values()))), f"{len(mine)} scenarios", ""]
    clearest = min(mine.values(), key=lambda cell: (ORDER.index(cell.state), cell.seconds))
    killed = sum(cell.state is MutantState.KILLED for cell in mine.values())
    reached = killed + sum(cell.state is MutantState.SURVIVED for cell in mine.values())
    share = f"{killed} of {reached}" if reached else ""
    return [render_kill(clearest), clearest.scenario if reached else "", share]


def markdown(cells: Sequence[MutantCell], mutants: Mapping[str, Mutant]) -> str:
    """The table for a page."""
    head, body = grid(cells, mutants)
    lines = [_line(head), _line(["---"] * len(head))]
    for name, *words in body:
        lines.append(_line([f"`{name}`" if name in mutants else "healthy engine", *words]))
    return "\n".join(lines)


def score_lines(cells: Sequence[MutantCell], mutants: Mapping[str, Mutant]) -> Iterator[str]:
    """Say how much is killed, of both halves apart, and what survives."""
    for half, members in halves(mutants).items():
        yield _score_line(render_half(half), compute_score(cells, members))
    whole = compute_score(cells, mutants)
    yield _score_line("together", whole)
    tried = {cell.mutant for cell in cells} & mutants.keys()
    if len(tried) < len(mutants):
        yield f"PARTIAL: {len(tried)} of {len(mutants)} mutants are in the table"
    named = {
        "survivors": whole.survivors,
        "not reached": whole.unreached,
        "equivalent": whole.equivalent,
        "not measured": whole.unmeasured,
    }
    for word, names in named.items():
        if names:
            yield f"{word}: {', '.join(names)}"
    for cell in false_alarms(cells):
        yield f"FALSE ALARM: {cell.scenario}, {cell.mutant}: {cell.detail}"


def score_json(score: Score) -> dict[str, object]:
    """A score for other programs."""
    return {
        "killed": list(score.killed),
        "survivors": list(score.survivors),
        "not_reached": list(score.unreached),
        "equivalent": list(score.equivalent),
        "not_measured": list(score.unmeasured),
        "killed_of_reached": score.share,
        "reached_of_all": score.reach,
    }


def _score_line(name: str, score: Score) -> str:
    reached = len(score.killed) + len(score.survivors)
    share = "" if score.share is None else f" ({score.share:.0%})"
    text = f"{name}: {len(score.killed)} killed of {reached} reached{share}"
    reach = "" if score.reach is None else f", {score.reach:.0%} of all that can be"
    return text + (f"; reached{reach}" if reach else "")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
