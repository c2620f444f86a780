"""How Python is called, ours or an engine's: a ``json.py`` of the working folder is not loaded."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

SAFELY: Final = "-P"
"""Leaves the working folder out of the places of modules; our own engines' processes inherit it."""


def python_command(*words: str, python: Path | str = sys.executable) -> tuple[str, ...]:
    """Give the command line of a Python with ``-m MODULE`` or ``-c CODE`` and arguments."""
    return (str(python), SAFELY, *words)


def run_captured(
    command: Sequence[str], limit_s: float | None = None, *, check: bool = True, **how: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, without input; what it prints is text."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=limit_s,
        check=check,
        **how,
    )
