"""Hostile texts of a record and of a link: read as they are written, and nothing of them runs."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect
from playwright.sync_api import TimeoutError as NotInTimeError

from hybridwatch.pages.address import Address
from hybridwatch.pages.screens import SCREENS
from hybridwatch.store import write_run
from tests.dashboard.looking import settle
from tests.dashboard.server import serving
from tests.dashboard.test_browser import (
    METRIC,
    browser,
    page,
    saved,
    wait_for_figures,
    wait_for_verdict,
)
from tests.store_builders import REGRESSED, run

__all__ = ["browser", "page"]  # fixtures of the other browser tests

pytestmark = pytest.mark.browser

_TRIES: Final = 9
_REST_MS: Final = 3000

SCRIPT: Final = "<script>window.pwned = 1</script>"
MARKED: Final = "[link](javascript:window.pwned=1) **bold** :smile: $x$ {{ 7 * 7 }}"
HOSTILE: Final = " ".join(
    (
        SCRIPT,
        '<img src=x onerror="window.pwned = 1">',
        '<svg onload="window.pwned = 1"><a xlink:href="javascript:window.pwned = 1">a</a></svg>',
        '<details open ontoggle="window.pwned = 1">d</details>',
        '<iframe srcdoc="<script>parent.pwned = 1</script>"></iframe>',
        '<a class="hw-link" href="javascript:window.pwned = 1">a</a>',
        """"><b onfocus='window.pwned = 1' autofocus tabindex=0>b</b>""",
        MARKED,
        "</script>" + SCRIPT,
    )
)
ALIVE: Final = r"""() => [...document.querySelectorAll("*")].filter((element) => {
  const runs = ({ name, value }) =>
    (/^on/.test(name) && value.includes("pwned"))
    || (/href|src|action/.test(name) && /^\s*javascript:/i.test(value))
    || (name === "src" && value === "x")
    || name === "srcdoc";
  const isScript = element.tagName === "SCRIPT" && element.type !== "application/json"
    && element.textContent.trim().startsWith("window.pwned");
  return isScript || [...element.attributes].some(runs);
}).map((element) => element.outerHTML)"""
"""What on a page could run a hostile text: handlers, addresses, scripts, and what would load."""
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
streamlit.html = lambda body, **options: html(body, **{**options, "unsafe_allow_javascript": True})
"""


def write_hostile(results: Path) -> None:
    """Write a run in which everything that may be any text is hostile."""
    testbed = replace(REGRESSED.testbed, id=HOSTILE, cpu_model=HOSTILE, kernel=HOSTILE)
    plan = replace(
        REGRESSED,
        text=HOSTILE,
        scenario=replace(REGRESSED.scenario, id=HOSTILE),
        failed_trials=1,
        testbed=testbed,
    )
    made = run(plan)
    builds = tuple(
        replace(each, label=each.label + HOSTILE, flags={HOSTILE: HOSTILE}) for each in made.builds
    )
    write_run(
        results, replace(made, builds=builds, harness=replace(made.harness, revision=HOSTILE))
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one hostile run."""
    folder = tmp_path_factory.mktemp("hostile")
    write_hostile(folder)
    return folder


@pytest.fixture(scope="module")
def hostile(results: Path) -> Iterator[str]:
    """The address of a dashboard over it."""
    with serving(results) as server:
        yield server.address


@pytest.fixture
def planted(results: Path, tmp_path: Path) -> Callable[..., AbstractContextManager[str]]:
    """Serves the same store with defects; gives the address."""

    @contextmanager
    def served(defects: str) -> Iterator[str]:
        (tmp_path / "sitecustomize.py").write_text(defects)
        with serving(results, {"PYTHONPATH": str(tmp_path)}) as server:
            yield server.address

    return served


def troubles(page: Page, least: int = 0) -> list[str]:
    """Say what came of hostile texts but that they can be read.

    Args:
        page: Drawn.
        least: How often they are there.
    """
    said = page.locator("body").inner_text()
    unread = [text for text in (SCRIPT, MARKED) if said.count(text) < least]
    alive = page.evaluate(ALIVE)
    assert isinstance(alive, list)
    ran = page.evaluate("window.pwned !== undefined")
    return [*alive, *(f"not to be read: {text}" for text in unread), *(["it ran"] if ran else [])]


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")


