"""A password in a real browser: nothing without it; with it every page, its socket, its files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Error, HttpCredentials

from hybridwatch.store import write_run
from hybridwatch.watch.access import PASSWORD
from tests.dashboard.looking import settle
from tests.dashboard.server import serving
from tests.dashboard.test_browser import browser
from tests.store_builders import REGRESSED, run

__all__ = ["browser"]  # the fixture of the other browser tests

pytestmark = pytest.mark.browser

SECRET: Final = "correct horse battery"  # noqa: S105 (of this test)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    """The address of a dashboard behind a password."""
    write_run(tmp_path, run(REGRESSED))
    with serving(tmp_path, {PASSWORD: SECRET}) as server:
        yield server.address


def test_the_password_opens_every_page_and_nothing_opens_without(
    guarded: str,
    browser: Browser,
) -> None:
    knows = HttpCredentials(username="anybody", password=SECRET)
    inside = browser.new_context(http_credentials=knows).new_page()
    try:
        inside.goto(f"{guarded}/runs")
        settle(inside)
        inside.get_by_role("link", name="smoke/padded-graph-rows").click()
        inside.get_by_role("cell").get_by_text("accuracy.recall", exact=True).wait_for()
        with inside.expect_download() as found:
            inside.get_by_role("button", name="CSV").first.click()
        assert found.value.path().stat().st_size > 100
    finally:
        inside.context.close()
    outside = browser.new_context().new_page()
    try:
        with pytest.raises(Error, match="ERR_INVALID_AUTH_CREDENTIALS"):
            outside.goto(f"{guarded}/runs")
        for path in ("", "_stcore/health", "_stcore/host-config", "static/x", "media/x"):
            assert outside.request.get(f"{guarded}/{path}").status == 401
    finally:
        outside.context.close()
