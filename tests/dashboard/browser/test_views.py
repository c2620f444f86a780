"""The dashboard as a person sees it: the real server, a real browser."""

import csv
import re
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import ConsoleMessage, Error, Page, expect

from hybridwatch.records.store import write_run
from tests.dashboard.browser.browsing import (
    CONTROL,
    GROUND,
    METRIC,
    PHONE,
    asked,
    opened,
    opened_alone,
    pick,
    row_of,
    served,
    too_wide,
    wait_for_figures,
    wait_for_title,
    wait_for_verdict,
    window,
)
from tests.dashboard.browser.full_store import ALL_HOSTILE, HEALTHY
from tests.dashboard.looking import settle
from tests.store_builders import REGRESSED, run

pytestmark = pytest.mark.browser


def verdict_of(page: Page, metric: str) -> str:
    """What the row of a metric says, once the page is drawn whole."""
    settle(page)
    return row_of(page, metric).first.inner_text()


def test_regression_is_shown_on_the_right_metric(regressed: str, page: Page) -> None:
    opened(page, regressed, "runs")
    page.locator(CONTROL).first.click()
    wait_for_title(page, "smoke/padded-graph-rows")
    wait_for_verdict(page, METRIC, "regression")
    page.get_by_role("heading", name="Answers that changed").wait_for(state="visible")
    page.get_by_text("baseline: right").first.wait_for(state="visible")
    page.get_by_text("contender: wrong").first.wait_for(state="visible")
    wait_for_figures(page)
    expect(page.locator("h1")).to_have_text("smoke/padded-graph-rows")


def test_healthy_metric_of_a_regressed_run_does_not_show_the_word(page: Page, full: str) -> None:
    opened(page, full, "run", run=ALL_HOSTILE)
    assert "equivalent" in verdict_of(page, "ttft median")
    assert "regression" in verdict_of(page, METRIC)
    assert "regression" not in verdict_of(page, "ttft median")


def test_check_for_the_regression_fails_on_a_healthy_record(page: Page, full: str) -> None:
    opened(page, full, "run", run=HEALTHY)
    assert METRIC in verdict_of(page, METRIC)
    assert "regression" not in verdict_of(page, METRIC)


def test_link_reopens_the_same_view(regressed: str, page: Page, phone: Page) -> None:
    opened(page, regressed, "run", run="dcc7e0b6")
    pick(page, "Metric", METRIC)
    page.wait_for_url("**metric=accuracy.recall**")
    assert set(asked(page)) == {"run", "metric"}
    phone.goto(page.url)  # in another browser
    settle(phone)
    wait_for_figures(phone)
    phone.locator(".js-plotly-plot .gtitle").get_by_text(METRIC).wait_for()
    assert phone.locator(".js-plotly-plot").count() == 1
    assert asked(phone) == asked(page)


def test_the_tab_has_the_title_of_the_page(regressed: str, page: Page) -> None:
    page.goto(regressed)
    expect(page).to_have_title("Overview \N{MIDDLE DOT} hybridwatch")
    page.get_by_role("link", name="Scenario").click()
    expect(page).to_have_title(re.compile("^smoke/.* \N{MIDDLE DOT} Scenario \N{MIDDLE DOT} "))
    pick(page, "Scenario", "smoke/padded-graph-rows")
    expect(page).to_have_title(re.compile("^smoke/padded-graph-rows \N{MIDDLE DOT} Scenario"))
    page.goto(f"{regressed}/run?run=dcc7e0b6")
    expect(page).to_have_title(re.compile("^smoke/padded-graph-rows \N{MIDDLE DOT} Run"))


