"""``python -m tests.unchanged`` runs the long tests whose subject has changed, and notes a pass.

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
from dataclasses import dataclass
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


@cache
def subjects(table: Path = TABLE) -> tuple[Subject, ...]:
    """What is noted in a table."""
    noted = json.loads(table.read_text(encoding="utf-8"))
    return tuple(Subject(file, tuple(one["paths"]), one["passed"]) for file, one in noted.items())


def leave_to_test_all(items: Sequence[pytest.Item]) -> None:
    """Mark as slow the tests whose subject is unchanged."""
    unchanged = {one.file for one in subjects() if one.is_unchanged()}
    for item in items:
        if item.nodeid.partition("::")[0] in unchanged:
            item.add_marker(pytest.mark.slow)


def main() -> int:
    """Run what has changed; when all of it passes, note the digests."""
    changed = [one for one in subjects() if not one.is_unchanged()]
    words = ["-m", "not slow and not hours", *(one.file for one in changed)]
    status = int(pytest.main(words)) if changed else 0
    if status == 0:
        noted = {one.file: {"paths": one.paths, "passed": one.digest()} for one in subjects()}
        TABLE.write_text(json.dumps(noted, indent=2) + "\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
