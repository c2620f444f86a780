"""When a page of the dashboard is there to be looked at."""

from typing import Final

from playwright.sync_api import Page

_DRAWN: Final = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  const plots = [...document.querySelectorAll("[data-testid=stPlotlyChart]")];
  return app?.dataset.testScriptState === "notRunning"
    && document.querySelector("h1.hw-title") !== null
    && document.querySelector("[data-stale=true], [data-testid=stSkeleton]") === null
    && plots.every((plot) => plot.querySelector(".scatterlayer, .barlayer, .cartesianlayer"));
}"""


def settle(page: Page, timeout_ms: float = 60_000) -> None:
    """Wait until the page is drawn whole: its script has ended, nothing is still to come."""
    page.wait_for_function(_DRAWN, timeout=timeout_ms)
