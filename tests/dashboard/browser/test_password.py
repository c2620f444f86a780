"""A password on a real server: nothing without it; with it every page, its socket, its files."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Error, HttpCredentials

from hybridwatch.orchestration.nightly.access import PASSWORD
from hybridwatch.records.store import write_run
from tests.dashboard.asking import asking
from tests.dashboard.browser.browsing import opened, window
from tests.dashboard.server import serving
from tests.store_builders import REGRESSED, run

pytestmark = pytest.mark.browser

SECRET: Final = "correct horse battery"  # noqa: S105 (of this test)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard behind a password."""
    results = tmp_path_factory.mktemp("guarded")
    write_run(results, run(REGRESSED))
    with serving(results, {PASSWORD: SECRET}) as server:
        yield server.address


def test_the_password_opens_every_page_and_nothing_opens_without(guarded, browser) -> None:
    knows = HttpCredentials(username="anybody", password=SECRET)
    with window(browser, http_credentials=knows) as inside:
        opened(inside, guarded, "runs")
        inside.get_by_role("link", name="smoke/padded-graph-rows").click()
        inside.get_by_role("cell").get_by_text("accuracy.recall", exact=True).wait_for()
        with inside.expect_download() as found:
            inside.get_by_role("button", name="CSV").first.click()
        assert found.value.path().stat().st_size > 100
    with window(browser) as outside:
        with pytest.raises(Error, match="ERR_INVALID_AUTH_CREDENTIALS"):
            outside.goto(f"{guarded}/runs")
        for path in ("", "_stcore/health", "_stcore/host-config", "static/x", "media/x"):
            assert outside.request.get(f"{guarded}/{path}").status == 401


def test_who_asks_for_a_password_says_so_with_the_policy_and_to_named_hosts_only(guarded) -> None:
    ask = asking(guarded)
    status, headers, _ = ask("/", "localhost")
    assert status == 401
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert ask("/", "rebound.example.net")[0] == 421
