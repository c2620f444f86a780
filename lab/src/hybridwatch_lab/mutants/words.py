"""The kill table and its score as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hybridwatch.scenarios.fixes import Mutant
from hybridwatch_lab.mutants.cell import HEALTHY, MutantCell, MutantState
from hybridwatch_lab.mutants.score import (
    ORDER,
    Score,
    compute_score,
    false_alarms,
    half_words,
    halves,
)

MOST_COLUMNS: Final = 5
"""Scenarios that a table has room for."""


def cell_words(cell: MutantCell | None) -> str:
    """One cell: what killed the mutant and in how many seconds, or why nothing did."""
    if cell is None:
        return ""
    if cell.mutant == HEALTHY:
        return f"FALSE ALARM: {cell.metrics[0]}" if cell.metrics else "nothing found"
    if cell.state is not MutantState.KILLED:
        return cell.state.value
    return f"{_short(cell.metrics[0])}, {cell.seconds:.0f} s"


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
    words = _shortened if is_wide else lambda mine: [cell_words(mine.get(one)) for one in columns]
    body = (
        [name, mutant.half if mutant else "", mutant.mechanism if mutant else "", *words(mine)]
        for name, mutant, mine in rows(cells, mutants)
    )
    return ["mutant", "half", "mechanism", *head], body


def _shortened(mine: Mapping[str, MutantCell]) -> list[str]:
    alarms = [cell for cell in mine.values() if cell.mutant == HEALTHY and cell.metrics]
    if HEALTHY in {cell.mutant for cell in mine.values()}:
        return [cell_words(next(iter(alarms or mine.values()))), f"{len(mine)} scenarios", ""]
    clearest = min(mine.values(), key=lambda cell: (ORDER.index(cell.state), cell.seconds))
    killed = sum(cell.state is MutantState.KILLED for cell in mine.values())
    reached = killed + sum(cell.state is MutantState.SURVIVED for cell in mine.values())
    share = f"{killed} of {reached}" if reached else ""
    return [cell_words(clearest), clearest.scenario if reached else "", share]


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
        yield _score_line(half_words(half), compute_score(cells, members))
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


def _short(metric: str) -> str:
    return metric.removeprefix("contract.")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