@pytest.mark.slow  # test_history.py goes back through choices and screens, too
def test_back_goes_through_choices_and_screens(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/runs")
    page.locator(CONTROL).first.click()
    wait_for_figures(page)
    at = page.url
    pick(page, "Metric", "ttft p99")
    title = page.locator(".js-plotly-plot .gtitle")
    title.get_by_text("ttft p99").wait_for()
    page.go_back()
    page.wait_for_url(at)
    title.get_by_text("contract.padded_rows_prefilling").wait_for()
    page.go_back()
    wait_for_title(page, "Runs and testbeds")
    page.go_forward()
    wait_for_title(page, "smoke/padded-graph-rows")
    assert page.url == at


def test_csv_has_the_numbers_of_the_table(regressed: str, page: Page) -> None:
    opened(page, regressed, "run", run="dcc7e0b6")
    wait_for_verdict(page, METRIC, "regression")
    # A button further down may come first, so the table's own place is waited for.
    offer = page.locator("[class*=st-key-csv]").first
    with page.expect_download() as found:
        offer.get_by_role("button", name="CSV").click()
    assert found.value.suggested_filename == "hybridwatch-every-comparison.csv"
    rows = list(csv.DictReader(found.value.path().read_text(encoding="utf-8").splitlines()))
    [row] = [row for row in rows if row["metric"] == METRIC]
    assert (row["verdict"], row["baseline"], row["contender"]) == ("regression", "0.99", "0.0")


def test_saved_page_needs_nothing_and_shows_the_same(saved_run: str, alone: Page) -> None:
    troubles: list[str] = []

    def hear(said: ConsoleMessage) -> None:
        troubles.append(f"{said.type}: {said.text}")

    def fail(error: Error) -> None:
        troubles.append(str(error))

    alone.on("console", hear)
    alone.on("pageerror", fail)
    alone.emulate_media(color_scheme="dark")
    opened_alone(alone, saved_run)
    wait_for_verdict(alone, METRIC, "regression")
    alone.locator(".js-plotly-plot .gtitle").get_by_text("ttft p99").wait_for()
    with alone.expect_download() as image:
        alone.locator(".js-plotly-plot").hover()
        alone.locator(".modebar-btn[data-title*='png' i]").click()
    assert image.value.suggested_filename == "hybridwatch-ttft-p99.png"
    assert alone.get_by_role("link", name="CSV").count() == 2
    ground = alone.evaluate(GROUND)
    alone.emulate_media(color_scheme="light")
    assert alone.evaluate(GROUND) != ground
    assert troubles == []
    alone.remove_listener("console", hear)
    alone.remove_listener("pageerror", fail)


COLOURS: Final = """[
  getComputedStyle(document.querySelector("h1.hw-title")).color,
  ...[...document.querySelectorAll(".gtitle, .xtick text, .ytick text")].map(
    (text) => getComputedStyle(text).fill),
]"""
"""Of the page's type, then of the words around figures."""


@pytest.mark.parametrize(
    "views",
    [
        pytest.param(((1280, "light"), (PHONE, "dark")), id="across"),
        # Colours come from the scheme and layout from the width, so these two add little.
        pytest.param(((1280, "dark"), (PHONE, "light")), id="others", marks=pytest.mark.slow),
    ],
)
def test_page_is_readable_by_day_and_night_wide_and_narrow(regressed, browser, views) -> None:
    with window(browser, timezone_id="Asia/Tokyo") as page:
        for width, scheme in views:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            opened(page, regressed, "run", run="dcc7e0b6")
            if width == PHONE:  # which shows the first rows alone
                page.locator(".hw-all > summary").first.click()
            wait_for_verdict(page, METRIC, "regression")
            wait_for_figures(page)
            assert (page.evaluate(GROUND) == "rgb(255, 255, 255)") == (scheme == "light")
            type_, *words = page.evaluate(COLOURS)
            assert set(words) == {type_}
            # Nothing sticks out to the side, and hover tells the reader's own time.
            assert too_wide(page) == 0
            assert "JST" in (page.locator("time").first.get_attribute("title") or "")


def test_everything_is_reached_by_keyboard(regressed: str, page: Page) -> None:
    opened(page, regressed, "runs")
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


def test_wrong_links_are_reported(regressed: str, page: Page) -> None:
    page.goto(f"{regressed}/run?run=00000000")
    told = page.get_by_role("alert").get_by_text("'00000000', which is not in this store")
    expect(told).to_be_visible()
    page.goto(f"{regressed}/nowhere")
    expect(page.get_by_text("The address asks for /nowhere")).to_be_visible()
    expect(page).to_have_url(re.compile("/nowhere$"))
    expect(told).to_have_count(0)


def test_a_store_that_grows_is_shown_without_a_reload(page: Page, tmp_path: Path) -> None:
    with served(tmp_path) as address:
        page.goto(f"{address}/runs")
        page.get_by_text("No runs yet").wait_for()
        write_run(tmp_path, run(REGRESSED))
        page.get_by_text("1 new run since you opened this").wait_for()
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_text("1 run on 1 testbed")).to_be_visible()
        expect(page.get_by_text("No runs yet")).to_have_count(0)
