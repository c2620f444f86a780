"""A clone of vLLM's repository, of a few files."""

import subprocess
from pathlib import Path

from tests.small_release import CODE, write


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
