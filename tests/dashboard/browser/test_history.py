"""One click is one step of the browser's history, and each step shows what was seen there."""

from typing import Final
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from hybridwatch.pages.screens import SCREENS
from tests.dashboard.browser.browsing import pick
from tests.dashboard.looking import settle

pytestmark = pytest.mark.browser

STEP: Final = "navigation.currentEntry.index"
SEEN: Final = """() => [
  location.href,
  ...[...document.querySelectorAll("h1.hw-title, .hw-lead, [data-testid=stHtml] table")].map(
    (part) => part.textContent.replaceAll(/[0-9]+ [a-z]+ ago/g, "")),
]"""
SHOWS: Final = f"(expected) => JSON.stringify(({SEEN})()) === JSON.stringify(expected)"
LEFT: Final = f"(left) => ({SEEN})().slice(1).join() !== left.slice(1).join()"
LINKS: Final = "[data-testid=stSidebarNavLink], [data-testid=stHtml] a.hw-link"


def seen(page: Page) -> list[str]:
    """The address and what the page says there."""
    settle(page)
    found = page.evaluate(SEEN)
    assert isinstance(found, list)
    return found


def shows(page: Page, expected: list[str]) -> bool:
    """Whether a page comes to show what was seen, and stays so."""
    page.wait_for_function(SHOWS, arg=expected)
    return seen(page) == expected


def seen_next(page: Page, left: list[str]) -> list[str]:
    """What is seen after a click that left a view."""
    page.wait_for_function(LEFT, arg=left)
    return seen(page)


def ways(page: Page) -> dict[str, Locator]:
    """A link to every other screen: of the page itself where it has one, else of the navigation.

    Under the paths of the screens, from the one after this page's on.
    """
    links = page.locator(LINKS)
    hrefs = links.evaluate_all("all => all.map((a) => a.getAttribute('href'))")
    here = urlsplit(page.url)
    goals = [urlsplit(urljoin(page.url, href)) for href in hrefs]
    found = {
        goal.path: links.nth(nth)  # the page itself comes after the navigation
        for nth, goal in enumerate(goals)
        if goal.netloc == here.netloc and goal.path != here.path
    }
    order = [path_of(screen) for screen in SCREENS]
    begin = order.index(here.path)
    return {path: found[path] for path in order[begin:] + order[:begin] if path in found}


def path_of(screen: str) -> str:
    return "/" if screen == "overview" else f"/{screen}"


def opened(page: Page, address: str) -> list[str]:
    page.goto(address)
    return seen(page)


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize(
    "links",
    [
        1,
        # By the link to the next screen each is left once and come to once; pairs add little.
        pytest.param(len(SCREENS), marks=pytest.mark.slow),
    ],
)
def test_a_click_is_one_step_and_back_and_forward_show_what_was_seen(
    screen: str, links: int, regressed: str, page: Page
) -> None:
    here = opened(page, f"{regressed}{path_of(screen)}")
    step = page.evaluate(STEP)
    found = list(ways(page).values())
    assert len(found) >= sum(one.listed for one in SCREENS.values()) - 1
    there = here
    for link in found[:links]:
        link.evaluate("link => link.click()")  # also where it is folded away
        there = seen_next(page, here)
        assert page.evaluate(STEP) == step + 1
        page.go_back()
        assert shows(page, here)
    page.go_forward()
    assert shows(page, there)


def test_back_leads_from_a_run_through_choices_to_the_overview(regressed: str, page: Page) -> None:
    shown = [opened(page, regressed)]
    step = page.evaluate(STEP)
    for click in (
        lambda: page.locator("[data-testid=stSidebarNavLink][href$=scenario]").click(),
        lambda: pick(page, "Scenario", "smoke/padded-graph-rows"),
        lambda: page.locator("[data-testid=stHtml] a[href*='run?run=']").first.click(),
    ):
        click()
        shown.append(seen_next(page, shown[-1]))
    assert page.evaluate(STEP) == step + 3
    for before in reversed(shown[:-1]):
        page.go_back()
        assert shows(page, before)


def test_the_address_of_a_view_that_was_opened_bare_is_whole(regressed: str, page: Page) -> None:
    here = opened(page, f"{regressed}/scenario")
    assert "scenario=" in page.url
    assert opened(page, page.url) == here


def test_a_view_that_was_opened_by_a_link_begins_at_its_top(regressed: str, page: Page) -> None:
    page.set_viewport_size({"width": 1400, "height": 500})  # so low that the last run is below it
    main = page.locator("[data-testid=stMain]")
    opened(page, f"{regressed}/runs")
    link = page.locator("[data-testid=stHtml] a[href*='run?run=']").last
    link.scroll_into_view_if_needed()
    assert main.evaluate("main => main.scrollTop") > 0
    link.click()
    page.wait_for_url("**/run?run=*")
    settle(page)
    expect(main).to_have_js_property("scrollTop", 0)
