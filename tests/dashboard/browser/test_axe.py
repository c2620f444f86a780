"""Everybody can read what is reached by a click, too, and what was saved."""

import pytest
from playwright.sync_api import Page

from tests.dashboard.browser.axe import IN_VIEWS, LIT, SCHEMES, Views, found_in, violations
from tests.dashboard.browser.browsing import opened, opened_alone

pytestmark = pytest.mark.browser


@IN_VIEWS
def test_axe_finds_nothing_where_an_alert_is_answered(views: Views, full: str, page: Page) -> None:
    opened(page, full, "alerts")
    page.locator("[data-testid=stHtml] td a.hw-link").first.click()
    # The list has a box for a name, too, but no tabs.
    page.get_by_role("tab", name="Note").wait_for()
    page.get_by_role("textbox", name="Your name").wait_for()
    assert found_in(views, page) == []


def test_axe_finds_nothing_on_a_saved_page(saved_full: str, alone: Page) -> None:
    for scheme in SCHEMES:
        alone.emulate_media(color_scheme=scheme)
        opened_alone(alone, saved_full)
        assert alone.evaluate(LIT, scheme)
        assert violations(alone) == []
