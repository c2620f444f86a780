"""Hostile texts, and what must not come of them on a page."""

from typing import Final

from playwright.sync_api import Page

SCRIPT: Final = "<script>window.pwned = 1</script>"
MARKED: Final = "[link](javascript:window.pwned=1) **bold** :smile: $x$ {{ 7 * 7 }}"
HOSTILE: Final = " ".join(
    (
        SCRIPT,
        '<img src=x onerror="window.pwned = 1">',
        '<svg onload="window.pwned = 1"><a xlink:href="javascript:window.pwned = 1">a</a></svg>',
        '<details open ontoggle="window.pwned = 1">d</details>',
        '<iframe srcdoc="<script>parent.pwned = 1</script>"></iframe>',
        '<a class="hw-link" href="javascript:window.pwned = 1">a</a>',
        """"><b onfocus='window.pwned = 1' autofocus tabindex=0>b</b>""",
        MARKED,
        "</script>" + SCRIPT,
    )
)
ALIVE: Final = r"""() => [...document.querySelectorAll("*")].filter((element) => {
  const runs = ({ name, value }) =>
    (/^on/.test(name) && value.includes("pwned"))
    || (/href|src|action/.test(name) && /^\s*javascript:/i.test(value))
    || (name === "src" && value === "x")
    || name === "srcdoc";
  const isScript = element.tagName === "SCRIPT" && element.type !== "application/json"
    && element.textContent.trim().startsWith("window.pwned");
  return isScript || [...element.attributes].some(runs);
}).map((element) => element.outerHTML)"""
"""What on a page could run a hostile text: handlers, addresses, scripts, and what would load."""


def troubles(page: Page, least: int = 0) -> list[str]:
    """Say what came of hostile texts but that they can be read."""
    said = page.locator("body").inner_text()
    unread = [text for text in (SCRIPT, MARKED) if said.count(text) < least]
    alive = page.evaluate(ALIVE)
    assert isinstance(alive, list)
    ran = page.evaluate("window.pwned !== undefined")
    return [*alive, *(f"not to be read: {text}" for text in unread), *(["it ran"] if ran else [])]
