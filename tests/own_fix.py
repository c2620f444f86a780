"""The fix of the user's own that docs/home.md shows, as files in a folder."""

import re
from pathlib import Path

from tests.wheel import ROOT

FIX = "empty-new-state"
FILES = {"toml": "mine.toml", "python": "empty_new_state.py"}


def write_own_fix(folder: Path) -> Path:
    """Write the two files that the page shows.

    Args:
        folder: Made if it is not there.

    Returns:
        The file with the table.
    """
    section = (ROOT / "docs" / "home.md").read_text().partition("## A fix of yours")[2]
    folder.mkdir(exist_ok=True)
    for language, name in FILES.items():
        (text,) = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
        (folder / name).write_text(text)
    return folder / FILES["toml"]
