"""``python -m tests.unchanged`` runs the long tests whose subject has changed, and notes each pass.

Files named after it are the only ones: ``python -m tests.unchanged tests/engine/test_kernels.py``.

Some tests look for a long time at a small part of the project, such as the CPU kernels. ``make
test`` runs them when that part, or the test itself, is not as it was when they last passed; ``make
test-all`` runs them always. ``unchanged.json`` says of each file of tests what it looks at, and the
digest of that when the tests passed.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
TABLE: Final = Path(__file__).with_name("unchanged.json")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a file of tests looks at."""

    file: str
    paths: tuple[str, ...]
    passed: str

    def digest(self, root: Path = ROOT) -> str:
        """Digest of what git knows under the paths, as it is now."""
        words = ["git", "-C", str(root), "ls-files", "-z", "--", self.file, *self.paths]
        listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        whole = hashlib.sha256()
        for name in sorted(filter(None, listed.split("\0"))):
            content = (root / name).read_bytes() if (root / name).is_file() else b""
            whole.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\0".encode())
        return whole.hexdigest()

    def is_unchanged(self, root: Path = ROOT) -> bool:
        """Whether all of it is as it was when the tests last passed."""
        return self.digest(root) == self.passed


def read(table: Path) -> tuple[Subject, ...]:
    """Read what is noted in a table."""
    noted = json.loads(table.read_text(encoding="utf-8"))
    return tuple(Subject(file, tuple(one["paths"]), one["passed"]) for file, one in noted.items())


@cache
def subjects() -> tuple[Subject, ...]:
    """Give what is noted, read once."""
    return read(TABLE)


def leave_to_test_all(items: Sequence[pytest.Item]) -> None:
    """Mark as slow the tests whose subject is unchanged."""
    unchanged = {one.file for one in subjects() if one.is_unchanged()}
    for item in items:
        if item.nodeid.partition("::")[0] in unchanged:
            item.add_marker(pytest.mark.slow)


def note(passed: Subject, table: Path = TABLE, root: Path = ROOT) -> None:
    """Write down that the tests of a file have passed as all that they look at is now."""
    known = (replace(one, passed=one.digest(root)) if one == passed else one for one in read(table))
    noted = {one.file: {"paths": one.paths, "passed": one.passed} for one in known}
    table.write_text(json.dumps(noted, indent=2) + "\n", encoding="utf-8")


def main(files: Sequence[str]) -> int:
    """Run what has changed, all of it or some files; give how many do not pass."""
    failed = 0
    for one in read(TABLE):
        if one.is_unchanged() or (files and one.file not in files):
            continue
        words = ("-m", "pytest", "-m", "not slow and not hours", one.file)
        if subprocess.run([sys.executable, *words], cwd=ROOT, check=False).returncode:
            failed += 1
        else:
            note(one)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
