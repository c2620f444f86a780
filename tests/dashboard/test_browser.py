"""The dashboard as a person sees it: the real server, a real browser."""

import csv
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as NotSeenError

from hybridwatch.store import write_run
from tests.dashboard.looking import settle
from tests.dashboard.nights import write_nights
from tests.dashboard.server import ROOT, NoBrowserError, chromium, serving
from tests.store_builders import REGRESSED, Plan, run

pytestmark = pytest.mark.browser

RECORDED: Final = ROOT / "results"
"""The committed records; among them a known-bad control, whose regression must be seen."""
METRIC: Final = "accuracy.recall"
CONTROL: Final = "a[href*='run=dcc7e0b6']"
"""The links to that run; the scenario has others."""

SKIP: Final = "HYBRIDWATCH_SKIP_BROWSER"
SEEN_MS: Final = 30_000
UNSEEN_MS: Final = 2_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if os.environ.get(SKIP) == "1":
        pytest.skip(f"{SKIP}=1")
    try:
        with chromium() as browser:
            yield browser
    except NoBrowserError as error:
        pytest.fail(f"{error}, or set {SKIP}=1")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with window(browser, 1200) as page:
        yield page


@contextmanager
def window(browser: Browser, height: int) -> Iterator[Page]:
    """Open a page of a browser that was never here; always closes it."""
    context = browser.new_context(viewport={"width": 1400, "height": height})
    try:
        page = context.new_page()
        page.set_default_timeout(SEEN_MS)
        expect.set_options(timeout=SEEN_MS)
        yield page
    finally:
        context.close()


@contextmanager
def served(results: Path) -> Iterator[str]:
    """Run the dashboard over a store; gives its address, and always ends it."""
    with serving(results) as server:
        yield server.address


@pytest.fixture(scope="module")
def regressed() -> Iterator[str]:
    """The address of a dashboard over the committed records."""
    with served(RECORDED) as address:
        yield address


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard over a store that fills every page."""
    results = tmp_path_factory.mktemp("nights")
    write_nights(results)
    with served(results) as address:
        yield address


def wait_for_verdict(page: Page, metric: str, word: str, timeout_ms: int = SEEN_MS) -> None:
    """Wait until the row of one metric shows one verdict.

    Raises:
        NotSeenError: It does not within the time.
    """
    # The row's own cell must hold the metric, so that a headline that names it does not count.
    name = page.get_by_role("cell").get_by_text(metric, exact=True)
    row = page.get_by_role("row").filter(has=name)
    row.get_by_text(word).first.wait_for(state="visible", timeout=timeout_ms)


def wait_for_figures(page: Page) -> None:
    page.locator(".js-plotly-plot .scatterlayer").first.wait_for(state="visible")


def wait_for_title(page: Page, title: str) -> None:
    page.get_by_role("heading", level=1).get_by_text(title, exact=True).wait_for(state="visible")


def asked(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def pick(page: Page, label: str, option: str) -> None:
    page.get_by_label(label, exact=False).last.click()
    page.keyboard.type(option)  # a long list shows only those in sight
    page.get_by_role("option", name=option, exact=True).click()


def test_regression_is_shown_on_the_right_metric(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/runs")
    page.locator(CONTROL).first.click()
    wait_for_title(page, "smoke/padded-graph-rows")
    wait_for_verdict(page, METRIC, "regression")
    page.get_by_text("Answers that changed").wait_for(state="visible")
    page.get_by_text("baseline: right").first.wait_for(state="visible")
    page.get_by_text("contender: wrong").first.wait_for(state="visible")
    wait_for_figures(page)
    expect(page.locator("h1")).to_have_text("smoke/padded-graph-rows")


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard over a regressed run and one of a build against itself."""
    results = tmp_path_factory.mktemp("made-up")
    for plan in (REGRESSED, Plan()):
        write_run(results, run(plan))
    with served(results) as address:
        yield address


def test_healthy_metric_of_a_regressed_run_does_not_show_the_word(page: Page, made_up: str) -> None:
    page.goto(f"{made_up}/run?run={run(REGRESSED).id}")
    wait_for_verdict(page, "ttft median", "equivalent")
    wait_for_verdict(page, METRIC, "regression")
    with pytest.raises(NotSeenError):
        wait_for_verdict(page, "ttft median", "regression", UNSEEN_MS)


