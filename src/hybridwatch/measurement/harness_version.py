"""Who measures: the version of hybridwatch and the commit it runs from."""

import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Final

from hybridwatch.records.identity import Harness
from hybridwatch.system.home import is_checkout, shipped

_GIT_TIMEOUT_S: Final = 10.0


def harness_identity() -> Harness:
    """Read our version and, when we run from a checkout, its revision."""
    # A repository around an installed package would not be ours.
    revision = _revision(shipped()) if is_checkout() else None
    return Harness(version=version("hybridwatch"), revision=revision)


def _revision(folder: Path) -> str | None:
    """Commit of the checkout around a folder, ``+`` appended when its code was changed.

    Results do not count as changes: a run adds a record, and the next run must not differ by it.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changed = _git(folder, "status", "--porcelain", "--", ":/", ":(exclude,top)results")
    return f"{commit}+" if changed else commit


def _git(folder: Path, *arguments: str) -> str:
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's git, wherever it is
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
