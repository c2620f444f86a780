"""On a phone no view scrolls sideways, and on a screen the overview says where it goes on."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from hybridwatch.analysis.cause import Area
from hybridwatch.database.queries import open_index
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import Code, Document, Paragraph
from hybridwatch.pages.html import static_page
from hybridwatch.pages.screens import SCREENS, ScreenSource, open_view
from hybridwatch.pages.screens.screen import alerts_here
from tests.dashboard.browser.browsing import HEIGHT, TABLES, WHOLE, WIDTH, opened, too_wide
from tests.planted_world.plan import SHORTEST, A, morning, plan_world
from tests.planted_world.records import write_world

pytestmark = pytest.mark.browser

NIGHTS: Final = SHORTEST
LONGEST: Final = 4_000
"""Pixels of a page on a phone: some five screens."""
NOW: Final = datetime(2026, 11, 22, tzinfo=UTC)
WORD: Final = "x" * 200
FADED: Final = """() => [...document.querySelectorAll(".hw-scroll:not(:has(> .hw-nights))")].map(
  (e) => getComputedStyle(e).maskImage !== "none")"""


def opened_document(page: Page, document: Document, folder: Path) -> Page:
    """Open a saved view."""
    file = folder / "view.html"
    file.write_text(static_page(document, NOW), encoding="utf-8")
    page.goto(file.as_uri())
    return page


@pytest.fixture(scope="module")
def source(records: Path) -> ScreenSource:
    """The committed records, whose columns all screens read."""
    return ScreenSource(records, open_index(records), NOW, checkout=checkout_here)


@pytest.mark.parametrize("screen", SCREENS)
def test_no_saved_view_scrolls_sideways(screen, source, reader, tmp_path) -> None:
    opened_document(reader, open_view(source, Address(screen, ())), tmp_path)
    assert too_wide(reader, WHOLE) == 0


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> ScreenSource:
    """A month of six scenarios on one machine, a build each night, with a fault of every kind."""
    results = tmp_path_factory.mktemp("month")
    write_world(results, replace(plan_world(1, NIGHTS), testbeds=(A,)))
    return ScreenSource(results, open_index(results), morning(NIGHTS), checkout=checkout_here)


def alert_address(source: ScreenSource) -> Address:
    """The page of an alert that says most: a slow-down."""
    (alert, *_) = [one for one in alerts_here(source) if one.lead.subject.area is Area.SPEED]
    return address("alerts", alert=alert.key)


def height_of(page: Page) -> int:
    height = page.evaluate(f"{WHOLE}.scrollHeight")
    assert isinstance(height, int)
    return height


@pytest.mark.parametrize("screen", [*SCREENS, "alert"])
def test_a_month_is_no_long_way_on_a_phone(screen, month, reader, tmp_path) -> None:
    view = alert_address(month) if screen == "alert" else Address(screen, ())
    opened_document(reader, open_view(month, view), tmp_path)
    assert height_of(reader) <= LONGEST


def test_a_phone_shows_all_rows_when_asked_and_the_check_sees_a_long_page(
    month, reader, tmp_path
) -> None:
    opened_document(reader, open_view(month, Address("builds", ())), tmp_path)
    builds = reader.locator(".hw-scroll").last
    assert builds.get_by_role("row").count() < NIGHTS
    rest = builds.get_by_text(re.compile(r"^All \d+ rows$"))
    rest.click()
    assert builds.get_by_role("row").count() > NIGHTS
    assert height_of(reader) > LONGEST
    reader.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    reader.reload()
    assert builds.get_by_role("row").count() > NIGHTS, "a wide page shows all at once"
    assert not rest.is_visible()


def test_a_long_word_is_broken_wherever_it_stands(reader: Page, tmp_path: Path) -> None:
    words = (Paragraph(WORD), Code(WORD, WORD))
    address = Address("run", (("run", WORD),))
    opened_document(reader, Document(WORD, words, WORD, address), tmp_path)
    assert too_wide(reader, WHOLE) == 0
    reader.add_style_tag(content=".hw-quiet { overflow-wrap: normal !important; }")
    assert too_wide(reader, WHOLE) > 0  # the check sees it


def test_the_overview_fits_a_screen_and_says_where_it_goes_on(full: str, page: Page) -> None:
    opened(page, full, "overview")
    assert page.locator("th").get_by_text("others").first.is_visible()
    assert set(page.evaluate(TABLES)) == {0}
    assert not any(page.evaluate(FADED))
    page.set_viewport_size({"width": 900, "height": 900})
    # The browser draws the fade with a later frame; on a busy machine that takes a while.
    table = page.locator(".hw-scroll").first
    expect(table).not_to_have_css("mask-image", "none")
    assert page.evaluate(TABLES)[0] > 0
    table.evaluate("table => (table.scrollLeft = 9999)")
    expect(table).to_have_css("mask-image", "none")
