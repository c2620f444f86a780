"""Figures, links, copies and folds, live and saved; and what may not run."""

import io
from typing import Final

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from hybridwatch.pages.address import address
from tests.dashboard.browser.browsing import (
    CONTROL,
    GROUND,
    SCENARIO,
    WIDTH,
    asked,
    opened,
    opened_alone,
    pick,
    rest_on,
    wait_for_title,
    window,
)
from tests.dashboard.looking import settle
from tests.waiting import wait_until

pytestmark = pytest.mark.browser

RUN: Final = {"run": "dcc7e0b6"}
LOW: Final = 700
"""Of a window: room for the first figures only."""
FIGURE: Final = "[data-testid=stPlotlyChart]"


def test_every_figure_is_drawn(regressed, saved_scenario, page, alone) -> None:
    live = f"{regressed}/{address('scenario', **SCENARIO).href()}"
    for each, view in ((page, live), (alone, saved_scenario)):
        each.bring_to_front()
        each.set_viewport_size({"width": WIDTH, "height": LOW})
        each.goto(view)
        expect(each.locator(".js-plotly-plot .scatterlayer")).to_have_count(4)


DRAWN: Final = """() => [...document.querySelectorAll(".js-plotly-plot .scatterlayer path")].map(
  (path) => [path.getAttribute("d"), path.getAttribute("transform")])"""
SHOWS: Final = f"(expected) => JSON.stringify(({DRAWN})()) === JSON.stringify(expected)"


def drawing(page: Page) -> object:
    """What the figures show once two looks, each at a page drawn whole, are alike."""
    looks: list[object] = [page.evaluate(DRAWN)]

    def is_still() -> bool:
        settle(page)
        looks.append(page.evaluate(DRAWN))
        return bool(looks[-1] == looks[-2])

    wait_until(is_still, "the figures stay as they are")
    return looks[-1]


def test_a_figure_that_changes_in_place_shows_what_a_new_page_does(regressed, page) -> None:
    page.set_viewport_size({"width": WIDTH, "height": 5000})
    opened(page, regressed, "run", **RUN, metric="itl p99")
    expected, there = drawing(page), page.url
    opened(page, regressed, "run", **RUN, metric="ttft p99")
    assert page.evaluate(DRAWN) != expected
    pick(page, "Metric", "itl p99")
    page.wait_for_url(there)
    page.wait_for_function(SHOWS, arg=expected)


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
    opened(page, regressed, "scenario", **SCENARIO)
    # By now the page has its width; before, it may change under the first figures.
    page.evaluate(COUNT_DRAWINGS)
    for _ in "ab":  # by the next choice whatever comes late of one has come
        pick(page, "Along", "release")
        page.wait_for_url("**along=release*")
        settle(page)
        pick(page, "Along", "time")
        page.wait_for_url(lambda url: "along=release" not in url)
        settle(page)
    assert page.evaluate("window.drawn.size") > 0
    assert page.evaluate(MOST_DRAWN) == ONCE
    page.set_viewport_size({"width": 1000, "height": 900})
    page.wait_for_function(f"() => {MOST_DRAWN} > {ONCE}")  # so another drawing is counted


def test_a_figure_follows_the_theme_at_once(regressed: str, page: Page) -> None:
    opened(page, regressed, "scenario", **SCENARIO)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IN_COLOURS_OF_THE_PAGE)


