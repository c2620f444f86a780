"""Figures, links, copies and folds, live and saved; and what may not run."""

import io
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
RUN: Final = "run?run=dcc7e0b6"
LOW: Final = 700
"""Of a window: room for the first figures only."""
FIGURE: Final = "[data-testid=stPlotlyChart]"


@pytest.fixture(scope="module")
def saved_scenario(
    regressed: str, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The scenario's view as a file; gives its address."""
    with window(browser, LOW) as page:
        page.goto(f"{regressed}/{SCENARIO}")
        settle(page)
        return saved(page, tmp_path_factory.mktemp("scenario"))


@pytest.fixture(scope="module")
def saved_run(regressed: str, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The run's view as a file; gives its address."""
    with window(browser, LOW) as page:
        page.goto(f"{regressed}/{RUN}")
        settle(page)
        return saved(page, tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("alone", [False, True])
def test_every_figure_is_drawn(
    regressed: str, saved_scenario: str, browser: Browser, alone: bool
) -> None:
    with window(browser, LOW) as page:
        page.goto(saved_scenario if alone else f"{regressed}/{SCENARIO}")
        expect(page.locator(".js-plotly-plot .scatterlayer")).to_have_count(4)


DRAWN: Final = """() => [...document.querySelectorAll(".js-plotly-plot .scatterlayer path")].map(
  (path) => [path.getAttribute("d"), path.getAttribute("transform")])"""
SHOWS: Final = f"(expected) => JSON.stringify(({DRAWN})()) === JSON.stringify(expected)"


def test_a_figure_that_changes_in_place_shows_what_a_new_page_does(
    regressed: str, browser: Browser
) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 5000})
    page = context.new_page()
    try:
        page.goto(f"{regressed}/run?run=dcc7e0b6&metric=ttft+p99")
        settle(page)
        before = page.evaluate(DRAWN)
        pick(page, "Metric", "itl p99")
        page.wait_for_url("**metric=itl+p99*")
        fresh = context.new_page()
        fresh.goto(page.url)
        settle(fresh)
        expected = fresh.evaluate(DRAWN)
        assert expected != before
        page.bring_to_front()  # what lies behind may not be drawn at all
        page.wait_for_function(SHOWS, arg=expected)
    finally:
        context.close()


COUNT_DRAWINGS: Final = """(() => {
  const set = Element.prototype.setAttribute;
  window.drawn = new Map();
  Element.prototype.setAttribute = function (name, value) {
    if (name === "d" && this.classList.contains("point"))
      window.drawn.set(this, (window.drawn.get(this) ?? 0) + 1);
    return set.call(this, name, value);
  };
})()"""
"""Counts how often the shape of each point in a figure is set."""
MOST_DRAWN: Final = "Math.max(0, ...window.drawn.values())"
ONCE: Final = 2
"""To place a point and to style it."""
IN_COLOURS_OF_THE_PAGE: Final = """() => {
  const colour = (place, name) => getComputedStyle(document.querySelector(place))[name];
  const words = [...document.querySelectorAll(".stPlotlyChart text")].filter(
    (text) => text.textContent.trim());
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  return (colour(".stApp", "backgroundColor") === "rgb(255, 255, 255)") !== isDark
    && words.length > 0
    && words.every((text) => getComputedStyle(text).fill === colour("h1.hw-title", "color"))
    && colour(".stPlotlyChart .main-svg", "backgroundColor") === "rgba(0, 0, 0, 0)";
}"""


def test_a_figure_is_drawn_once(regressed: str, page: Page) -> None:
    page.add_init_script(COUNT_DRAWINGS)
    page.goto(f"{regressed}/{SCENARIO}")
    settle(page)
    # By now the page has its width; before, it may change under the first figures.
    page.evaluate("window.drawn.clear()")
    pick(page, "Along", "release")
    page.wait_for_url("**along=release*")
    settle(page)
    page.wait_for_timeout(UNSEEN_MS)
    assert page.evaluate("window.drawn.size") > 0
    assert page.evaluate(MOST_DRAWN) == ONCE
    page.set_viewport_size({"width": 1000, "height": 900})
    page.wait_for_function(f"() => {MOST_DRAWN} > {ONCE}")  # so another drawing is counted


def test_a_figure_follows_the_theme_at_once(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/{SCENARIO}")
    settle(page)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IN_COLOURS_OF_THE_PAGE)


def test_a_saved_image_has_the_colours_of_the_page(regressed: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 1200}, color_scheme="dark")
    page = context.new_page()
    try:
        page.goto(f"{regressed}/{SCENARIO}")
        settle(page)
        ground = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
        page.locator(FIGURE).first.hover()
        with page.expect_download() as found:
            page.locator(".modebar-btn[data-title*='png' i]").first.click()
        image = Image.open(io.BytesIO(found.value.path().read_bytes())).convert("RGB")
        assert found.value.suggested_filename.startswith("hybridwatch-")
        assert f"rgb{image.getpixel((2, 2))}" == ground
    finally:
        context.close()


