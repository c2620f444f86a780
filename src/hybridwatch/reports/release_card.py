"""The card of releases in words: Markdown, and the pieces that the dashboard's page has, too."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.metrics import find_metric
from hybridwatch.reports.escape import as_item, escape, render_table
from hybridwatch.reports.releases.card import Card, CardPair, Reason, Step
from hybridwatch.reports.releases.cell import CellState, ReleaseCell

_OWED: Final = "owed"
_HEAD: Final = (
    "Written by `hybridwatch releases card --out docs/releases.md` from the cells in "
    "`results/releases/` and from nothing else; not edited by hand. `hybridwatch releases run` "
    "measures what is missing. Each cell is a release on a CPU, as released, with the model runner "
    "that is named; its contracts are held against what the scenario expects of a healthy engine. "
    "What is owed is not measured yet; a dash is a scenario that does not apply. The numbers in "
    "brackets are those of the reasons below."
)


def render_card(card: Card) -> str:
    """Write the card as Markdown; the same cells and reasons give the same text."""
    parts = (
        "# Releases: may I upgrade?",
        _HEAD,
        *_cells(card),
        "## From one release to the next",
        *_steps(card),
        "## Why",
        "The findings are those of [findings.md](findings.md).",
        *_reasons(card),
        "## What is wrong, value by value",
        *_faults(card),
        "## Not there",
        *_absent(card),
    )
    return "\n\n".join(parts) + "\n"


def column_words(column: tuple[str, str]) -> str:
    """Name a release and its model runner."""
    release, runner = column
    return f"{release} {runner.upper()}"


def cell_words(cell: ReleaseCell) -> str:
    """Say what became of a scenario, with every value that is wrong."""
    values = ", ".join(f"{name} {_value(name, found)}" for name, found in cell.broken.items())
    return ": ".join(part for part in (cell.state.value, values or cell.detail) if part)


def short_words(card: Card, cell: ReleaseCell | None) -> str:
    """Say in a word what became of a scenario, with the numbers of the reasons."""
    if cell is None:
        return _OWED
    if not cell.faults:
        return cell.state.value
    numbered = card.numbers(cell)
    return f"{cell.state.value} [{', '.join(map(str, numbered)) or 'not explained'}]"


def step_words(step: Step, both: int, differences: Sequence[CardPair]) -> str:
    """Say in a line what changes from one neighbour to the other."""
    names = " to ".join(map(column_words, step))
    return f"{names}: {len(differences)} of {plural(both, 'scenario')} otherwise"


def difference_words(card: Card, pair: CardPair) -> tuple[str, str, str]:
    """Give scenario, before and after; a reason is a number, what is not there says why."""
    return pair.scenario, _side(card, pair.before), _side(card, pair.after)


def reason_words(reason: Reason) -> str:
    """Say why, where it is written up, and what became of it."""
    finding = "" if reason.finding is None else f"finding {reason.finding}"
    more = "; ".join(part for part in (finding, reason.upstream) if part)
    return f"{reason.why} ({more})" if more else reason.why


def measured_words(card: Card, column: tuple[str, str]) -> str:
    """Say on which days a column was measured, and how many trials a cell has."""
    found = [
        c for c in card.cells.values() if c.key[1:] == column and c.state is not CellState.ABSENT
    ]
    days = sorted({f"{cell.measured_at:%Y-%m-%d}" for cell in found})
    return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else numbers.ABSENT


def _side(card: Card, cell: ReleaseCell) -> str:
    words = short_words(card, cell)
    return f"{words}, {_need(cell)}" if cell.state is CellState.ABSENT else words


def _cells(card: Card) -> Iterator[str]:
    measured = [cell for cell in card.cells.values() if cell.state is not CellState.ABSENT]
    trials = sorted({cell.trials for cell in measured if cell.trials})
    total = len(card.scenarios) * len(card.columns) - (len(card.cells) - len(measured))
    counts = " to ".join(map(str, dict.fromkeys((trials[0], trials[-1])))) if trials else "0"
    red = sum(1 for cell in measured if cell.faults)
    yield (
        f"{len(measured)} of {total} cells are measured, with {counts} contract trial(s) each; "
        f"{red} are broken or fail."
    )
    columns = card.columns
    rows = [
        [f"`{one}`", *(_short(card, card.cells.get((one, *column))) for column in columns)]
        for one in card.scenarios
    ]
    rows.append(["measured", *(measured_words(card, column) for column in columns)])
    yield render_table(["scenario", *map(column_words, columns)], rows)


def _short(card: Card, cell: ReleaseCell | None) -> str:
    if cell is None or cell.state is CellState.ABSENT:
        return _OWED if cell is None else numbers.ABSENT
    words = short_words(card, cell)
    return f"**{words}**" if cell.faults else words


def _steps(card: Card) -> Iterator[str]:
    for step, (both, differences) in card.steps():
        lines = [f"**{step_words(step, both, differences)}**"]
        for pair in differences:
            scenario, before, after = difference_words(card, pair)
            lines.append(f"- `{scenario}`: {escape(before)}; then {escape(after)}")
        yield "\n".join(lines)


def _reasons(card: Card) -> Iterator[str]:
    used = {at for cell in card.cells.values() for at in card.numbers(cell)}
    yield (
        "\n".join(
            f"{at}. {reason_words(one)}"
            for at, one in enumerate(card.reasons, start=1)
            if at in used
        )
        or "Nothing is broken."
    )
    missing = [f"{_place(cell)}: {', '.join(faults)}" for cell, faults in card.unexplained()]
    if missing:
        yield "\n".join(["Not explained:", "", *map(as_item, missing)])


def _faults(card: Card) -> Iterator[str]:
    red = [cell for cell in _in_order(card) if cell.faults]
    yield "\n".join(as_item(f"{_place(cell)}: {cell_words(cell)}") for cell in red) or "Nothing."


def _absent(card: Card) -> Iterator[str]:
    places: dict[tuple[str, str], list[str]] = {}
    for cell in _in_order(card):
        if cell.state is CellState.ABSENT:
            places.setdefault((cell.scenario, _need(cell)), []).append(column_words(cell.key[1:]))
    lines = (f"{one} {need}: {', '.join(where)}" for (one, need), where in places.items())
    yield "\n".join(map(as_item, lines)) or "Nothing."


def _in_order(card: Card) -> Iterable[ReleaseCell]:
    keys = ((one, *column) for one in card.scenarios for column in card.columns)
    return (card.cells[key] for key in keys if key in card.cells)


def _place(cell: ReleaseCell) -> str:
    return f"{cell.scenario} on {column_words(cell.key[1:])}"


def _need(cell: ReleaseCell) -> str:
    return cell.detail.partition(", and ")[0]


def _value(name: str, found: float | None) -> str:
    return "has no value" if found is None else numbers.value(found, find_metric(name))
