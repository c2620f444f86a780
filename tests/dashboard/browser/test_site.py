"""A static site as a person opens it: from a disk, without any network."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from hybridwatch.database.queries import open_index
from hybridwatch.pages.screens import ScreenSource
from hybridwatch.pages.site import write_site
from tests.dashboard.browser.browsing import (
    PHONE,
    WHOLE,
    wait_for_figures,
    wait_until_fitting,
    window,
)
from tests.dashboard.browser.full_store import write_full
from tests.unit.pages.suite_stores import NOW

pytestmark = pytest.mark.browser

_CLICK = """() => {
  const figure = document.querySelector(".js-plotly-plot");
  const { customdata } = figure.data.findLast((trace) => trace.customdata?.at(-1)?.at(-1));
  figure.emit("plotly_click", { points: [{ customdata: customdata.at(-1) }] });
}"""
"""Plotly's own event of a click on the last point."""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    results = tmp_path / "results"
    write_full(results)
    write_site(ScreenSource(results, open_index(results), NOW), tmp_path / "site")
    return tmp_path / "site"


def heard(page: Page) -> list[str]:
    """What a page asks for, and what goes wrong on it."""
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url))
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("console", lambda said: found.append(f"{said.type}: {said.text}"))
    return found


def test_a_site_opens_from_a_disk_and_asks_nobody(browser: Browser, site: Path) -> None:
    with window(browser, offline=True) as page:
        found = heard(page)
        page.goto((site / "index.html").as_uri())
        page.get_by_role("link", name="smoke/padded-graph-rows", exact=True).last.click()
        wait_for_figures(page)
        assert page.get_by_role("row").count() > 2
        with page.expect_download() as loaded:
            page.locator(".hw-file").first.click()
        rows = list(csv.DictReader(loaded.value.path().read_text(encoding="utf-8").splitlines()))
        assert {float(row["size"]) > 0 for row in rows} == {True, False}
        page.evaluate(_CLICK)
        page.wait_for_url("**/run/*.html")
        wait_for_figures(page)
        page.set_viewport_size({"width": PHONE, "height": 800})
        wait_until_fitting(page, WHOLE)
        page.get_by_role("link", name="Alerts", exact=True).click()
        page.wait_for_url("**/alerts.html")
    ours = site.as_uri() + "/"
    assert [each for each in found if not each.startswith((ours, "data:", "blob:"))] == []


def test_the_check_hears_a_page_that_asks_another(browser: Browser, site: Path) -> None:
    page_file = site / "alerts.html"
    page_file.write_text(page_file.read_text() + '<img src="https://example.org/x.png">')
    with window(browser, offline=True) as page:
        found = heard(page)
        page.goto(page_file.as_uri())
    assert any("example.org" in each for each in found)
