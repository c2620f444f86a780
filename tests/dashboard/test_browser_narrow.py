"""On a phone no screen scrolls sideways, live or saved."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from hybridwatch.database.update import open_index
from hybridwatch.pages.address import Address
from hybridwatch.pages.document import Code, Document, Paragraph
from hybridwatch.pages.saved_page import static_page
from hybridwatch.pages.screens import SCREENS, Source, open_view
from hybridwatch.watch.checkout import checkout_here
from tests.dashboard.looking import settle
from tests.dashboard.test_browser import RECORDED, browser, nights, regressed, window

__all__ = ["browser", "nights", "regressed"]  # fixtures of the other browser tests

pytestmark = pytest.mark.browser

NOW: Final = datetime(2026, 11, 22, tzinfo=UTC)
WORD: Final = "x" * 200


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A page on a phone."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True)
    yield context.new_page()
    context.close()


def too_wide(page: Page, scroller: str) -> int:
    """By how many pixels a page can be scrolled sideways."""
    found = page.evaluate(
        f"(() => {{ const e = {scroller}; return e.scrollWidth - e.clientWidth; }})()"
    )
    assert isinstance(found, int)
    return found


def opened(page: Page, document: Document, folder: Path) -> Page:
    """Open a saved view."""
    file = folder / "view.html"
    file.write_text(static_page(document, NOW), encoding="utf-8")
    page.goto(file.as_uri())
    return page


@pytest.fixture(scope="module")
def source() -> Source:
    """The committed records, whose columns all screens read."""
    return Source(RECORDED, open_index(RECORDED), NOW, checkout=checkout_here)


@pytest.mark.parametrize("screen", SCREENS)
def test_no_saved_view_scrolls_sideways(
    screen: str, source: Source, phone: Page, tmp_path: Path
) -> None:
    opened(phone, open_view(source, Address(screen, ())), tmp_path)
    assert too_wide(phone, "document.documentElement") == 0


def test_a_long_word_is_broken_wherever_it_stands(phone: Page, tmp_path: Path) -> None:
    words = (Paragraph(WORD), Code(WORD, WORD))
    address = Address("run", (("run", WORD),))
    opened(phone, Document(WORD, words, WORD, address), tmp_path)
    assert too_wide(phone, "document.documentElement") == 0
    phone.add_style_tag(content=".hw-quiet { overflow-wrap: normal !important; }")
    assert too_wide(phone, "document.documentElement") > 0  # the check sees it


@pytest.mark.slow  # below are the same pages over a store that fills them all
@pytest.mark.parametrize("screen", SCREENS)
def test_no_live_page_scrolls_sideways(screen: str, phone: Page, regressed: str) -> None:
    phone.goto(f"{regressed}/{Address(screen, ()).href()}")
    settle(phone)
    assert too_wide(phone, "document.querySelector('[data-testid=stMain]')") == 0


TABLES: Final = """() => [...document.querySelectorAll(".hw-scroll")].map(
  (e) => e.scrollWidth - e.clientWidth)"""
FADED: Final = """() => [...document.querySelectorAll(".hw-scroll")].map(
  (e) => getComputedStyle(e).maskImage !== "none")"""


@pytest.mark.parametrize("screen", SCREENS)
def test_no_table_is_wider_than_a_phone(screen: str, phone: Page, nights: str) -> None:
    phone.goto(f"{nights}/{Address(screen, ()).href()}")
    settle(phone)
    phone.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    assert set(phone.evaluate(TABLES)) <= {0}
    assert too_wide(phone, "document.querySelector('[data-testid=stMain]')") == 0


def test_the_overview_fits_a_screen_and_says_where_it_goes_on(
    nights: str, browser: Browser
) -> None:
    with window(browser, 900) as page:
        page.goto(nights)
        settle(page)
        assert page.locator("th").get_by_text("others").first.is_visible()
        assert set(page.evaluate(TABLES)) == {0}
        assert not any(page.evaluate(FADED))
        page.set_viewport_size({"width": 900, "height": 900})
        assert page.evaluate(TABLES)[0] > 0
        # The browser draws the fade with a later frame; on a busy machine that takes a while.
        table = page.locator(".hw-scroll").first
        expect(table).not_to_have_css("mask-image", "none")
        table.evaluate("table => (table.scrollLeft = 9999)")
        expect(table).to_have_css("mask-image", "none")
