"""Everybody can read every page: axe finds nothing wrong with it, by day and night."""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser, Page

from hybridwatch.pages.screens import SCREENS
from tests.dashboard.looking import settle
from tests.dashboard.server import ROOT
from tests.dashboard.test_browser import browser, nights, saved, wait_for_figures, window

__all__ = ["browser", "nights"]  # fixtures of the other browser tests

pytestmark = pytest.mark.browser

AXE: Final = ROOT / "tests" / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
STREAMLITS: Final = {
    # Streamlit 1.67 puts a heading's links into a div between the list and its items.
    "list": "[data-testid=stSidebarNavItems]",
    "listitem": "[data-testid=stSidebarNavItems]",
}
"""What Streamlit itself does, by axe's rule, and where."""
FOUND: Final = """async (own) => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], elementRef: true });
  return violations.flatMap(({ id, nodes }) =>
    nodes
      .filter(({ element }) => !(id in own && element.closest(own[id])))
      .map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}: ${failureSummary}`));
}"""
GROUND: Final = "getComputedStyle(document.querySelector('.stApp, body')).backgroundColor"
LIT: Final = f"(scheme) => ({GROUND} === 'rgb(255, 255, 255)') === (scheme === 'light')"
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
WIDTHS: Final = (1400, 390)
ACROSS: Final = tuple(zip(WIDTHS, SCHEMES, strict=True))
"""Each width and each scheme once."""

Views = Sequence[tuple[int, Literal["light", "dark"]]]
IN_VIEWS: Final = pytest.mark.parametrize(
    "views",
    [
        pytest.param(ACROSS, id="across"),
        # Colours come from the scheme and layout from the width, so the other two add little.
        pytest.param(tuple(product(WIDTHS, SCHEMES)), id="all", marks=pytest.mark.slow),
    ],
)


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """One window for all of it."""
    with window(browser, 1200) as page:
        yield page


def violations(page: Page) -> list[str]:
    """What axe finds on a page as it is now, that is ours."""
    if not AXE.is_file():
        pytest.fail(f"{AXE}: expected axe's script, found nothing; make axe")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(FOUND, STREAMLITS)
    assert isinstance(found, list)
    return found


def found_in(views: Views, page: Page) -> list[str]:
    """What axe finds by day and night, on a screen and on a phone."""
    found = []
    grounds = set()
    for width, scheme in views:
        page.set_viewport_size({"width": width, "height": 1200})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(LIT, arg=scheme)  # the theme is changed by Streamlit's script
        settle(page, share=0.5)
        grounds.add(page.evaluate(GROUND))
        found += [f"{scheme}, {width}: {each}" for each in violations(page)]
    assert len(grounds) == len(SCHEMES)
    return found


@pytest.mark.parametrize("screen", SCREENS)
@IN_VIEWS
def test_axe_finds_nothing_on_any_page(views: Views, screen: str, nights: str, page: Page) -> None:
    page.goto(f"{nights}/{'' if screen == 'overview' else screen}")
    settle(page)
    assert found_in(views, page) == []


@IN_VIEWS
def test_axe_finds_nothing_where_an_alert_is_answered(
    views: Views, nights: str, page: Page
) -> None:
    page.goto(f"{nights}/alerts")
    settle(page)
    page.locator("[data-testid=stHtml] td a.hw-link").first.click()
    page.get_by_role("textbox", name="Your name").wait_for()
    assert found_in(views, page) == []


def test_axe_finds_nothing_on_a_saved_page(nights: str, page: Page, tmp_path: Path) -> None:
    page.goto(f"{nights}/scenario")
    settle(page)
    file = saved(page, tmp_path)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.goto(file)
        wait_for_figures(page)
        assert page.evaluate(LIT, scheme)
        assert violations(page) == []


def test_axe_sees_what_cannot_be_read(nights: str, page: Page) -> None:
    page.goto(f"{nights}/runs")
    settle(page)
    page.add_style_tag(content=".hw-lead { color: #bbbbbb !important; background: white; }")
    assert any(each.startswith("color-contrast") for each in violations(page))
