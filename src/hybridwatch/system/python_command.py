"""How Python is called, ours or an engine's: a ``json.py`` of the working folder is not loaded."""

import sys
from pathlib import Path
from typing import Final

SAFELY: Final = "-P"
"""Leaves the working folder out of the places of modules; our own engines' processes inherit it."""


def python_command(*words: str, python: Path | str = sys.executable) -> tuple[str, ...]:
    """Give the command line of a Python with ``-m MODULE`` or ``-c CODE`` and arguments."""
    return (str(python), SAFELY, *words)
