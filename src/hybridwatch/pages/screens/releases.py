"""The card of releases: may I upgrade?"""

from collections.abc import Iterator
from typing import Final

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.errors import RecordError
from hybridwatch.pages.document import (
    Block,
    Cell,
    Column,
    Command,
    Document,
    FieldKind,
    Notice,
    Paragraph,
    Table,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.reports.release_card import (
    cell_words,
    column_words,
    difference_words,
    measured_words,
    reason_words,
    short_words,
    step_words,
)
from hybridwatch.reports.releases.card import Card, read_card
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home_or_shipped

_LEAD: Final = (
    "What the contracts of each scenario show on each vLLM release and model runner, as released; "
    "numbers in brackets are those of the reasons."
)


def show(source: ScreenSource, query: ViewQuery) -> Document:  # noqa: ARG001 (nothing can be chosen)
    """Show every release that was measured, what differs between two, and why."""
    try:
        card = read_card(source.results, find(home_or_shipped() / "scenarios", []))
    except RecordError as error:
        wrong = Notice(FieldKind.LOUD, "The card cannot be read", tuple(str(error).splitlines()))
        return Document("Releases", (wrong,), lead=_LEAD)
    if not card.cells:
        hint = "No release was measured yet. It takes hours; a run that is stopped goes on later:"
        blocks: tuple[Block, ...] = (Paragraph(hint), Command("hybridwatch releases run"))
        return Document("Releases", blocks, lead=_LEAD)
    return Document("Releases", tuple(_blocks(card)), lead=_LEAD)


def _blocks(card: Card) -> Iterator[Block]:
    unexplained = list(card.unexplained())
    if unexplained:
        told = tuple(f"{' '.join(cell.key)}: {', '.join(faults)}" for cell, faults in unexplained)
        yield Notice(FieldKind.LOUD, f"{plural(len(told), 'cell')} not explained", told)
    names = [Column(column_words(column)) for column in card.columns]
    rows = [
        (Cell(one), *(_cell(card, (one, *column)) for column in card.columns))
        for one in card.scenarios
    ]
    days = (Cell(measured_words(card, column)) for column in card.columns)
    lines = (*rows, (Cell("measured"), *days))
    yield Table("Releases", (Column("scenario"), *names), lines, visible=True)
    steps = [
        (step_words(step, both, pairs), *difference_words(card, pair))
        for step, (both, pairs) in card.steps()
        for pair in pairs
    ]
    columns = ("step", "scenario", "before", "after")
    yield Table("Differences", tuple(map(Column, columns)), tuple(steps), visible=True)
    reasons = [(str(at), reason_words(one)) for at, one in enumerate(card.reasons, start=1)]
    columns_of_reasons = (Column("number", number=True), Column("why", wide=True))
    yield Table("Reasons", columns_of_reasons, tuple(reasons), visible=True)


def _cell(card: Card, key: tuple[str, str, str]) -> Cell:
    cell = card.cells.get(key)
    return Cell(short_words(card, cell), title=cell_words(cell) if cell else "")
