"""One browser for all tests of this folder, one server for each store, and a few pages.

A page that is used again takes a third of what a new one does, whose process starts cold. What a
page would keep for the next test (a permission, a script, a clock's zone) is done in a window of
its own: ``browsing.window``.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.dashboard.browser.browsing import (
    HEIGHT,
    LIMIT_MS,
    PHONE,
    SCENARIO,
    WIDTH,
    context_of,
    copy_records,
    opened,
    saved,
    served,
)
from tests.dashboard.browser.full_store import write_full
from tests.dashboard.server import NoBrowserError, chromium

SKIP: Final = "HYBRIDWATCH_SKIP_BROWSER"
_FORGET: Final = "() => { try { localStorage.clear(); sessionStorage.clear(); } catch {} }"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The browser; ``page`` and ``phone`` are pages of it."""
    if os.environ.get(SKIP) == "1":
        pytest.skip(f"{SKIP}=1")
    expect.set_options(timeout=LIMIT_MS)
    try:
        with chromium() as browser:
            yield browser
    except NoBrowserError as error:
        pytest.fail(f"{error}, or set {SKIP}=1")


@pytest.fixture(scope="package")
def desk(browser: Browser) -> Iterator[BrowserContext]:
    """Where the shared page of a screen is."""
    with context_of(browser) as context:
        yield context


@pytest.fixture(scope="package")
def pocket(browser: Browser) -> Iterator[BrowserContext]:
    """Where the shared page of a phone is."""
    with context_of(browser, is_mobile=True) as context:
        yield context


@pytest.fixture(scope="package")
def cut_off(browser: Browser) -> Iterator[BrowserContext]:
    """Where the shared page without a network is."""
    with context_of(browser, offline=True) as context:
        yield context


@pytest.fixture(scope="package")
def pocket_cut_off(browser: Browser) -> Iterator[BrowserContext]:
    """Where the shared page of a phone without a network is."""
    with context_of(browser, is_mobile=True, offline=True) as context:
        yield context


@pytest.fixture
def page(desk: BrowserContext) -> Iterator[Page]:
    """A page on a screen, of a browser that was here."""
    with clean_page(desk) as page:
        yield page


@pytest.fixture
def phone(pocket: BrowserContext) -> Iterator[Page]:
    """A page on a phone, likewise."""
    with clean_page(pocket, PHONE) as page:
        yield page


@pytest.fixture
def reader(pocket_cut_off: BrowserContext) -> Iterator[Page]:
    """A page on a phone without any network, for saved views."""
    with clean_page(pocket_cut_off, PHONE) as page:
        yield page


@pytest.fixture
def alone(cut_off: BrowserContext) -> Iterator[Page]:
    """A page on a screen without any network, for saved views."""
    with clean_page(cut_off) as page:
        yield page


@contextmanager
def clean_page(context: BrowserContext, width: int = WIDTH) -> Iterator[Page]:
    """Lend the page of a context as if it were new."""
    page = context.pages[0] if context.pages else context.new_page()
    page.bring_to_front()  # what lies behind may not be drawn at all
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.emulate_media(color_scheme="light")
    page.mouse.move(0, 0)
    try:
        yield page
    finally:
        for other in context.pages[1:]:
            other.close()
        page.unroute_all()
        context.clear_permissions()
        page.evaluate(_FORGET)
        page.goto("about:blank")  # it would ask its server every few seconds
        devtools = context.new_cdp_session(page)
        devtools.send("Page.resetNavigationHistory")  # it holds fifty steps, and counts no more
        devtools.detach()


@pytest.fixture(scope="package")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the committed records; no test writes to it."""
    results = tmp_path_factory.mktemp("records")
    copy_records(results)
    return results


@pytest.fixture(scope="package")
def regressed(records: Path) -> Iterator[str]:
    """The address of a dashboard over the committed records; no test writes to it."""
    with served(records) as address:
        yield address


@pytest.fixture(scope="package")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard over a store that fills every screen, with hostile texts."""
    results = tmp_path_factory.mktemp("full")
    write_full(results)
    with served(results) as address:
        yield address


@pytest.fixture(scope="package")
def saved_run(
    regressed: str, desk: BrowserContext, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A run's view as a file; gives its address."""
    with clean_page(desk) as page:
        opened(page, regressed, "run", run="dcc7e0b6", metric="ttft p99")
        return saved(page, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="package")
def saved_scenario(
    regressed: str, desk: BrowserContext, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A scenario's view as a file; gives its address."""
    with clean_page(desk) as page:
        opened(page, regressed, "scenario", **SCENARIO)
        return saved(page, tmp_path_factory.mktemp("scenario"))


@pytest.fixture(scope="package")
def saved_full(full: str, desk: BrowserContext, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A scenario's view of the full store as a file; gives its address."""
    with clean_page(desk) as page:
        opened(page, full, "scenario")
        return saved(page, tmp_path_factory.mktemp("full-scenario"))