@pytest.mark.parametrize("screen", SCREENS)
def test_hostile_text_of_a_record_is_inert_on_every_page(
    screen: str, hostile: str, page: Page
) -> None:
    page.goto(f"{hostile}/{Address(screen, ()).href()}")
    settle(page)
    unfold(page)
    assert troubles(page, least=screen in {"overview", "runs", "scenario", "compare", "run"}) == []


def rest_on(page: Page, point: Locator) -> None:
    """Rest on a point of a figure until its text is there; the page may still move below."""
    text = page.locator(".hoverlayer .hovertext").first
    for _ in range(_TRIES):
        point.hover(force=True)
        with suppress(NotInTimeError):
            text.wait_for(timeout=_REST_MS)
            return
        page.mouse.move(0, 0)
    text.wait_for(timeout=_REST_MS)


def test_hostile_text_is_read_wherever_a_page_shows_it(
    hostile: str, page: Page, tmp_path: Path
) -> None:
    page.goto(f"{hostile}/run")
    wait_for_verdict(page, METRIC, "regression")
    wait_for_figures(page)
    page.get_by_text("contender: wrong").first.wait_for(state="visible")
    # Trace 0 is the line of medians, which has no hover; trace 1 the trials.
    trials = page.locator(".js-plotly-plot").first.locator(".scatterlayer .trace").nth(1)
    rest_on(page, trials.locator(".point").first)
    # Title, builds and testbed, answers in their boxes, legends in figures.
    assert troubles(page, least=8) == []
    page.goto(saved(page, tmp_path))
    wait_for_figures(page)
    assert troubles(page, least=8) == []


def test_hostile_text_is_inert_in_a_filter_and_where_a_pointer_rests(
    hostile: str, page: Page
) -> None:
    page.goto(f"{hostile}/scenario")
    settle(page)
    page.get_by_label("Scenario", exact=False).last.click()
    expect(page.get_by_role("option").first).to_contain_text(SCRIPT)
    assert troubles(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="CSV").first.hover()
    page.get_by_role("tooltip").wait_for()
    assert troubles(page) == []


def test_hostile_text_of_a_link_is_inert(hostile: str, page: Page) -> None:
    query = urlencode({"scenario": HOSTILE + "?", HOSTILE: HOSTILE, "run": HOSTILE})
    page.goto(f"{hostile}/run?{query}")
    settle(page)
    page.get_by_role("alert").first.wait_for()
    assert troubles(page, least=1) == []


def test_a_link_with_hostile_text_opens_what_it_says(hostile: str, page: Page) -> None:
    page.goto(f"{hostile}/runs")
    settle(page)
    page.evaluate("window.stays = true")
    page.locator("[data-testid=stHtml] a[href*='run?run=']").first.click()
    page.wait_for_url("**/run?run=*")
    wait_for_verdict(page, METRIC, "regression")
    assert page.evaluate("window.stays")
    assert troubles(page, least=1) == []


def test_nothing_runs_where_templates_do_not_escape(
    planted: Callable[..., AbstractContextManager[str]], page: Page
) -> None:
    with planted(PLANTED) as address:
        page.goto(f"{address}/runs")
        # What became markup by mistake: DOMPurify leaves it there without its handler.
        page.locator("[data-testid=stHtml] b").first.wait_for(state="attached")
        found = troubles(page, least=1)
    assert f"not to be read: {SCRIPT}" in found
    assert {each for each in found if not each.startswith("not to be read")} == {'<img src="x">'}


def test_the_check_sees_a_page_where_a_hostile_text_runs(
    planted: Callable[..., AbstractContextManager[str]], page: Page
) -> None:
    with planted(PLANTED + UNPURIFIED) as address:
        page.goto(f"{address}/runs")
        page.wait_for_function("() => window.pwned === 1")
        assert "it ran" in troubles(page)
