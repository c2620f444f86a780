"""What the locks of all builds have in common: their form, and how pip resolves for them."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from hybridwatch.engines import pip

FOLDER: Final = Path("engine") / "locks"
PIP: Final = (sys.executable, "-m", "pip", *pip.OPTIONS)
Heard = Callable[[str], None]
"""Takes each line that pip prints, as soon as it does."""


def find_lock(build: str) -> Path:
    """Say where the lock of a build lies, from the checkout."""
    return FOLDER / f"{build}.txt"


def lock_text(header: str, lines: Iterable[str]) -> str:
    """Put a lock together, its lines in one order whoever wrote them."""
    ordered = sorted(lines, key=lambda line: line.lower().replace("_", "-"))
    return header + "\n".join(ordered) + "\n"


def unheard(_: str) -> None:
    """Let what pip prints go by."""


def resolved(
    command: Sequence[str], wanted: Sequence[str], heard: Heard = unheard
) -> list[dict[str, Any]]:
    """Return the metadata of everything that pip would install into an empty environment.

    Args:
        command: How pip is called.
        wanted: What it is asked for, and options.
        heard: Hears it at work.

    Raises:
        BuildError: It finds no set of packages.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ("--dry-run", "--ignore-installed", "--report", str(report))
        words = (*command, "install", "--progress-bar", "off", *options, *wanted)
        pip.call(words, "pip finds no set of packages:", heard=heard)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return [item["metadata"] for item in found]
