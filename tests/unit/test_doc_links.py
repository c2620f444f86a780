"""What the pages of the repository name is there: links, headings, modules, verbs."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from hybridwatch.cli.main import VERBS

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "",
    "docs",
    "scenarios",
    "engine",
    "models/*",
    "benchmarks",
    "dashboard",
    "results",
    "ci",
)
# The changelog names what was there then.
PAGES = sorted(
    path
    for folder in FOLDERS
    for path in ROOT.glob(f"{folder}/*.md".lstrip("/"))
    if path.name != "CHANGELOG.md"
)
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def dead_links(page: Path) -> list[str]:
    dead = []
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        place = page.parent / target if target else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            dead.append(f"{target}#{anchor}")
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_every_page_of_docs_can_be_reached_from_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        links = LINK.findall(page.read_text(encoding="utf-8"))
        waiting += [page.parent / target for target, _ in links if target]
    assert {path.resolve() for path in (ROOT / "docs").glob("*.md")} - reached == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_a_page_starts_is_there(page: Path) -> None:
    named = re.findall(
        r"python -m\s+((?:hybridwatch|tests)[\w.]*[a-z])", page.read_text(encoding="utf-8")
    )
    assert [name for name in named if find_spec(name) is None] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_verb_that_a_page_types_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    typed = re.findall(r"(?:^|`|/|\| )hybridwatch ([a-z][a-z-]*)(?=[ `\n])", text, re.MULTILINE)
    assert set(typed) <= set(VERBS)
