"""axe on a page: what it finds that is ours, by day and night, on a screen and on a phone."""

from collections.abc import Sequence
from itertools import product
from typing import Final, Literal

import pytest
from playwright.sync_api import Page

from tests.dashboard.browser.browsing import GROUND, HEIGHT, PHONE, WIDTH
from tests.dashboard.looking import settle
from tests.shipped import ROOT

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
LIT: Final = f"(scheme) => ({GROUND} === 'rgb(255, 255, 255)') === (scheme === 'light')"
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
ACROSS: Final = ((PHONE, "dark"), (WIDTH, "light"))
"""Each width and each scheme once."""

Views = Sequence[tuple[int, Literal["light", "dark"]]]
IN_VIEWS: Final = pytest.mark.parametrize(
    "views",
    [
        pytest.param(ACROSS, id="across"),
        # Colours come from the scheme and layout from the width, so the other two add little.
        pytest.param(tuple(product((PHONE, WIDTH), SCHEMES)), id="all", marks=pytest.mark.slow),
    ],
)


def violations(page: Page) -> list[str]:
    """What axe finds on a page as it is now, that is ours."""
    if not AXE.is_file():
        pytest.fail(f"{AXE}: expected axe's script, found nothing; make axe")
    if page.evaluate("window.axe === undefined"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(FOUND, STREAMLITS)
    assert isinstance(found, list)
    return found


def found_in(views: Views, page: Page) -> list[str]:
    """What axe finds by day and night, on a screen and on a phone."""
    found = []
    grounds = set()
    for width, scheme in views:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(LIT, arg=scheme)  # the theme is changed by Streamlit's script
        settle(page, share=0.5)
        grounds.add(page.evaluate(GROUND))
        found += [f"{scheme}, {width}: {each}" for each in violations(page)]
    assert len(grounds) == len(SCHEMES)
    return found
