"""Through which of lm-eval's filters a task is read, by us and in the files of others.

A task may filter one response in several ways and log each. Answers read through different filters
are as little comparable as those of different versions of a task.
"""

from collections.abc import Sequence
from typing import Final

_STRICT: Final = "strict"


def strictest(names: Sequence[str]) -> str:
    """Choose the first that is called strict (GSM8K's ``strict-match``), else the first.

    ``names``, of which there is at least one, are of filters, or of scores that name their filter.
    """
    return next((name for name in names if _STRICT in name), names[0])


def version_read(version: str, filters: Sequence[str]) -> str:
    """Name the version of a task, and the filter where there was a choice: ``3.0/strict-match``."""
    return version if len(filters) < 2 else f"{version}/{strictest(filters)}"
