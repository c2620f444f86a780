"""The live page and the static page say the same words and numbers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import frame
import pytest
from streamlit.testing.v1 import AppTest

from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.pages.address import Address
from hybridwatch.pages.document import Chart, Document, Paragraph, Table
from hybridwatch.pages.html import csv_of_chart, csv_of_table, static_page
from hybridwatch.pages.screens import SCREENS, ScreenSource, open_view
from hybridwatch.records.store import write_run
from hybridwatch.records.store.files import append_entry
from hybridwatch.reports.releases import cells_file
from hybridwatch_lab.mutants.table import append_cell, table_file
from tests.dashboard.live import Text, files_of, page_of, said_by
from tests.dashboard.parity import blocks_of, words_of
from tests.store_builders import REGRESSED, STARTED, TESTBED, Plan, run, scenario
from tests.unit.mutants.cells import a_cell
from tests.unit.orchestration.fleet.pretended import a_job
from tests.unit.reports.releases.cells import TOKENS
from tests.unit.reports.releases.cells import a_cell as a_cell_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)
VIEWS: dict[str, dict[str, str]] = {
    **{name: {} for name in SCREENS},
    "run": {"metric": "all", "testbed": "gone"},
    "job": {"job": a_job().key},
}
"""Parameters that show more of a screen; one that the view does not know, for the complaint."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A regression, a single build, another machine, a broken record, a mutant, a job."""
    results = tmp_path_factory.mktemp("store")
    both = run(Plan(started_at=STARTED + timedelta(hours=1), scenario=scenario("smoke/other")))
    alone = tuple(t for t in both.trials if t.side == 0)
    trials = tuple(replace(trial, index=index) for index, trial in enumerate(alone))
    write_run(results, replace(both, builds=both.builds[:1], trials=trials))
    other = replace(TESTBED, id="xeon-8c", cores=8)
    write_run(results, run(Plan(started_at=STARTED + timedelta(hours=2), testbed=other)))
    write_run(results, run(replace(REGRESSED, started_at=STARTED + timedelta(hours=3))))
    write_run(results, run(Plan(seed=9, failed_trials=1))).write_bytes(b"{")
    append_cell(table_file(results, "cpu-0.27.1"), a_cell("unzeroed-state"))
    for release, *wrong in (("0.32.0", TOKENS), ("0.31.0",)):
        append_entry(cells_file(results), a_cell_of(release, "v2", *wrong))
    queue = JobQueue(Database(find_database_url(results)))
    queue.make()
    queue.plan([a_job()])
    return results


@dataclass(frozen=True, slots=True)
class Shown:
    """A document, and how both pages show it."""

    document: Document
    live: AppTest
    static: str


@pytest.fixture(scope="module")
def shown(store: Path) -> Iterator[Callable[[str], Shown]]:
    """Draws a screen live, once; gives the document that was drawn, too."""
    drawn: list[Document] = []

    def spy(source: ScreenSource, address: Address) -> Document:
        drawn.append(open_view(replace(source, now=NOW), address))
        return drawn[-1]

    @cache
    def opened(screen: str) -> Shown:
        page = page_of(screen)
        for name, value in VIEWS[screen].items():
            page.query_params[name] = value
        page.run()
        assert not page.exception
        return Shown(drawn[-1], page, static_page(drawn[-1], NOW))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRIDWATCH_RESULTS", str(store))
        patch.setattr(frame, "_prepare_views", lambda *_: None)
        patch.setattr(frame, "open_view", spy)
        yield opened


def missing(words: list[str], text: str) -> Iterator[str]:
    """Words that a text does not hold; how lines are broken does not matter."""
    # Plotly's own JSON and its figures hold titles with other blanks and escapes.
    whole = " ".join(text.split())
    return (word for word in words if " ".join(word.split()) not in whole)


@pytest.mark.parametrize("screen", SCREENS)
def test_both_pages_say_every_word_of_the_document(screen, shown) -> None:
    both = shown(screen)
    words = words_of(both.document)
    assert len(words) > 10
    assert list(missing(words, said_by(both.live))) == []
    assert list(missing(words, Text(both.static).text)) == []


def test_the_comparison_of_words_sees_a_page_that_leaves_one_out(shown) -> None:
    both = shown("runs")
    more = replace(both.document, blocks=(*both.document.blocks, Paragraph("41.3 ms")))
    assert list(missing(words_of(more), said_by(both.live))) == ["41.3 ms"]
    assert list(missing(words_of(more), Text(both.static).text)) == ["41.3 ms"]


@pytest.mark.parametrize("screen", SCREENS)
def test_both_pages_offer_the_same_files(screen: str, shown: Callable[[str], Shown]) -> None:
    both = shown(screen)
    blocks = list(blocks_of(both.document.blocks))
    tables = [block for block in blocks if isinstance(block, Table) and block.rows]
    charts = [block for block in blocks if isinstance(block, Chart)]
    assert len(files_of(both.live)) == len(tables) + len(charts)
    assert both.static.count('class="hw-file"') == len(tables) + len(charts)
    assert all(csv_of_table(table).count("\n") > len(table.rows) for table in tables)
    assert all(csv_of_chart(chart).count("\n") > 1 for chart in charts)
