"""Ten questions of a person on duty: clicks from the overview, and words above each answer.

::

    python -m tests.planted_world --out DIR --seed 1
    python -m tests.dashboard.questions DIR

A word has a letter. Words count from the top of the page that has the answer, without figures,
buttons, the navigation and what is folded.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from playwright.sync_api import Page

from tests.dashboard.looking import settle
from tests.dashboard.server import chromium, serving

MOST_CLICKS: Final = 1
MOST_WORDS: Final = 60
_ALERT: Final = "p.hw-p a[href*='alerts?alert=']"
_LOST: Final = "a[href*='run?'][href*='metric=accuracy']"
"""The link of a cell of the grid that is red first."""
_PAIRS: Final = "a[href*='compare?scenario=all']"
_ABOVE: Final = """(answer) => {
  const main = document.querySelector("[data-testid=stMain]");
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  let text = "";
  while (walker.nextNode() && !answer.contains(walker.currentNode)) {
    const { parentElement: parent, textContent } = walker.currentNode;
    const isFolded = parent.closest("details:not([open])") && !parent.closest("summary");
    const skipped = parent.closest("svg, style, script, button, .hw-unseen");
    if (!isFolded && !skipped && parent.checkVisibility()) text += ` ${textContent}`;
  }
  return text.split(/\\s+/).filter((word) => /\\p{L}/u.test(word)).length;
}"""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, the links to click in order, and where the answer is then."""

    text: str
    clicks: tuple[str, ...]
    answer: str


QUESTIONS: Final = (
    Question("What broke last night?", (), _ALERT),
    Question("Since when?", (), "p.hw-p:has(a[href*='alerts?alert=']) time"),
    Question("Which commit?", (_ALERT,), "a[href*='github.com'][href*='compare']"),
    Question("How sure is it?", (_ALERT,), "dt:text-is('How sure')"),
    Question("What next?", (_ALERT,), "code:has-text('hybridwatch bisect')"),
    Question("Is it the machine?", (_ALERT,), "dt:text-is('The machine')"),
    Question("Is it already known?", (_ALERT,), "dt:text-is('Issue')"),
    Question("Which answers are lost?", (_LOST,), "h2:has-text('Answers that changed')"),
    Question("Can I upgrade?", (_PAIRS,), "p.hw-p .hw-pill"),
    Question("How do I reproduce it?", (_ALERT,), "code:has-text('hybridwatch run')"),
)


@dataclass(frozen=True, slots=True)
class Way:
    """How far an answer is: the words above it on its page; -1 where it is not to be found."""

    question: Question
    words: int

    @property
    def is_short(self) -> bool:
        """Whether a person on duty gets there at once."""
        return len(self.question.clicks) <= MOST_CLICKS and 0 <= self.words <= MOST_WORDS


def measure(page: Page, address: str, question: Question) -> Way:
    """Go from the overview to the answer of a question."""
    page.goto(address)
    settle(page)
    for link in question.clicks:
        here = page.url
        page.locator(link).first.click()
        page.wait_for_function("(here) => location.href !== here", arg=here)
        settle(page)
    answer = page.locator("[data-testid=stMain]").locator(question.answer)
    return Way(question, answer.first.evaluate(_ABOVE) if answer.count() else -1)


@click.command()
@click.argument("store", type=click.Path(path_type=Path, file_okay=False, exists=True))
def command(store: Path) -> None:
    """Print a table of the ten questions over STORE; exit with 1 if an answer is too far."""
    with serving(store) as server, chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        ways = [measure(page, server.address, question) for question in QUESTIONS]
    click.echo("| question | clicks | words above |\n|---|--:|--:|")
    for way in ways:
        mark = "" if way.is_short else " (too far)"
        click.echo(f"| {way.question.text} | {len(way.question.clicks)} | {way.words}{mark} |")
    sys.exit(not all(way.is_short for way in ways))


if __name__ == "__main__":
    command()
