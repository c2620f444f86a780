"""Asks git about a repository."""

import subprocess
from pathlib import Path
from typing import Final

from hybridwatch.errors import BuildError

_LIMIT_S: Final = 120.0


def git(folder: Path, *words: str) -> str:
    """Call git in a folder, and return what it prints.

    Raises:
        BuildError: There is no git, it takes more than two minutes, or it refuses.
    """
    command = ("git", "-C", str(folder), *words)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise BuildError(f"{folder}: git {words[0]}: {error.stderr.strip()}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{folder}: git {words[0]}: {error}") from None
    return done.stdout
