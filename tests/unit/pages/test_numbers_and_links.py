"""Every number beside a link is the number of what the link shows: all links of all pages.

A store of two weeks on two testbeds, with a step, lost answers, a contract that breaks for one
night, an engine that dies for one night, an improvement, and a control that is not caught.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

import pytest

from hybridwatch.database.queries import open_index
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.entry import load_entry
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import (
    Cell,
    Command,
    Document,
    Grade,
    Inline,
    Line,
    Link,
    Notice,
    Paragraph,
    Table,
    build_cell,
    pieces,
    plain,
)
from hybridwatch.pages.screens import ScreenSource, open_view, overview_news
from hybridwatch.records.identity import EngineBuild, ScenarioRef
from hybridwatch.records.run import Failure, Run
from hybridwatch.records.store import write_run
from tests.broken_engines import with_deaths
from tests.builders import BASELINE, STARTED, TESTBED, Trials, a_build, a_run, noisy
from tests.dashboard.parity import blocks_of, words_of
from tests.unit.pages.suite_stores import FIX, KNOWN_BAD, RIGHT, put

NIGHTS = 14
NOW = STARTED + timedelta(days=NIGHTS, hours=3)
OTHER = replace(TESTBED, id="xeon-8c", cores=8)
FASTER = "smoke/dummy-run"
DEAD_NIGHT, BROKEN_NIGHT = 6, 9
CHANGE = re.compile(
    r"([a-z_]+(?:\.[a-z_]+)?(?: p\d+)?) ([+-]\d+(?:\.\d+)?(?: %| points)?)(?!\d|\.\d)"
)
"""A metric and its change in a sentence, as ``wording`` writes them."""


def answers(lost: int) -> str:
    return "0" * lost + "1" * (len(RIGHT) * 4 - lost)


def nightly(night: int) -> tuple[EngineBuild, EngineBuild]:
    """The baseline, and a build of seven more commits each night."""
    release = f"0.28.1.dev{7 * night}+g{0xABC0000 + night:07x}"
    return BASELINE, replace(a_build("cpu-nightly"), release=release)


def answered(night: int) -> Run:
    """A run that loses more answers every night from the eighth on, and is dead in one before."""
    sides: list[dict[str, Trials]] = [
        {"ttft": noisy(0.1, 10, seed=night + seed), "accuracy.recall": answers(lost)}
        for seed, lost in ((2000, 0), (3000, 0 if night < 7 else 20 + night))
    ]
    run = a_run(
        sides[0],
        {} if night == DEAD_NIGHT else sides[1],
        id=f"{200 + night:08x}",
        started_at=STARTED + timedelta(days=night),
        scenario=ScenarioRef("smoke/answers", 1, "d" * 64, FIX),
        builds=nightly(night),
    )
    return with_deaths(run, 1, Failure("it died", "x", True)) if night == DEAD_NIGHT else run


def fill(results: Path) -> None:
    """Make the store; no two nights have the same numbers."""
    for night in range(NIGHTS):
        slower = 1.0 if night < 5 else 1.3 + 0.02 * night
        put(
            results,
            night,
            slower=slower,
            builds=nightly(night),
            broken=4.0 * (night == BROKEN_NIGHT),
        )
        faster, builds = 1.0 if night < 8 else 0.7 - 0.01 * night, nightly(night)
        put(results, 100 + night, slower=faster, builds=builds, testbed=OTHER, scenario=FASTER)
        write_run(results, answered(night))
    put(results, 300, builds=KNOWN_BAD, scenario="smoke/control")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> ScreenSource:
    results = tmp_path_factory.mktemp("results")
    fill(results)
    read = lru_cache(maxsize=None)(load_entry)
    return ScreenSource(results, open_index(results), NOW, read=read, checkout=Checkout)


@dataclass(frozen=True)
class Claim:
    """A number beside links."""

    page: Address
    metric: str
    change: str
    line: str
    links: tuple[Address, ...]


def every_page(source: ScreenSource) -> dict[Address, Document]:
    """Open everything that can be reached from the overview."""
    found: dict[Address, Document] = {}
    ahead = [address("overview", since=30), address("runs"), address("alerts", status="all")]
    while ahead:
        here = ahead.pop()
        if here in found:
            continue
        found[here] = document = open_view(source, here)
        ahead += [to for line in lines_of(document) for to in links_in(line)]
    return found


def lines_of(document: Document) -> Iterator[tuple[Inline, ...]]:
    """Every line, a row of a table as one."""
    for block in blocks_of(document.blocks):
        if isinstance(block, Table):
            for row in block.rows:
                parts = [(*pieces(c.content), " ", *pieces(c.under)) for c in map(build_cell, row)]
                yield tuple(piece for part in parts for piece in (*part, " "))
        elif isinstance(block, Paragraph):
            yield pieces(block.line)
        elif isinstance(block, Notice):
            yield from map(pieces, block.lines)


def cells_of(document: Document) -> Iterator[Cell]:
    for block in blocks_of(document.blocks):
        if isinstance(block, Table):
            yield from (build_cell(cell) for row in block.rows for cell in row)


def links_in(line: Line) -> tuple[Address, ...]:
    found = (piece.to for piece in pieces(line) if isinstance(piece, Link))
    return tuple(to for to in found if isinstance(to, Address))


def claims(page: Address, document: Document) -> Iterator[Claim]:
    """Every number of a page that stands beside links to runs or alerts."""
    for line in lines_of(document):
        links = links_in(line)
        text = plain(tuple(piece for piece in line if not isinstance(piece, Grade)))
        # A change point is of the history on the same page, and leads to where it begins.
        of_history = any(to.screen == "compare" for to in links) and page.screen == "scenario"
        if any(to.screen in {"run", "alerts"} for to in links) and not of_history:
            for metric, change in CHANGE.findall(text):
                yield Claim(page, metric, change, text, links)
    for cell in cells_of(document):  # of the grid: the metric is named by the link alone
        links = links_in(cell.under)
        metrics = [
            to.values("metric")[0] for to in links if to.screen == "run" and to.values("metric")
        ]
        grades = [piece for piece in pieces(cell.content) if isinstance(piece, Grade)]
        for metric, grade in zip(metrics, grades, strict=False):
            yield Claim(page, metric, grade.words, plain(cell.under), links)


def shown_by(run: Document) -> dict[str, str]:
    """The change of each metric, as the page of a run shows it."""
    tables = [b for b in blocks_of(run.blocks) if isinstance(b, Table)]
    table = next(one for one in tables if one.caption == "Every comparison")
    return {
        plain(build_cell(row[1]).content): plain(build_cell(row[4]).content) for row in table.rows
    }


def is_shown(claim: Claim, run: Document) -> bool:
    found = shown_by(run)
    names = (claim.metric, f"{claim.metric} median", f"{claim.metric} mean")
    return claim.change in {found[name] for name in names if name in found}


def wrong(pages: dict[Address, Document]) -> list[str]:
    """Name every number that its links do not show."""
    told = []
    for page, document in pages.items():
        for claim in claims(page, document):
            runs = [pages[to] for to in claim.links if to.screen == "run"]
            alerts = [pages[to] for to in claim.links if to.values("alert")]
            in_run = not runs or any(is_shown(claim, run) for run in runs)
            named = f"{claim.metric} {claim.change}"
            in_alert = all(named in " ".join(words_of(alert)) for alert in alerts)
            testbeds = {bed for bed in (TESTBED.id, OTHER.id) if bed in claim.line}
            there = all(bed in plain(run.lead) for run in runs for bed in testbeds)
            if not (in_run and in_alert and there):
                told.append(f"{page.href()}: {named} in: {claim.line}")
    return told


@pytest.fixture(scope="module")
def pages(source: ScreenSource) -> dict[Address, Document]:
    return every_page(source)


def test_every_number_is_that_of_what_its_link_shows(pages: dict[Address, Document]) -> None:
    assert "\n".join(wrong(pages)) == ""
    found = [claim for page, document in pages.items() for claim in claims(page, document)]
    places = {claim.page.screen for claim in found}
    assert {"overview", "alerts", "runs", "scenario"} <= places, "the walk looks at something"
    assert len(found) > 50


def test_every_link_shows_what_it_asks_for(pages: dict[Address, Document]) -> None:
    assert [page.href() for page, document in pages.items() if document.complaints] == []


def test_a_row_that_links_another_run_would_be_found(source, pages, monkeypatch) -> None:
    """Planted: the news of a night lead to the run of another."""
    turned = overview_news._transition_news

    def mixed_up(*arguments: object) -> object:
        change = turned(*arguments)  # type: ignore[arg-type]
        return replace(change, run=f"{NIGHTS - 1:08x}")

    monkeypatch.setattr(overview_news, "_transition_news", mixed_up)
    here = address("overview", since=30)
    planted = wrong({**pages, here: open_view(source, here)})
    assert planted
    assert all("since=30" in one for one in planted)


def news(pages: dict[Address, Document]) -> list[tuple[Cell | Inline, ...]]:
    document = pages[address("overview", since=30)]
    tables = {b.caption: b for b in blocks_of(document.blocks) if isinstance(b, Table)}
    rest = tables["More changes"].rows if "More changes" in tables else ()
    return [*tables["Changed since a month ago"].rows, *rest]


def test_what_lasted_one_night_is_news_and_so_is_its_end(pages: dict[Address, Document]) -> None:
    said = [[plain(build_cell(cell).content) for cell in row[1:4]] for row in news(pages)]

    def day(night: int) -> str:
        return f"{STARTED + timedelta(days=night):%Y-%m-%d}"

    answers_lost = [(scenario, day) for scenario, text, day in said if "Answers were lost" in text]
    assert answers_lost == [("smoke/answers", day(7))]
    engine = [(text[:10], when) for name, text, when in said if name == "smoke/answers"]
    assert ("The engine", day(DEAD_NIGHT)) in engine
    assert ("Recovered:", day(DEAD_NIGHT + 1)) in engine
    contract = [(text.partition(":")[0], when) for _, text, when in said if "contract" in text]
    assert sorted(contract) == [
        ("A contract broke", day(BROKEN_NIGHT)),
        ("Recovered", day(BROKEN_NIGHT + 1)),
    ]
    assert any(text.startswith("Faster: ttft -") for _, text, _ in said)
    assert any(text == "Known-bad control not caught" for _, text, _ in said)


def test_news_name_testbed_and_date_and_open_the_alert_with_its_commits(pages) -> None:
    for row in news(pages):
        scenario = build_cell(row[1])
        assert plain(scenario.under).endswith((TESTBED.id, OTHER.id))
        assert re.match(r"\d{4}-\d\d-\d\d$", plain(build_cell(row[3]).content))
        (to,) = links_in(scenario.content)
        if plain(build_cell(row[2]).content).startswith("Faster"):
            assert to.screen == "run"
            continue
        assert to.values("alert")
        if "control" not in plain(build_cell(row[2]).content):
            blocks = list(blocks_of(pages[to].blocks))
            assert any(isinstance(b, Command) and " bisect " in b.text for b in blocks)
            assert re.search(r"\S+\.\.\.abc00\w\w", " ".join(words_of(pages[to])))


def test_what_is_still_bad_stands_before_what_is_over(pages: dict[Address, Document]) -> None:
    stands = [plain(build_cell(row[4]).content) == "still so" for row in news(pages)]
    assert stands == sorted(stands, reverse=True)
    assert stands.count(True) == 3  # slower, answers lost, a control that is not caught