def test_a_figure_offers_nothing_that_leaves_the_page(
    regressed: str, saved_scenario: str, page: Page
) -> None:
    buttons = "() => [...document.querySelectorAll('.modebar-btn')].map((b) => b.dataset.title)"
    expected = {"Download plot as a PNG", "Zoom", "Pan", "Reset axes", "Fullscreen"}
    page.goto(f"{regressed}/{SCENARIO}")
    settle(page)
    assert set(page.evaluate(buttons)) == expected
    page.goto(saved_scenario)
    wait_for_figures(page)
    assert set(page.evaluate(buttons)) == expected


def test_a_figure_fills_the_screen_and_returns(
    regressed: str, saved_scenario: str, page: Page
) -> None:
    page.goto(f"{regressed}/{SCENARIO}")
    settle(page)
    drawn = page.locator(".js-plotly-plot .main-svg").first
    expect(drawn).to_have_attribute("height", "350")
    page.locator(FIGURE).first.hover()
    page.locator(".modebar-btn[data-title='Fullscreen']").first.click()
    expect(drawn).not_to_have_attribute("height", "350")
    page.locator(".modebar-btn[data-title='Close fullscreen']").first.click()
    expect(drawn).to_have_attribute("height", "350")
    page.goto(saved_scenario)
    wait_for_figures(page)
    page.locator(".hw-plot").first.hover()
    page.locator(".modebar-btn[data-title='Fullscreen']").first.click()
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
    expect(page.locator("[data-testid=stMain]")).to_have_js_property("scrollTop", 0)
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


def test_a_command_is_copied(regressed: str, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{regressed}/{RUN}")
    settle(page)
    block = page.locator("[data-testid=stCode]").filter(has_text="hybridwatch run").first
    block.hover()
    block.get_by_role("button").first.click()
    command = block.locator("code").inner_text()
    assert command.startswith("hybridwatch run smoke/padded-graph-rows")
    page.wait_for_function(
        "command => navigator.clipboard.readText().then((text) => text === command)", arg=command
    )


def test_a_click_on_a_command_selects_all_of_it(regressed: str, page: Page) -> None:
    # Without https a browser gives a page no clipboard, and Streamlit's button does nothing.
    page.goto(f"{regressed}/{RUN}")
    settle(page)
    code = page.locator("[data-testid=stCode] code").filter(has_text="hybridwatch run").first
    code.click()
    assert page.evaluate("getSelection().toString()").strip() == code.inner_text().strip()


@pytest.mark.parametrize("clipboard", [True, False])
def test_a_command_of_a_saved_page_is_copied(saved_run: str, page: Page, clipboard: bool) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    if not clipboard:  # as on a page without https
        page.add_init_script(
            "Object.defineProperty(navigator.clipboard, 'writeText', {value: null})"
        )
    page.goto(saved_run)
    block = page.locator(".hw-command").filter(has_text="hybridwatch run").first
    block.get_by_role("button", name="Copy").click()
    block.get_by_role("button", name="Copied").wait_for()
    command = block.locator("code").inner_text()
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


FOREIGN: Final = """async () => {
  const refused = new Promise((told) => addEventListener("securitypolicyviolation", (event) =>
    told(event.effectiveDirective)));
  const script = document.body.appendChild(document.createElement("script"));
  const loaded = new Promise((told) => (script.onload = () => told("loaded")));
  script.src = "https://example.org/script.js";
  return await Promise.race([refused, loaded]);
}"""


@pytest.mark.parametrize("walled", [True, False])
def test_no_script_of_another_server_runs(regressed: str, browser: Browser, walled: bool) -> None:
    context = browser.new_context(bypass_csp=not walled)
    page = context.new_page()
    page.route("https://example.org/*", lambda route: route.fulfill(body="window.pwned = 1"))
    try:
        page.goto(f"{regressed}/runs")
        settle(page)
        assert page.evaluate(FOREIGN) == ("script-src-elem" if walled else "loaded")
        assert page.evaluate("window.pwned") == (None if walled else 1)
    finally:
        context.close()