def test_check_for_the_regression_fails_on_an_a_a_record(page: Page, made_up: str) -> None:
    page.goto(f"{made_up}/run?run={run(Plan()).id}")
    page.get_by_role("cell").get_by_text(METRIC, exact=True).wait_for(state="visible")
    with pytest.raises(NotSeenError):
        wait_for_verdict(page, METRIC, "regression", UNSEEN_MS)


def test_link_reopens_the_same_view(regressed: str, page: Page, browser: Browser) -> None:
    page.goto(f"{regressed}/run?run=dcc7e0b6")
    wait_for_figures(page)
    pick(page, "Metric", METRIC)
    page.wait_for_url("**metric=accuracy.recall**")
    assert set(asked(page)) == {"run", "metric"}
    elsewhere = browser.new_context().new_page()
    try:
        elsewhere.goto(page.url)
        wait_for_figures(elsewhere)
        elsewhere.locator(".js-plotly-plot .gtitle").get_by_text(METRIC).wait_for()
        assert elsewhere.locator(".js-plotly-plot").count() == 1
        assert asked(elsewhere) == asked(page)
    finally:
        elsewhere.context.close()


def test_the_tab_has_the_title_of_the_page(regressed: str, page: Page) -> None:
    page.goto(regressed)
    expect(page).to_have_title("Overview \N{MIDDLE DOT} hybridwatch")
    page.get_by_role("link", name="Scenario").click()
    expect(page).to_have_title(re.compile("^smoke/.* \N{MIDDLE DOT} Scenario \N{MIDDLE DOT} "))
    pick(page, "Scenario", "smoke/padded-graph-rows")
    expect(page).to_have_title(re.compile("^smoke/padded-graph-rows \N{MIDDLE DOT} Scenario"))
    page.goto(f"{regressed}/run?run=dcc7e0b6")
    expect(page).to_have_title(re.compile("^smoke/padded-graph-rows \N{MIDDLE DOT} Run"))


