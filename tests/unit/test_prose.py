"""Prose of the pages and of folders' READMEs: short sentences, short lines, common words."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT_OUT = (
    # Written by programs.
    *("lab/docs/findings-gpu.md", "docs/releases.md", "lab/docs/bisect-simulation.md"),
    *("lab/docs/calibration.md", "lab/docs/sweep-simulation.md"),
    # Notes of long measurements, which nobody needs to use the suite.
    *("lab/docs/findings.md", "lab/docs/gpu.md"),
)
FOLDERS = ("benchmarks", "ci", "dashboard", "engine", "results", "scenarios")
PAGES = sorted(
    name
    for folder in (".", "docs", "lab/docs", *FOLDERS)
    for name in (path.relative_to(ROOT).as_posix() for path in (ROOT / folder).glob("*.md"))
    if name not in {*LEFT_OUT, "CHANGELOG.md"}
)
MOST_WORDS = 40
MOST_CHARACTERS = 100
BANNED = re.compile(
    r"\b(anew|beside|blemishes|buried|bury|came home|deed|errand|homecoming|lately|ledger|rung"
    r"|somebody|stranded|theatre|whoever)\b",
    re.IGNORECASE,
)
CODE = re.compile(r"^( *)```[\s\S]*?^\1```$|(?:^|(?<=\n\n))(?: {4,}[^\n]*(?:\n|$))+", re.MULTILINE)
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=#)|(?<=\|)\n(?=\|)")


def keep_lines(found: re.Match[str]) -> str:
    return "\n" * found.group().count("\n")


def find_faults(text: str) -> Iterator[str]:
    """Say what is wrong with a page, each fault with its first words."""
    text = CODE.sub(keep_lines, text)
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MOST_CHARACTERS and not line.startswith(("|", "#")):
            yield f"line {number}: {len(line)} characters, at most {MOST_CHARACTERS}"
    text = re.sub(r"`[^`]+`", "code", re.sub(r"\]\([^)]*\)", "]", text))
    for block in BLOCK.split(text):
        for sentence in re.split(r"(?<=[.?!])[*)\"]*\s+|\|", block):
            words = sentence.split()
            start = " ".join(words[:6])
            if len(words) > MOST_WORDS:
                yield f"{start}: {len(words)} words in a sentence, at most {MOST_WORDS}"
            yield from (f"{start}: {word!r} is banned" for word in BANNED.findall(sentence))


@pytest.mark.parametrize("page", PAGES)
def test_prose_of_a_page_is_short_and_plain(page: str) -> None:
    assert list(find_faults((ROOT / page).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ("A word " * 21 + "ends.", "43 words in a sentence"),
        ("- one\n- " + "word " * 10 + "\n  " + "more " * 31, "42 words in a sentence"),
        ("x" * 101, "101 characters"),
        ("A host lies beside another.", "'beside' is banned"),
        ("| a | Whoever asks |", "'Whoever' is banned"),
    ],
)
def test_a_planted_fault_is_found(planted: str, fault: str) -> None:
    assert fault in "\n".join(find_faults(f"# A page\n\nIt is short.\n\n{planted}\n"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_planted_sentence_in_a_readme_of_a_folder_is_found(folder: str) -> None:
    page = f"{folder}/README.md"
    assert page in PAGES
    text = (ROOT / page).read_text(encoding="utf-8")
    planted = f"{text}\nWhoever reads this finds a record beside it.\n"
    assert [fault.partition(": ")[2] for fault in find_faults(planted)] == [
        "'Whoever' is banned",
        "'beside' is banned",
    ]


def test_code_and_long_tables_are_left_alone() -> None:
    code = "```\n" + "beside " * 50 + "\n```\n\n    " + "somebody " * 50 + "\n"
    text = f"Text.\n\n{code}\n| {'a ' * 30}| {'b ' * 30}|\n"
    assert list(find_faults(text)) == []
    assert list(find_faults(f"{text}\nAnew.\n")) == ["Anew.: 'Anew' is banned"]
