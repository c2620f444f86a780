"""When a page of the dashboard is there to be looked at."""

from typing import Final

from playwright.sync_api import Page

_DRAWN: Final = """(share) => {
  const inSight = (figure) => {
    const {top, bottom, height} = figure.getBoundingClientRect();
    return Math.min(bottom, innerHeight) - Math.max(top, 0) > height * share && height > 0;
  };
  const app = document.querySelector("[data-testid=stApp]");
  const isDrawn = app?.dataset.testScriptState === "notRunning"
    && document.querySelector("h1.hw-title") !== null
    && document.querySelector("[data-stale=true], [data-testid=stSkeleton]") === null
    && [...document.querySelectorAll("[data-testid=stPlotlyChart]")].every(
      (figure) => figure.querySelector(".scatterlayer, .barlayer, .plot") || !inSight(figure));
  // Asked before every frame; what the page was told last may reach its figures a frame later.
  window.framesDrawn = isDrawn ? (window.framesDrawn ?? 0) + 1 : 0;
  return window.framesDrawn > 1;
}"""


def settle(page: Page, timeout_ms: float = 120_000, share: float = 0) -> None:
    """Wait until what is in sight is drawn whole: the script has ended, nothing is to come.

    Args:
        page: Of the dashboard.
        timeout_ms: How long.
        share: Of a figure, above which it counts as in sight.
    """
    page.bring_to_front()  # what lies behind may not be drawn at all
    page.evaluate("window.framesDrawn = 0")
    page.wait_for_function(_DRAWN, arg=share, timeout=timeout_ms)
