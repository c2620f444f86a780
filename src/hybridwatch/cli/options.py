"""Options that several verbs take."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_Verb = Callable[..., Any]


def takes_results(says: str) -> Callable[[_Verb], _Verb]:
    """Give a verb the argument ``results``, a folder.

    Args:
        says: What the verb does with it, for its help.
    """
    return click.option(
        "--results",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("results"),
        show_default=True,
        help=says,
    )
