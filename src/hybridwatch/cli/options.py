"""Options that several verbs take."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.home import home_or_shipped, is_extending

_RESULTS: Final = Path("results")

_Verb = Callable[..., Any]


def examples(*commands: str) -> str:
    """Write the end of a verb's help: commands that can be typed as they stand."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def default_results() -> Path:
    """Give the folder in which verbs look for records when nobody says where.

    That of the home, when it is one that extends what is shipped; else the one right here.
    """
    folder = home_or_shipped()
    return folder / _RESULTS if is_extending(folder) and folder != Path.cwd() else _RESULTS


def takes_results(says: str) -> Callable[[_Verb], _Verb]:
    """Give a verb the argument ``results``, a folder."""
    return click.option(
        "--results",
        type=click.Path(path_type=Path, file_okay=False),
        default=default_results,
        show_default="results, of the home if there is one",
        help=says,
    )
