"""How this program was called, so that the commands it suggests work as printed."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from hybridwatch.cli.options import default_results
from hybridwatch.records.store.layout import results_name

_NAME: Final = "hybridwatch"


def program(*, elsewhere: bool = False) -> str:
    """Give the word, or the words, by which a shell here starts this program again.

    In a checkout that is ``.venv/bin/hybridwatch`` unless the environment is active.

    Args:
        elsewhere: Whether the shell will be in another folder by then.
    """
    written = _whole if elsewhere else _from_here
    called = Path(sys.argv[0])
    if called.parts[-2:] == (_NAME, "__main__.py"):
        return f"{written(Path(sys.executable))} -m {_NAME}"
    if called.name != _NAME or not called.exists():
        return _NAME
    found = shutil.which(_NAME)
    if found is not None and Path(found).resolve() == called.resolve():
        return _NAME
    return written(called)


def with_results(results: Path) -> str:
    """Give the words that name a results folder; none for the one where verbs look anyway."""
    return (
        "" if results == default_results() else f" --results {shlex.quote(results_name(results))}"
    )


def _whole(path: Path) -> str:
    return shlex.quote(str(Path.cwd() / path))


def _from_here(path: Path) -> str:
    """Write a path from the working directory on where it lies below, else whole."""
    whole, here = Path.cwd() / path, Path.cwd()
    return shlex.quote(str(whole.relative_to(here) if whole.is_relative_to(here) else whole))
