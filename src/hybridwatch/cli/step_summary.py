"""A job of GitHub Actions: its page, and its summary, to which every step may add."""

import os
from pathlib import Path
from typing import Final

from hybridwatch.errors import ExportError

SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable in which a job names the file."""
_RUN: Final = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")


def run_address() -> str:
    """Give the address of the page of this run; empty outside of GitHub Actions."""
    server, repository, run = (os.environ.get(name) for name in _RUN)
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and run else ""


def add_to_summary(text: str) -> bool:
    """Add Markdown to the summary, and say whether there is one.

    Raises:
        ExportError: The file that the environment names cannot be written.
    """
    place = os.environ.get(SUMMARY)
    if not place:
        return False
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ExportError(
            f"{SUMMARY}: {place}: cannot be written: {error.strerror or error}"
        ) from error
    return True
