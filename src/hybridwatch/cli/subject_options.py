"""Options by which several verbs are given what to measure: builds, lines, scenarios, phases."""

from collections.abc import Callable
from typing import Any, Final

import click

from hybridwatch.cli import completion
from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.records.identity import checked_line
from hybridwatch.records.run import Phase

_Verb = Callable[..., Any]


def takes_build(
    says: str = "The engine build.", default: str = DEFAULT_BUILD
) -> Callable[[_Verb], _Verb]:
    """Give a verb the argument ``build``, the label of one."""
    return click.option(
        "--build",
        default=default,
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


def _line(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    try:
        return None if text is None else checked_line(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}, found {text!r}", context, option) from None


takes_line: Final = click.option(
    "--line",
    metavar="NAME",
    callback=_line,
    help="The line of builds that the last build belongs to, such as nightly or pr-1234: builds of "
    "one line are one series.  [default: derived from the label]",
)
"""Gives a verb the argument ``line``, or ``None``."""

takes_scenarios: Final = click.argument(
    "scenarios", nargs=-1, metavar="[SCENARIO]...", shell_complete=completion.scenarios
)
"""Gives a verb the argument ``scenarios``: ids and groups, or nothing."""


def _phases(context: click.Context, option: click.Parameter, text: str) -> tuple[Phase, ...]:
    known = {phase.value: phase for phase in Phase}
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise click.BadParameter(
                f"expected {', '.join(known)}, found {word!r}", context, option
            )
    return tuple(phase for name, phase in known.items() if name in words)


takes_phases: Final = click.option(
    "--phases",
    metavar="PHASES",
    default="",
    callback=_phases,
    help=f"What to measure, with commas between: {', '.join(phase.value for phase in Phase)}.  "
    "[default: all but duet]",
)
"""Gives a verb the argument ``phases``, in the order of measurement; empty for the usual ones."""