@pytest.mark.slow  # test_browser_history.py goes back through choices and screens, too
def test_back_goes_through_choices_and_screens(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/runs")
    page.locator(CONTROL).first.click()
    wait_for_figures(page)
    opened = page.url
    pick(page, "Metric", "ttft p99")
    page.locator(".js-plotly-plot .gtitle").get_by_text("ttft p99").wait_for()
    page.go_back()
    page.wait_for_url(opened)
    page.locator(".js-plotly-plot .gtitle").get_by_text(
        "contract.padded_rows_prefilling"
    ).wait_for()
    page.go_back()
    wait_for_title(page, "Runs and testbeds")
    page.go_forward()
    wait_for_title(page, "smoke/padded-graph-rows")
    assert page.url == opened


def test_a_click_on_a_point_opens_its_run_and_back_returns(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/scenario?scenario=smoke%2Fpadded-graph-rows")
    settle(page)
    point = page.locator(".js-plotly-plot").first.locator(".scatterlayer .point").last
    point.click(force=True)  # above it lies the layer that plotly listens on
    page.wait_for_url("**/run?run=*")
    settle(page)
    assert len(asked(page)["run"]) == 1
    page.go_back()
    page.wait_for_url("**/scenario?*")
    settle(page)
    page.wait_for_timeout(UNSEEN_MS)
    assert "/scenario?" in page.url  # what was clicked before does not open it again


def test_csv_has_the_numbers_of_the_table(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/run?run=dcc7e0b6")
    wait_for_verdict(page, METRIC, "regression")
    # A button further down may come first, so the table's own place is waited for.
    offer = page.locator("[class*=st-key-csv]").first
    with page.expect_download() as found:
        offer.get_by_role("button", name="CSV").click()
    assert found.value.suggested_filename == "hybridwatch-every-comparison.csv"
    rows = list(csv.DictReader(found.value.path().read_text(encoding="utf-8").splitlines()))
    [row] = [row for row in rows if row["metric"] == METRIC]
    assert (row["verdict"], row["baseline"], row["contender"]) == ("regression", "0.99", "0.0")


def saved(page: Page, folder: Path) -> str:
    """Save the view as HTML; gives the file's address."""
    with page.expect_download() as found:
        page.get_by_role("button", name="Save as HTML").click()
    path = folder / found.value.suggested_filename
    found.value.save_as(path)
    return path.as_uri()


def test_saved_page_needs_nothing_and_shows_the_same(
    regressed: str, page: Page, browser: Browser, tmp_path: Path
) -> None:
    page.goto(f"{regressed}/run?run=dcc7e0b6&metric=ttft+p99")
    wait_for_figures(page)
    file = saved(page, tmp_path)
    alone = browser.new_context(offline=True, color_scheme="dark").new_page()
    troubles: list[str] = []
    alone.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
    alone.on("pageerror", lambda error: troubles.append(str(error)))
    try:
        alone.goto(file)
        wait_for_verdict(alone, METRIC, "regression")
        wait_for_figures(alone)
        alone.locator(".js-plotly-plot .gtitle").get_by_text("ttft p99").wait_for()
        with alone.expect_download() as image:
            alone.locator(".js-plotly-plot").hover()
            alone.locator(".modebar-btn[data-title*='png' i]").click()
        assert image.value.suggested_filename == "hybridwatch-ttft-p99.png"
        assert alone.get_by_role("link", name="CSV").count() == 2
        ground = alone.evaluate("getComputedStyle(document.body).backgroundColor")
        alone.emulate_media(color_scheme="light")
        assert alone.evaluate("getComputedStyle(document.body).backgroundColor") != ground
        assert troubles == []
    finally:
        alone.context.close()


COLOURS: Final = """[
  getComputedStyle(document.querySelector("h1.hw-title")).color,
  ...[...document.querySelectorAll(".gtitle, .xtick text, .ytick text")].map(
    (text) => getComputedStyle(text).fill),
]"""
"""Of the page's type, then of the words around figures."""


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (390, "dark"),
        # Colours come from the scheme and layout from the width, so these two add little.
        pytest.param(1280, "dark", marks=pytest.mark.slow),
        pytest.param(390, "light", marks=pytest.mark.slow),
    ],
)
def test_page_is_readable_by_day_and_night_wide_and_narrow(
    regressed: str, browser: Browser, width: int, scheme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, timezone_id="Asia/Tokyo"
    )
    page = context.new_page()
    try:
        page.goto(f"{regressed}/run?run=dcc7e0b6")
        wait_for_verdict(page, METRIC, "regression")
        wait_for_figures(page)
        ground = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        type_, *words = page.evaluate(COLOURS)
        assert set(words) == {type_}
        # Nothing sticks out to the side, and hover tells the reader's own time.
        main = "document.querySelector('[data-testid=stMain]')"
        assert page.evaluate(f"{main}.scrollWidth - {main}.clientWidth") == 0
        assert "JST" in (page.locator("time").first.get_attribute("title") or "")
    finally:
        context.close()


def test_everything_is_reached_by_keyboard(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/runs")
    wait_for_title(page, "Runs and testbeds")
    link = page.locator(CONTROL).first
    link.wait_for(state="visible")
    for _ in range(60):
        page.keyboard.press("Tab")
        if link.evaluate("link => link === document.activeElement"):
            break
    else:
        pytest.fail("60 times Tab did not reach the link to a run")
    page.keyboard.press("Enter")
    wait_for_title(page, "smoke/padded-graph-rows")
    expect(page).to_have_url(re.compile("run="))


def test_wrong_links_are_told_of(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/run?run=00000000")
    told = page.get_by_role("alert").get_by_text("'00000000', which is not in this store")
    expect(told).to_be_visible()
    page.goto(f"{regressed}/nowhere")
    expect(page.get_by_text("Page not found")).to_be_visible()
    expect(told).to_have_count(0)


def test_a_store_that_grows_is_shown_without_a_reload(page: Page, tmp_path: Path) -> None:
    with served(tmp_path) as address:
        page.goto(f"{address}/runs")
        page.get_by_text("No runs yet").wait_for()
        write_run(tmp_path, run(REGRESSED))
        page.get_by_text("1 new run since you opened this").wait_for(timeout=60_000)
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_text("1 run on 1 testbed")).to_be_visible()
        expect(page.get_by_text("No runs yet")).to_have_count(0)
