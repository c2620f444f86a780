"""Options by which several verbs are given what to measure: builds and scenarios."""

from collections.abc import Callable
from typing import Any, Final

import click

from hybridwatch.cli import completion
from hybridwatch.engine.builds import DEFAULT_BUILD

_Verb = Callable[..., Any]


def takes_build(says: str = "The engine build.") -> Callable[[_Verb], _Verb]:
    """Give a verb the argument ``build``, the label of one."""
    return click.option(
        "--build",
        default=DEFAULT_BUILD,
        show_default=True,
        metavar="BUILD",
        shell_complete=completion.builds,
        help=says,
    )


def takes_base(says: str) -> Callable[[_Verb], _Verb]:
    """Give a verb the argument ``base``, the build that one's own is laid over; empty for none."""
    return click.option(
        "--base", metavar="BUILD", default="", shell_complete=completion.builds, help=says
    )


takes_scenarios: Final = click.argument(
    "scenarios", nargs=-1, metavar="[SCENARIO]...", shell_complete=completion.scenarios
)
"""Gives a verb the argument ``scenarios``: ids and groups, or nothing."""
