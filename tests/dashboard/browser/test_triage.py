"""Two people answer the same alert at once, each in a browser of their own."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from hybridwatch.analysis.alerts import Alert
from hybridwatch.database.queries import open_index
from hybridwatch.pages.screens import ScreenSource
from hybridwatch.pages.screens.screen import alerts_here
from hybridwatch.records.store import write_run
from tests.builders import BASELINE, a_run
from tests.dashboard.browser.browsing import opened, served, window

pytestmark = pytest.mark.browser

HOSTILE: Final = '<img src=x onerror="window.pwned = 1"> **bold** [x](javascript:window.pwned=1)'


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one alert; each test looks only at what it adds to it."""
    folder = tmp_path_factory.mktemp("results")
    contract = "contract.padded_rows_prefilling"
    builds = (BASELINE, BASELINE)
    write_run(folder, a_run({contract: (0.0, 0.0)}, {contract: (3.0, 3.0)}, builds=builds))
    return folder


@pytest.fixture(scope="module")
def address(results: Path) -> Iterator[str]:
    """The address of a dashboard over the store."""
    with served(results) as found:
        yield found


def alert_in(results: Path) -> Alert:
    source = ScreenSource(results, open_index(results), datetime.now(UTC))
    (group,) = alerts_here(source)
    return group.lead


def found_by(page: Page, address: str) -> Page:
    """Find the alert as a person does: from the list, by its name."""
    opened(page, address, "alerts")
    page.get_by_role("cell").get_by_role("link", name="smoke/padded-graph-rows").click()
    page.get_by_role("textbox", name="Your name").wait_for()
    return page


def fill_in(page: Page, name: str, note: str) -> Locator:
    """Fill in a note; gives the button that sends it."""
    page.get_by_role("textbox", name="Your name").fill(name)
    page.get_by_role("tab", name="Note").click()
    page.get_by_role("textbox", name="Note").fill(note)
    return page.get_by_role("button", name="Note", exact=True)


def says(page: Page, text: str) -> None:
    expect(page.get_by_text(text).first).to_be_visible()


def test_of_two_at_once_one_wins_and_the_other_is_reported_and_asked_again(
    page: Page, browser: Browser, address: str, results: Path
) -> None:
    with window(browser) as other:
        ada, ben = found_by(page, address), found_by(other, address)
        known = alert_in(results).decisions.version
        buttons = [fill_in(ada, "Ada", "mine"), fill_in(ben, "Ben", "no, mine")]
        # Both are sent before either is answered.
        for button in buttons:
            button.click(no_wait_after=True)
        pages = {"Ada": ada, "Ben": ben}
        for each in pages.values():
            answers = each.get_by_text("Kept: ").or_(each.get_by_text("somebody was faster"))
            expect(answers).to_have_count(1)
        kept = alert_in(results).decisions.entries[known:]
        assert len(kept) == 1
        (winner,) = (entry.who for entry in kept)
        (loser,) = pages.keys() - {winner}
        says(pages[winner], f"Kept: {winner} noted.")
        says(pages[loser], "Nothing was kept: somebody was faster")
        says(pages[loser], f"{winner} noted: {kept[0].decision.text}")
        pages[loser].get_by_role("button", name="Note", exact=True).click()
        says(pages[loser], f"Kept: {loser} noted.")
    assert [entry.who for entry in alert_in(results).decisions.entries[known:]] == [winner, loser]


def test_an_answer_is_kept_shown_and_the_name_remembered(page, address, results) -> None:
    found_by(page, address)
    fill_in(page, "Cleo", HOSTILE).click()
    says(page, "Kept: Cleo noted.")
    says(page, HOSTILE)
    assert alert_in(results).decisions.entries[-1].decision.text == HOSTILE
    page.get_by_role("link", name="Builds and fixes").click()
    page.get_by_role("heading", name="Builds and fixes").wait_for()
    page.get_by_role("link", name="Alerts").first.click()
    page.get_by_role("cell").get_by_role("link", name="smoke/padded-graph-rows").click()
    expect(page.get_by_role("textbox", name="Your name")).to_have_value("Cleo")
    assert page.evaluate("window.pwned") is None
