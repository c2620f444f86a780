"""What the page's own script does: figures, links, copies, folds; and what may not run."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.looking import settle
from tests.dashboard.test_browser import (
    CONTROL,
    UNSEEN_MS,
    browser,
    page,
    pick,
    regressed,
    saved,
    wait_for_figures,
    wait_for_title,
    window,
)

__all__ = ["browser", "page", "regressed"]  # fixtures of the other browser tests

pytestmark = pytest.mark.browser

SCENARIO: Final = "scenario?scenario=smoke%2Fpadded-graph-rows&version=2"
"""The version of which there are runs of six releases."""
NEVER_RESTS: Final = """(() => {
  const set = window.setTimeout;
  window.setTimeout = (step, wait, ...told) => set(step, wait === 1000 ? 1e9 : wait, ...told);
})()"""
"""The page is never left alone for so long that it draws what is out of sight."""
WAITING: Final = ".hw-plot[data-waits=true]"


@pytest.fixture
def low(browser: Browser) -> Iterator[Page]:
    """A page on a screen that has room for the first figures only."""
    with window(browser, 700) as page:
        yield page


def test_a_figure_out_of_sight_waits_until_it_comes_into_sight(regressed: str, low: Page) -> None:
    low.add_init_script(NEVER_RESTS)
    low.goto(f"{regressed}/{SCENARIO}")
    settle(low)
    last = low.locator(".hw-plot").last
    low.wait_for_timeout(UNSEEN_MS)
    expect(last.locator(".scatterlayer")).to_have_count(0)
    last.scroll_into_view_if_needed()
    last.locator(".scatterlayer").wait_for()


def test_every_figure_is_drawn_when_the_page_is_left_alone(regressed: str, low: Page) -> None:
    low.goto(f"{regressed}/{SCENARIO}")
    expect(low.locator(".hw-plot .scatterlayer")).to_have_count(4)
    expect(low.locator(WAITING)).to_have_count(0)


def test_every_figure_is_drawn_before_the_page_is_printed(regressed: str, low: Page) -> None:
    low.add_init_script(NEVER_RESTS)
    low.goto(f"{regressed}/{SCENARIO}")
    settle(low)
    expect(low.locator(WAITING)).not_to_have_count(0)
    low.pdf()
    expect(low.locator(WAITING)).to_have_count(0)


def test_a_figure_that_cannot_be_drawn_says_so_and_the_next_one_tries_again(
    regressed: str, page: Page
) -> None:
    tried: list[str] = []
    page.on("requestfailed", lambda request: tried.append(request.url))
    page.route("**/plotly-*.js", lambda route: route.abort())
    page.goto(f"{regressed}/{SCENARIO}")
    told = page.get_by_text("This figure could not be drawn: /plotly-")
    told.first.wait_for()
    page.get_by_text("medians, the last").first.wait_for()
    page.wait_for_timeout(UNSEEN_MS)
    assert len([url for url in tried if "/plotly-" in url]) < 10  # not again and again
    page.unroute("**/plotly-*.js")
    pick(page, "Along", "release")
    page.locator(".hw-plot .scatterlayer").first.wait_for()
    expect(told).to_have_count(0)


DRAWN: Final = """() => [...document.querySelectorAll(".hw-plot .scatterlayer path")].map(
  (path) => [path.getAttribute("d"), path.getAttribute("transform")])"""


def test_a_figure_that_changes_in_place_shows_what_a_new_page_does(
    regressed: str, browser: Browser
) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 5000})
    page, fresh = context.new_page(), context.new_page()
    try:
        page.goto(f"{regressed}/run?run=dcc7e0b6&metric=ttft+p99")
        settle(page)
        before = page.evaluate(DRAWN)
        pick(page, "Metric", "itl p99")
        page.wait_for_url("**metric=itl+p99*")
        settle(page)
        fresh.goto(page.url)
        settle(fresh)
        assert page.evaluate(DRAWN) == fresh.evaluate(DRAWN) != before
    finally:
        context.close()


def test_a_saved_image_has_the_colours_of_the_page(regressed: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 1200}, color_scheme="dark")
    page = context.new_page()
    try:
        page.goto(f"{regressed}/{SCENARIO}")
        settle(page)
        ground = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
        page.locator(".hw-plot").first.hover()
        with page.expect_download() as found:
            page.locator(".modebar-btn[data-title*='png' i]").first.click()
        image = Image.open(io.BytesIO(found.value.path().read_bytes())).convert("RGB")
        assert found.value.suggested_filename.startswith("hybridwatch-")
        assert f"rgb{image.getpixel((2, 2))}" == ground
    finally:
        context.close()


def test_a_figure_offers_nothing_that_leaves_the_page(
    regressed: str, page: Page, tmp_path: Path
) -> None:
    buttons = "() => [...document.querySelectorAll('.modebar-btn')].map((b) => b.dataset.title)"
    expected = {"Download plot as a PNG", "Zoom", "Pan", "Reset axes", "Full screen"}
    page.goto(f"{regressed}/{SCENARIO}")
    settle(page)
    assert set(page.evaluate(buttons)) == expected
    page.goto(saved(page, tmp_path))
    wait_for_figures(page)
    assert set(page.evaluate(buttons)) == expected


def test_a_figure_fills_the_screen_and_returns(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/{SCENARIO}")
    settle(page)
    first = page.locator(".hw-plot").first
    drawn = first.locator(".main-svg").first
    expect(drawn).to_have_attribute("height", "350")
    first.hover()
    first.locator(".modebar-btn[data-title='Full screen']").click()
    expect(drawn).to_have_attribute("height", str(page.evaluate("innerHeight")))
    page.evaluate("document.exitFullscreen()")
    expect(drawn).to_have_attribute("height", "350")


def test_a_link_opens_its_view_in_the_same_page(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/runs")
    settle(page)
    page.evaluate("window.stays = true")
    page.locator(CONTROL).first.click()
    wait_for_title(page, "smoke/padded-graph-rows")
    page.wait_for_url("**/run?run=dcc7e0b6*")
    settle(page)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == 0
    page.go_back()
    wait_for_title(page, "Runs and testbeds")
    assert page.evaluate("window.stays")


def test_a_link_opens_elsewhere_when_the_reader_wants_so(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/runs")
    settle(page)
    with page.context.expect_page() as found:
        page.locator(CONTROL).first.click(modifiers=["ControlOrMeta"])
    wait_for_title(found.value, "smoke/padded-graph-rows")
    wait_for_title(page, "Runs and testbeds")


@pytest.mark.parametrize("clipboard", [True, False])
def test_a_command_is_copied(regressed: str, page: Page, clipboard: bool) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    if not clipboard:  # as on a page without https
        page.add_init_script(
            "Object.defineProperty(navigator.clipboard, 'writeText', {value: null})"
        )
    page.goto(f"{regressed}/run?run=dcc7e0b6")
    settle(page)
    block = page.locator(".hw-command").filter(has_text="hybridwatch run")
    block.get_by_role("button", name="Copy").first.click()
    block.get_by_role("button", name="Copied").first.wait_for()
    command = block.locator("code").first.inner_text()
    assert command.startswith("hybridwatch run smoke/padded-graph-rows")
    assert page.evaluate("navigator.clipboard.readText()") == command
    if not clipboard:
        assert page.evaluate("getSelection().toString()") == command


def test_what_is_unfolded_stays_so(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/{SCENARIO}")
    settle(page)
    folded = page.locator("details").first
    folded.locator("summary").click()
    expect(folded).to_have_attribute("open", "")
    pick(page, "Along", "release")
    page.wait_for_url("**along=release*")
    settle(page)
    expect(page.locator("details").first).to_have_attribute("open", "")


@pytest.mark.parametrize("walled", [True, False])
def test_nothing_runs_that_the_server_does_not_name(
    regressed: str, browser: Browser, walled: bool
) -> None:
    context = browser.new_context(bypass_csp=not walled)
    page = context.new_page()
    try:
        page.goto(f"{regressed}/runs")
        settle(page)
        planted = """<img src=x onerror='window.pwned = 1'>"""
        page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", planted)
        page.wait_for_timeout(UNSEEN_MS)
        assert page.evaluate("window.pwned") == (None if walled else 1)
    finally:
        context.close()
