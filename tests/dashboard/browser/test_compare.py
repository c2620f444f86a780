"""The page to send to a reviewer: a planted regression is in its first screen, live and saved."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.builders import BASELINE
from tests.dashboard.browser.browsing import opened, saved, wait_for_figures

pytestmark = pytest.mark.browser

FIRST_SCREENS = pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
PAIR = {"baseline": BASELINE.label, "contender": "cpu-nightly-candidate"}
SEEN = """() => [
  [".hw-p .hw-regression", 1],
  [".hw-p:has(.hw-regression)", 1],
  [".js-plotly-plot", 0.1],
].filter(([name, least]) => {
  const found = document.querySelector(name)?.getBoundingClientRect();
  const seen = found ? Math.min(found.bottom, innerHeight) - Math.max(found.top, 0) : 0;
  return !found || found.height === 0 || seen < least * found.height;
}).map(([name]) => name)"""
"""What of the verdict, its sentence and the picture is below the first screen."""
PUSHED_DOWN = "h1.hw-title { margin-bottom: 900px !important; }"


def check_first_screen(page: Page) -> None:
    assert page.evaluate(SEEN) == []
    sentence = page.locator(".hw-p:has(.hw-regression)").first.inner_text()
    assert "Worse in 2 of 2 scenarios. Most of all: Slower in" in sentence
    page.add_style_tag(content=PUSHED_DOWN)
    assert len(page.evaluate(SEEN)) == 3, "the check sees what is planted"


@FIRST_SCREENS
def test_a_planted_regression_is_seen_at_once(
    width: int, height: int, full: str, page: Page
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    opened(page, full, "compare", **PAIR)
    check_first_screen(page)


@FIRST_SCREENS
def test_the_file_of_it_shows_it_too(
    width: int, height: int, full: str, page: Page, alone: Page, tmp_path: Path
) -> None:
    opened(page, full, "compare", **PAIR)
    file = saved(page, tmp_path)
    alone.set_viewport_size({"width": width, "height": height})
    alone.goto(file)
    wait_for_figures(alone)
    check_first_screen(alone)
