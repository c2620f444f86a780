"""What the pages of the repository name is there: links, headings, modules, verbs."""

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from hybridwatch.cli.main import verbs

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "",
    "docs",
    "lab/docs",
    "scenarios",
    "engine",
    "models/*",
    "benchmarks",
    "dashboard",
    "results",
    "ci",
    "lab/src/hybridwatch_lab/calibration/histories",
)
# The changelog names what was there then.
PAGES = sorted(
    path
    for folder in FOLDERS
    for path in ROOT.glob(f"{folder}/*.md".lstrip("/"))
    if path.name != "CHANGELOG.md"
)
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def dead_links(page: Path) -> list[str]:
    dead = []
    for target, anchor in LINK.findall(text_of(page)):
        place = page.parent / target if target else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            dead.append(f"{target}#{anchor}")
    return dead


def test_every_link_leads_somewhere() -> None:
    dead = [f"{name_of(page)}: {link}" for page in PAGES for link in dead_links(page)]
    assert PAGES
    assert dead == []


def test_every_page_of_docs_and_of_the_lab_can_be_reached_from_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        links = LINK.findall(text_of(page))
        waiting += [page.parent / target for target, _ in links if target]
    pages = [path for folder in ("docs", "lab/docs") for path in (ROOT / folder).glob("*.md")]
    assert {path.resolve() for path in pages} - reached == set()


def test_every_module_that_a_page_starts_is_there() -> None:
    named = {
        (name_of(page), module)
        for page in PAGES
        for module in re.findall(r"python -m\s+((?:hybridwatch|tests)[\w.]*[a-z])", text_of(page))
    }
    there = {module for module in {module for _, module in named} if find_spec(module)}
    assert sorted((page, module) for page, module in named if module not in there) == []


def test_every_verb_that_a_page_types_is_there() -> None:
    typing = re.compile(r"(?:^|`|/|\| )hybridwatch ([a-z][a-z-]*)(?=[ `\n])", re.MULTILINE)
    typed = {(name_of(page), verb) for page in PAGES for verb in typing.findall(text_of(page))}
    assert sorted((page, verb) for page, verb in typed if verb not in verbs()) == []
