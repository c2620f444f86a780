"""What an asv suite is told: by environment variables, since asv hands no arguments on."""

import os
from typing import Final

from hybridwatch.engines.builds import DEFAULT_BUILD, BuildRequest, parse_label
from hybridwatch.errors import BuildError
from hybridwatch.formats.write.asv_benchmarks import BUILD_VARIABLE
from hybridwatch.records.line import checked_line
from hybridwatch.scenarios.scenario import Scenario

BASELINE_VARIABLE: Final = "HYBRIDWATCH_BASELINE"
LINE_VARIABLE: Final = "HYBRIDWATCH_LINE"
CONSOLE_VARIABLE: Final = "HYBRIDWATCH_CONSOLE"


def labels() -> tuple[str, ...]:
    """The builds, the baseline first if there is one."""
    return tuple(filter(None, (os.environ.get(BASELINE_VARIABLE), _contender())))


def contender() -> BuildRequest:
    """Give the build that asv gets the numbers of.

    Raises:
        BuildError: Its label names no build.
    """
    return parse_label(_contender())


def _contender() -> str:
    return os.environ.get(BUILD_VARIABLE) or DEFAULT_BUILD


def stated_line() -> str | None:
    """Give the line of builds that the contender is stated to belong to.

    Raises:
        BuildError: It is none.
    """
    text = os.environ.get(LINE_VARIABLE) or None
    try:
        return None if text is None else checked_line(text)
    except ValueError as error:
        raise BuildError(f"{LINE_VARIABLE}: {error}, found {text!r}") from None


def can_run(scenario: Scenario) -> bool:
    """Whether all of them are for what a scenario needs.

    Raises:
        BuildError: A label names no build.
    """
    return all(scenario.fits(parse_label(label).spec.accelerator) for label in labels())
