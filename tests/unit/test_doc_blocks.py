"""Every block of commands of a page runs here, or a marker above it says what it needs.

A marker is a comment that a page does not show, ``<!-- not run: engine -->``, or, for some programs
or verbs of a block alone, ``<!-- not run (try, dashboard): engine, server -->``.
"""

import re
import shlex
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command_line import run_verb
from tests.unit.test_doc_links import PAGES as LINKED_PAGES
from tests.unit.test_doc_links import ROOT, name_of, text_of

# Two pages are written by programs; their commands take a GPU or hours.
LEFT_OUT = {"lab/docs/calibration.md", "lab/docs/findings-gpu.md"}
PAGES = [page for page in LINKED_PAGES if name_of(page) not in LEFT_OUT]
BLOCK = re.compile(
    r"^( *)```(\w*)\n(.*?)^\1```$|(?<=\n\n)((?: {4,}\S[^\n]*\n)+)", re.MULTILINE | re.DOTALL
)
MARKER = re.compile(r"<!-- not run(?: \((?P<names>[^)]+)\))?: (?P<needs>[^>]+) -->\s*\Z")
NEEDS = {
    "engine",
    "GPU",
    "server",
    "network",
    "GitHub",
    "shell",
    "cron",
    "Ray",
    "package",
    "PostgreSQL",
    "minutes",
}
"""What a marker may name, beside what it stands for: no test of a page has it."""
SHELL, DATA = {"", "bash", "sh"}, {"json", "mermaid", "python", "text", "toml", "yaml"}
PROGRAM = {"hybridwatch", ".venv/bin/hybridwatch"}
SHIPPED = ("engine", "models", "oracles")


@dataclass(frozen=True)
class Block:
    """Commands of a page, and the programs and verbs of which none runs (`None`: all)."""

    place: str
    commands: tuple[str, ...]
    left_out: frozenset[str] | None
    faults: tuple[str, ...]


def read_marker(before: str) -> tuple[frozenset[str] | None, tuple[str, ...]]:
    """Give what the text before a block leaves out, and what is wrong with the marker."""
    found = MARKER.search(before)
    if found is None:
        return frozenset(), ()
    unknown = set(re.split(r",\s*", found["needs"])) - NEEDS
    names = found["names"] and frozenset(re.split(r",\s*", found["names"]))
    return names or None, tuple(f"a marker names {name!r}" for name in sorted(unknown))


def find_blocks(name: str, text: str) -> Iterator[Block]:
    for found in BLOCK.finditer(text):
        _, language, fenced, indented = found.groups()
        if language in DATA:
            continue
        left_out, faults = read_marker(text[: found.start()])
        if language and language not in SHELL:
            faults = (*faults, f"language {language!r}")
        lines = re.sub(r"\\\n\s*", "", fenced or indented).splitlines()
        commands = tuple(
            line.strip() for line in lines if line.strip(" #") and line.strip()[0] != "#"
        )
        yield Block(
            f"{name}:{text.count(chr(10), 0, found.start()) + 1}", commands, left_out, faults
        )


def split_command(line: str) -> list[tuple[str, list[str]]]:
    """Give each call of a line behind the operator before it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    calls: list[tuple[str, list[str]]] = [("", [])]
    for word in lexer:
        if set(word) <= set("|&;<>"):
            calls.append((word, []))
        else:
            calls[-1][1].append(str(Path(word).expanduser()) if word.startswith("~") else word)
    return calls


def run_call(
    words: list[str], said: str | None, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    """Run one call; gives its output, and why it is not as a reader expects."""
    if words[0] == "cd" and Path(words[-1]).is_dir():
        monkeypatch.chdir(words[-1])
    elif words[0] == "cp":
        shutil.copy(*words[1:])
    elif words[0] in PROGRAM:
        answer = run_verb(*words[1:], input=said)
        wrong = answer.exit_code not in {0, 1}
        return answer.stdout, f"status {answer.exit_code}: {answer.output}" if wrong else ""
    else:
        return "", "it does not run here, and no marker says so"
    return "", ""


def run_line(line: str, left_out: Iterable[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run what a line types; gives the names of what was left out, and faults behind ``!``."""
    said: str | None = None
    for operator, words in split_command(line):
        if skipped := set(left_out) & set(words):
            yield from skipped
            continue
        if operator not in {"", "|", "&&"}:
            yield f"!{line}: {operator} is not run here, and no marker says so"
            return
        said, fault = run_call(words, said if operator == "|" else None, monkeypatch)
        if fault:
            yield f"!{line}: {fault}"


def run_block(block: Block, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a block; gives its faults."""
    if block.left_out is None:
        return list(block.faults)
    seen = [each for line in block.commands for each in run_line(line, block.left_out, monkeypatch)]
    stale = sorted(block.left_out - set(seen))
    return [
        *block.faults,
        *(f"a marker names {name!r}, which is not there" for name in stale),
        *(each[1:] for each in seen if each.startswith("!")),
    ]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the committed records; in the example of a fleet a reader has said more."""
    folder: Path = tmp_path_factory.mktemp("clone")
    left_out = shutil.ignore_patterns("*.sqlite*", "gpu", "nights", "unfinished", "verdicts")
    shutil.copytree(ROOT / "results", folder / "results", ignore=left_out)
    for name in ("ci", "scenarios"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "tests/fixtures/perf-eval/lab.yaml", folder / "WORKLOAD.yaml")
    with (folder / "ci" / "fleet.toml").open("a", encoding="utf-8") as matrix:
        matrix.write("\n[confirm]\nper_day = 10\n")
    for name in SHIPPED:
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture
def fresh(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That checkout, as its owner's only one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HYBRIDWATCH_HOME", "HYBRIDWATCH_DATABASE", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return clone


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_a_page_runs_or_says_what_it_needs(
    page: Path, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = []
    for block in find_blocks(name_of(page), text_of(page)):
        monkeypatch.chdir(fresh)
        faults += [f"{block.place}: {fault}" for fault in run_block(block, monkeypatch)]
    assert faults == []


def test_blocks_run_and_not_only_say_what_they_need() -> None:
    blocks = [block for page in PAGES for block in find_blocks(page.name, text_of(page))]
    assert len(blocks) >= 80
    assert sum(block.left_out is not None for block in blocks) >= 15


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("    hybridwatch compare 00000000\n", "status 2"),
        ("```sh\nhybridwatch sql 'SELECT none FROM run'\n```\n", "status 2"),
        ("    hybridwatch records --json | hybridwatch detect --column none -\n", "status 2"),
        ("    make run\n", "no marker says so"),
        ("    hybridwatch gate > out.txt\n", "no marker says so"),
        ("```console\n$ hybridwatch gate\n```\n", "language 'console'"),
        ("<!-- not run: patience -->\n\n    make run\n", "names 'patience'"),
        ("<!-- not run (make, try): engine -->\n\n    make run\n", "'try', which is not there"),
    ],
)
def test_a_planted_wrong_command_is_found(
    text: str, fault: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fresh)
    (block,) = find_blocks("page.md", f"# A page\n\n{text}")
    assert fault in "\n".join(run_block(block, monkeypatch))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_wrong_command_planted_at_the_end_of_a_page_is_found(
    page: Path, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fresh)
    planted = f"{text_of(page)}\nThen:\n\n    hybridwatch compare 00000000\n"
    *_, block = find_blocks(page.name, planted)
    assert "status 2" in "\n".join(run_block(block, monkeypatch))