def test_a_saved_image_has_the_colours_of_the_page(regressed: str, page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    opened(page, regressed, "scenario", **SCENARIO)
    page.locator(FIGURE).first.hover()
    with page.expect_download() as found:
        page.locator(".modebar-btn[data-title*='png' i]").first.click()
    image = Image.open(io.BytesIO(found.value.path().read_bytes())).convert("RGB")
    assert found.value.suggested_filename.startswith("hybridwatch-")
    assert f"rgb{image.getpixel((2, 2))}" == page.evaluate(GROUND)


def test_a_figure_offers_nothing_that_leaves_the_page(regressed, saved_scenario, page, alone):
    buttons = "() => [...document.querySelectorAll('.modebar-btn')].map((b) => b.dataset.title)"
    expected = {"Download plot as a PNG", "Zoom", "Pan", "Reset axes", "Fullscreen"}
    opened(page, regressed, "scenario", **SCENARIO)
    assert set(page.evaluate(buttons)) == expected
    opened_alone(alone, saved_scenario)
    assert set(alone.evaluate(buttons)) == expected


def test_a_figure_fills_the_screen_and_returns(regressed: str, page: Page) -> None:
    opened(page, regressed, "scenario", **SCENARIO)
    drawn = page.locator(".js-plotly-plot .main-svg").first
    expect(drawn).to_have_attribute("height", "350")
    page.locator(FIGURE).first.hover()
    page.locator(".modebar-btn[data-title='Fullscreen']").first.click()
    expect(drawn).not_to_have_attribute("height", "350")
    page.locator(".modebar-btn[data-title='Close fullscreen']").first.click()
    expect(drawn).to_have_attribute("height", "350")


def test_a_figure_of_a_saved_page_fills_the_screen_and_returns(saved_scenario, alone) -> None:
    opened_alone(alone, saved_scenario)
    drawn = alone.locator(".js-plotly-plot .main-svg").first
    alone.locator(".hw-plot").first.hover()
    alone.locator(".modebar-btn[data-title='Fullscreen']").first.click()
    alone.wait_for_function("() => document.fullscreenElement !== null")
    expect(drawn).to_have_attribute("height", str(alone.evaluate("innerHeight")))
    alone.evaluate("document.exitFullscreen()")
    expect(drawn).to_have_attribute("height", "350")


def test_a_click_on_a_point_opens_its_run_and_back_returns(regressed: str, page: Page) -> None:
    opened(page, regressed, "scenario", **SCENARIO)
    point = page.locator(".js-plotly-plot").first.locator(".scatterlayer .point").last
    rest_on(page, point)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url("**/run?run=*")
    settle(page)
    assert len(asked(page)["run"]) == 1
    page.go_back()
    page.wait_for_url("**/scenario?*")
    settle(page)
    # What was clicked before does not open it again: neither by now nor when the view is drawn
    # again, which comes after whatever the server sent before.
    pick(page, "Along", "release")
    page.wait_for_url("**/scenario?*along=release*")
    settle(page)
    assert "/scenario?" in page.url


def test_a_link_opens_its_view_in_the_same_page(regressed: str, page: Page) -> None:
    opened(page, regressed, "runs")
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
    opened(page, regressed, "runs")
    with page.context.expect_page() as found:
        page.locator(CONTROL).first.click(modifiers=["ControlOrMeta"])
    wait_for_title(found.value, "smoke/padded-graph-rows")
    wait_for_title(page, "Runs and testbeds")


def test_a_command_is_copied(regressed: str, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page, regressed, "run", **RUN)
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
    opened(page, regressed, "run", **RUN)
    code = page.locator("[data-testid=stCode] code").filter(has_text="hybridwatch run").first
    code.click()
    assert page.evaluate("getSelection().toString()").strip() == code.inner_text().strip()


@pytest.mark.parametrize("clipboard", [True, False])
def test_a_command_of_a_saved_page_is_copied(saved_run: str, alone: Page, clipboard: bool) -> None:
    page = alone
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(saved_run)
    if not clipboard:  # as on a page without https
        page.evaluate("Object.defineProperty(navigator.clipboard, 'writeText', {value: null})")
    block = page.locator(".hw-command").filter(has_text="hybridwatch run").first
    block.get_by_role("button", name="Copy").click()
    block.get_by_role("button", name="Copied").wait_for()
    command = block.locator("code").inner_text()
    assert command.startswith("hybridwatch run smoke/padded-graph-rows")
    assert page.evaluate("navigator.clipboard.readText()") == command
    if not clipboard:
        assert page.evaluate("getSelection().toString()") == command


def test_what_is_unfolded_stays_so(regressed: str, page: Page) -> None:
    opened(page, regressed, "scenario", **SCENARIO)
    # What only a phone folds has no summary here.
    unfolding = page.locator("details:has(> summary:visible)")
    folded = unfolding.first
    folded.locator("summary").click()
    expect(folded).to_have_attribute("open", "")
    pick(page, "Along", "release")
    page.wait_for_url("**along=release*")
    settle(page)
    expect(unfolding.first).to_have_attribute("open", "")


FOREIGN: Final = """async () => {
  const refused = new Promise((told) => addEventListener("securitypolicyviolation", (event) =>
    told(event.effectiveDirective)));
  const script = document.body.appendChild(document.createElement("script"));
  const loaded = new Promise((told) => (script.onload = () => told("loaded")));
  script.src = "https://example.org/script.js";
  return await Promise.race([refused, loaded]);
}"""


def answer_of(page: Page, address: str) -> list[object]:
    """What becomes of a script of another server, and whether it ran."""
    page.route("https://example.org/*", lambda route: route.fulfill(body="window.pwned = 1"))
    opened(page, address, "runs")
    return [page.evaluate(FOREIGN), page.evaluate("window.pwned")]


def test_no_script_of_another_server_runs(regressed: str, page: Page, browser: Browser) -> None:
    assert answer_of(page, regressed) == ["script-src-elem", None]
    with window(browser, bypass_csp=True) as unwalled:  # the check sees one that does
        assert answer_of(unwalled, regressed) == ["loaded", 1]


def test_the_first_two_figures_stand_side_by_side(regressed: str, page: Page) -> None:
    opened(page, regressed, "scenario", **SCENARIO)
    boxes = [page.locator(FIGURE).nth(nth).bounding_box() for nth in (0, 1)]
    assert all(boxes)
    (left, right) = ((box["x"], box["y"]) for box in boxes if box)
    assert left[0] < right[0]
    assert left[1] == pytest.approx(right[1], abs=1)
