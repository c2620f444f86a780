"""How pip is called for an engine build: with what, and from where it takes packages."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

OPTIONS: Final = ("--disable-pip-version-check", "--no-input")

_ELSEWHERE: Final = (
    *("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"),
    *("PIP_TARGET", "PIP_PREFIX", "PIP_USER"),
)
"""Another environment's variables, which would send pip's work there."""


def source(wheels: Sequence[Path]) -> tuple[str, ...]:
    """Return options that send pip to folders and to no index; none without folders."""
    if not wheels:
        return ()
    return ("--no-index", *(word for folder in wheels for word in ("--find-links", str(folder))))


def environment(wheels: Sequence[Path]) -> dict[str, str]:
    """Return the variables that pip runs with.

    With folders its settings are left out: they may name further folders, and whether the ones that
    were asked for are complete would show only where there are no others.
    """
    hidden = {*_ELSEWHERE, *(("PIP_FIND_LINKS",) if wheels else ())}
    found = {name: value for name, value in os.environ.items() if name not in hidden}
    return found | ({"PIP_CONFIG_FILE": os.devnull} if wheels else {})
