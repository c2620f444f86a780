"""Options that several verbs take."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

DEFAULT_RESULTS: Final = Path("results")
"""Where verbs look for records when nobody says where."""

_Verb = Callable[..., Any]


def examples(*commands: str) -> str:
    """Write the end of a verb's help: commands that can be typed as they stand."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def takes_results(says: str) -> Callable[[_Verb], _Verb]:
    """Give a verb the argument ``results``, a folder."""
    return click.option(
        "--results",
        type=click.Path(path_type=Path, file_okay=False),
        default=DEFAULT_RESULTS,
        show_default=True,
        help=says,
    )
