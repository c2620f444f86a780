"""On a phone no view scrolls sideways, and on a screen the overview says where it goes on."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from hybridwatch.database.queries import open_index
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.pages.address import Address
from hybridwatch.pages.document import Code, Document, Paragraph
from hybridwatch.pages.html import static_page
from hybridwatch.pages.screens import SCREENS, ScreenSource, open_view
from tests.dashboard.browser.browsing import TABLES, WHOLE, opened, too_wide

pytestmark = pytest.mark.browser

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
