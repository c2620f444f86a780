"""Stores of controls and comparisons, and what a screen says of them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from hybridwatch.analysis.alert_decisions import Decision
from hybridwatch.analysis.alerts import Alert
from hybridwatch.database.decisions import open_triage
from hybridwatch.database.queries import open_index
from hybridwatch.history.checkout import Checkout
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    ChoiceField,
    Document,
    Filters,
    Notice,
    Table,
    build_cell,
    plain,
)
from hybridwatch.pages.screens import ScreenSource, open_view
from hybridwatch.pages.screens.screen import alerts_here
from hybridwatch.records.identity import ScenarioRef
from hybridwatch.records.run import Run
from hybridwatch.records.store import write_run
from tests.builders import BASELINE, CONTENDER, NIGHTLY, SCENARIO, STARTED, a_run, noisy
from tests.dashboard.parity import blocks_of

NOW = STARTED + timedelta(days=30, hours=3)
FIX = "padded-rows-prefilling"
UPGRADE = (BASELINE, NIGHTLY)
KNOWN_BAD = (BASELINE, CONTENDER)
EQUAL = (BASELINE, BASELINE)
RIGHT, WRONG = "1" * 30, "0" * 30


def put(
    results: Path,
    number: int,
    *,
    slower: float = 1.0,
    broken: float = 0.0,
    answers: str = RIGHT,
    scenario: str = SCENARIO.id,
    **changes: Any,
) -> str:
    """Store the run of a night; gives its id.

    The contender is slower by a factor, breaks a contract so often, and gives these answers.
    """
    run = a_run(
        {
            "ttft": noisy(0.1, seed=number + 500),
            "contract.padded_rows_prefilling": (0.0, 0.0),
            "accuracy.recall": RIGHT,
        },
        {
            "ttft": noisy(0.1 * slower, seed=number + 1500),
            "contract.padded_rows_prefilling": (broken, broken),
            "accuracy.recall": answers,
        },
        id=f"{abs(number):08x}",
        started_at=STARTED + timedelta(days=number),
        scenario=ScenarioRef(scenario, 1, "d" * 64, FIX),
        **changes,
    )
    write_run(results, run)
    return run.id


def one_side(made: Run, side: int = 0) -> Run:
    """A run of one build: a side of another."""
    kept = (trial for trial in made.trials if trial.side == side)
    trials = tuple(replace(trial, index=at, side=0) for at, trial in enumerate(kept))
    return replace(made, builds=(made.builds[side],), trials=trials)


def source_of(results: Path, checkout: Checkout | None = None) -> ScreenSource:
    """What screens look at."""
    found = checkout or Checkout()
    return ScreenSource(results, open_index(results), NOW, checkout=lambda: found)


def view(
    results: Path, screen: str, checkout: Checkout | None = None, **parameters: str | list[str]
) -> Document:
    """What a screen says of a store."""
    return open_view(source_of(results, checkout), address(screen, **parameters))


def act(results: Path, alert: Alert, what: Decision, who: str, hours_ago: float = 1.0) -> None:
    """Keep what somebody did."""
    with open_triage(results) as triage:
        triage.decide(alert, what, who, NOW - timedelta(hours=hours_ago))


def alerts(results: Path, checkout: Checkout | None = None) -> tuple[Alert, ...]:
    """Every alert of a store, member by member."""
    groups = alerts_here(source_of(results, checkout))
    return tuple(one for group in groups for one in group.members)


def all_blocks(document: Document) -> list[Block]:
    """Every block of a document, the ones within others too."""
    return list(blocks_of(document.blocks))


def of_kind(document: Document, kind: type[Any]) -> list[Any]:
    """Every block of a kind."""
    return [block for block in all_blocks(document) if isinstance(block, kind)]


def choices(document: Document) -> dict[str, ChoiceField]:
    return {c.parameter: c for filters in of_kind(document, Filters) for c in filters.choices}


def table(document: Document, caption: str) -> Table:
    """The table of a caption."""
    (found,) = (b for b in all_blocks(document) if isinstance(b, Table) and b.caption == caption)
    return found


def rows(document: Document, caption: str) -> list[list[str]]:
    """What a table says, cell by cell: content and the line under it."""
    return [[_text(build_cell(cell)) for cell in row] for row in table(document, caption).rows]


def _text(cell: Cell) -> str:
    return "|".join(filter(None, (plain(cell.content), plain(cell.under))))


def notices(document: Document) -> list[Notice]:
    """Every notice of a document."""
    return [block for block in all_blocks(document) if isinstance(block, Notice)]
