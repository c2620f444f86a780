"""Hostile texts of a record and of a link: read as they are written, and nothing of them runs.

``test_screens.py`` looks at every screen as it opens.
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.browser.browsing import (
    METRIC,
    opened,
    opened_alone,
    rest_on,
    saved,
    wait_for_figures,
    wait_for_verdict,
)
from tests.dashboard.browser.full_store import ALL_HOSTILE, write_hostile
from tests.dashboard.browser.hostile import HOSTILE, SCRIPT, troubles
from tests.dashboard.looking import settle
from tests.dashboard.server import serving

pytestmark = pytest.mark.browser

PLANTED: Final = """
import jinja2
make = jinja2.Environment.__init__
def make_naive(self, *args, **options):
    make(self, *args, **{**options, "autoescape": False})
jinja2.Environment.__init__ = make_naive
"""
"""Templates that do not escape; Python runs ``sitecustomize`` before anything else."""
UNPURIFIED: Final = """
import streamlit
html = streamlit.html
def html_alive(body, **options):
    if streamlit.context.url.endswith("/run"):
        options["unsafe_allow_javascript"] = True
    return html(body, **options)
streamlit.html = html_alive
"""
"""On one screen the browser does not remove what could run, either."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard with both defects, over a store with one hostile run."""
    results = tmp_path_factory.mktemp("hostile")
    write_hostile(results)
    defects = tmp_path_factory.mktemp("defects")
    (defects / "sitecustomize.py").write_text(PLANTED + UNPURIFIED)
    with serving(results, {"PYTHONPATH": str(defects)}) as server:
        yield server.address


def test_hostile_text_is_read_wherever_a_page_shows_it(full, page, alone, tmp_path) -> None:
    opened(page, full, "run", run=ALL_HOSTILE)
    wait_for_verdict(page, METRIC, "regression")
    wait_for_figures(page)
    page.get_by_text("contender: wrong").first.wait_for(state="visible")
    # Trace 0 is the line of medians, which has no hover; trace 1 the trials.
    trials = page.locator(".js-plotly-plot").first.locator(".scatterlayer .trace").nth(1)
    rest_on(page, trials.locator(".point").first)
    # Title, builds and testbed, answers in their boxes, legends in figures.
    assert troubles(page, least=8) == []
    file = saved(page, tmp_path)
    opened_alone(alone, file)
    assert troubles(alone, least=8) == []


def test_hostile_text_is_inert_in_a_filter_and_where_a_pointer_rests(full: str, page: Page) -> None:
    opened(page, full, "scenario", scenario=HOSTILE)
    page.get_by_label("Scenario", exact=False).last.click()
    expect(page.get_by_role("option").filter(has_text=SCRIPT).first).to_be_visible()
    assert troubles(page, least=1) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="CSV").first.hover()
    page.get_by_role("tooltip").wait_for()
    assert troubles(page, least=1) == []


def test_hostile_text_of_a_link_is_inert(full: str, page: Page) -> None:
    query = urlencode({"scenario": HOSTILE + "?", HOSTILE: HOSTILE, "run": HOSTILE})
    page.goto(f"{full}/run?{query}")
    settle(page)
    expect(page.get_by_role("alert").first).to_contain_text(SCRIPT)  # of long ones the beginning
    assert troubles(page) == []


def test_a_link_with_hostile_text_opens_what_it_says(full: str, page: Page) -> None:
    opened(page, full, "runs")
    page.evaluate("window.stays = true")
    link = page.locator(f"[data-testid=stHtml] a[href*='run?run={ALL_HOSTILE}']").first
    expect(link).to_contain_text(SCRIPT)
    link.click()
    page.wait_for_url("**/run?run=*")
    wait_for_verdict(page, METRIC, "regression")
    assert page.evaluate("window.stays")
    assert troubles(page, least=1) == []


def test_nothing_runs_where_templates_do_not_escape(planted: str, page: Page) -> None:
    page.goto(f"{planted}/runs")
    # What became markup by mistake: DOMPurify leaves it there without its handler.
    page.locator("[data-testid=stHtml] b").first.wait_for(state="attached")
    settle(page)
    found = troubles(page, least=1)
    assert f"not to be read: {SCRIPT}" in found
    assert {each for each in found if not each.startswith("not to be read")} == {'<img src="x">'}


def test_the_check_sees_a_page_where_a_hostile_text_runs(planted: str, page: Page) -> None:
    page.goto(f"{planted}/run")
    page.wait_for_function("() => window.pwned === 1")
    assert "it ran" in troubles(page)
