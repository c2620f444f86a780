"""What the files of a run are called.

The record names the file next to it that holds the answers, so the name belongs to the file form;
in which folder the two lie is the store's business.
"""

import re
from datetime import UTC, datetime
from typing import Final

from hybridwatch.records.run import Run

RECORD_SUFFIX: Final = ".json"
BULK_SUFFIX: Final = ".bulk.jsonl.gz"

_STARTED: Final = "%Y%m%dT%H%M%SZ"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._~+-]")
_LONGEST: Final = 120
"""A file name may have 255 bytes; a label with every fix switched must leave room for the rest."""


def safe_name(text: str) -> str:
    """Make a text fit to be part of a file name on any system.

    The text, a build label or a testbed id, may come from outside. Every unsafe character becomes
    ``-``. The name is never hidden (no leading dot), never empty, and has at most 120 characters.
    """
    return _UNSAFE.sub("-", text).lstrip(".")[:_LONGEST] or "unnamed"


def build_stem(run: Run) -> str:
    """Name a run's files, so that sorting by name is sorting by time.

    Such as ``20261121T091500Z-cpu-0.27.1-1f0a9c3e``, with the run's last build, the contender.
    """
    started = run.started_at.astimezone(UTC).strftime(_STARTED)
    return f"{started}-{safe_name(run.builds[-1].label)}-{safe_name(run.id)}"


def parse_start(name: str) -> datetime:
    """Read off a file's name when its run started, to the second and in UTC.

    Raises:
        ValueError: The name is none that ``build_stem`` gives.
    """
    return datetime.strptime(name.partition("-")[0], _STARTED).replace(tzinfo=UTC)
