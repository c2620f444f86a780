"""What the tests of this folder do with a page: open it, wait for it, read it."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, BrowserContext, Locator, Page
from playwright.sync_api import TimeoutError as LateError

from hybridwatch.pages.address import Address
from tests.dashboard.looking import settle
from tests.dashboard.server import serving
from tests.shipped import ROOT
from tests.waiting import wait_until

LIMIT_MS: Final = 120_000
"""Ends what hangs; no machine is so busy that a page takes as long."""
_OPEN_MS: Final = 10_000
"""After so long a list that was opened is taken for closed."""
WIDTH: Final = 1400
HEIGHT: Final = 1200
PHONE: Final = 390
"""Of a phone, in pixels."""

METRIC: Final = "accuracy.recall"
CONTROL: Final = "a[href*='run=dcc7e0b6']"
"""The links to a known-bad control, whose regression must be seen; the scenario has others."""
SCENARIO: Final = {"scenario": "smoke/padded-graph-rows", "version": "2"}
"""The version of which there are runs of six releases."""
MAIN: Final = "document.querySelector('[data-testid=stMain]')"
WHOLE: Final = "document.documentElement"
TABLES: Final = """() => [...document.querySelectorAll(".hw-scroll:not(:has(> .hw-nights))")].map(
  (e) => e.scrollWidth - e.clientWidth)"""
"""By how many pixels each table is wider than its place; the picture of nights may scroll."""
GROUND: Final = "getComputedStyle(document.querySelector('.stApp, body')).backgroundColor"


@contextmanager
def context_of(browser: Browser, height: int = HEIGHT, **options: Any) -> Iterator[BrowserContext]:
    """A browser that was never here; always ends it."""
    size = {"viewport": {"width": WIDTH, "height": height}}
    context = browser.new_context(**{**size, **options})
    context.set_default_timeout(LIMIT_MS)
    try:
        yield context
    finally:
        context.close()


@contextmanager
def window(browser: Browser, height: int = HEIGHT, **options: Any) -> Iterator[Page]:
    """A page of a browser that was never here, for what a shared page must not keep."""
    with context_of(browser, height, **options) as context:
        yield context.new_page()


@contextmanager
def served(results: Path) -> Iterator[str]:
    """Run the dashboard over a store; gives its address, and always ends it."""
    with serving(results) as server:
        yield server.address


def copy_records(results: Path) -> None:
    """Copy what is committed of ``results/``: neither a developer's own runs nor a database."""
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--", "results"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        goal = results / Path(name).relative_to("results")
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, goal)


def opened(page: Page, address: str, screen: str, **parameters: str) -> Page:
    """Open a screen, and wait until it is drawn whole."""
    page.goto(f"{address}/{Address(screen, tuple(parameters.items())).href()}")
    settle(page)
    return page


def opened_alone(page: Page, file: str) -> Page:
    """Open a saved view that has a figure."""
    page.bring_to_front()
    page.goto(file)
    wait_for_figures(page)
    return page


def row_of(page: Page, metric: str) -> Locator:
    """The row of one metric.

    The row's own cell must hold the metric, so that a headline that names it does not count.
    """
    name = page.get_by_role("cell").get_by_text(metric, exact=True)
    return page.get_by_role("row").filter(has=name)


def wait_for_verdict(page: Page, metric: str, word: str) -> None:
    """Wait until the row of one metric shows one verdict."""
    row_of(page, metric).get_by_text(word).first.wait_for(state="visible")


def wait_for_figures(page: Page) -> None:
    page.locator(".js-plotly-plot .scatterlayer").first.wait_for(state="visible")


def wait_for_title(page: Page, title: str) -> None:
    page.get_by_role("heading", level=1).get_by_text(title, exact=True).wait_for(state="visible")


def asked(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def pick(page: Page, label: str, option: str) -> None:
    """Choose from a list; a view that is drawn again closes it, and it is opened once more."""
    offered = page.get_by_role("option", name=option, exact=True)

    def is_picked() -> bool:
        page.get_by_label(label, exact=False).last.click()
        page.keyboard.type(option)  # a long list shows only those in sight
        try:
            offered.click(timeout=_OPEN_MS)
        except LateError:
            page.keyboard.press("Escape")
            return False
        return True

    wait_until(is_picked, f"{option} is chosen in {label}")


def saved(page: Page, folder: Path) -> str:
    """Save the view as HTML; gives the file's address."""
    with page.expect_download() as found:
        page.get_by_role("button", name="Save as HTML").click()
    path = folder / found.value.suggested_filename
    found.value.save_as(path)
    return path.as_uri()


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")


def too_wide(page: Page, scroller: str = MAIN) -> int:
    """By how many pixels a page can be scrolled sideways."""
    found = page.evaluate(
        f"(() => {{ const e = {scroller}; return e.scrollWidth - e.clientWidth; }})()"
    )
    assert isinstance(found, int)
    return found


def wait_until_fitting(page: Page, scroller: str) -> None:
    """Wait until nothing is too wide: figures follow a window that is resized a little later."""
    page.wait_for_function(
        f"(() => {{ const e = {scroller}; return e.scrollWidth <= e.clientWidth; }})()"
    )


def rest_on(page: Page, point: Locator) -> None:
    """Rest on a point of a figure until its text is there.

    Plotly listens on a layer above the point, and the page may still move under the pointer: so
    it is put where the point then is, again and again.
    """
    text = page.locator(".hoverlayer .hovertext").first
    point.scroll_into_view_if_needed()
    ways = iter(range(10**9))

    def is_told() -> bool:
        box = point.bounding_box()
        if box is not None:
            aside = next(ways) % 2  # plotly asks only when the pointer moves
            page.mouse.move(box["x"] + box["width"] / 2 + aside, box["y"] + box["height"] / 2)
        return text.is_visible()

    wait_until(is_told, "the text of a point is shown")
