"""Which builds an asv suite is about: environment variables, since asv hands no arguments on."""

import os
from typing import Final

from hybridwatch.engine.builds import DEFAULT_BUILD, parse_label
from hybridwatch.scenario.scenario import Scenario

BUILD_VARIABLE: Final = "HYBRIDWATCH_BUILD"
BASELINE_VARIABLE: Final = "HYBRIDWATCH_BASELINE"


def labels() -> tuple[str, ...]:
    """The builds, the baseline first if there is one."""
    named = (os.environ.get(BASELINE_VARIABLE), os.environ.get(BUILD_VARIABLE) or DEFAULT_BUILD)
    return tuple(filter(None, named))


def can_run(scenario: Scenario) -> bool:
    """Whether all of them are for what a scenario needs.

    Raises:
        BuildError: A label names no build.
    """
    return all(scenario.fits(parse_label(label).spec.accelerator) for label in labels())
