"""Every screen, opened once: it fits a phone, axe finds nothing, and nothing hostile is alive."""

import pytest
from playwright.sync_api import Page

from hybridwatch.pages.screens import SCREENS
from tests.dashboard.browser.axe import IN_VIEWS, found_in, violations
from tests.dashboard.browser.browsing import TABLES, opened, too_wide, unfold
from tests.dashboard.browser.full_store import JOB
from tests.dashboard.browser.hostile import troubles
from tests.dashboard.looking import settle

pytestmark = pytest.mark.browser

SILENT = frozenset({"mutants", "releases"})
"""Screens without a text that a record made up."""
PARAMETERS = {"job": {"job": JOB.key}}
"""Of screens that show nothing without."""
TOO_WIDE = ".hw-scroll table { min-width: 2000px !important; }"
UNREADABLE = ".hw-lead { color: #bbbbbb !important; background: white; }"
ALIVE = """document.querySelector("h1").insertAdjacentHTML(
  "beforeend", "<b onfocus='window.pwned = 1'>b</b>")"""


@pytest.mark.parametrize("screen", SCREENS)
@IN_VIEWS
def test_a_screen_fits_a_phone_can_be_read_by_all_and_runs_nothing(views, screen, full, phone):
    opened(phone, full, screen, **PARAMETERS.get(screen, {}))
    unfold(phone)
    assert set(phone.evaluate(TABLES)) <= {0}
    assert too_wide(phone) == 0
    said = int(screen not in SILENT)
    assert troubles(phone, least=said) == []
    assert found_in(views, phone) == []
    assert troubles(phone, least=said) == []  # whatever was drawn since, by day and wide


def test_each_check_of_a_screen_sees_what_is_planted(full: str, phone: Page) -> None:
    opened(phone, full, "runs")
    unfold(phone)
    phone.add_style_tag(content=UNREADABLE)
    assert any(each.startswith("color-contrast") for each in violations(phone))
    phone.evaluate(ALIVE)
    assert troubles(phone) == ["""<b onfocus="window.pwned = 1">b</b>"""]
    phone.add_style_tag(content=TOO_WIDE)
    settle(phone)
    assert max(phone.evaluate(TABLES)) > 0
