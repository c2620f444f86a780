"""Which scenarios a command line means, given the builds that shall run them."""

from collections.abc import Sequence

from hybridwatch.engine.builds import parse_label
from hybridwatch.errors import BuildError
from hybridwatch.home import home
from hybridwatch.scenario.load import find
from hybridwatch.scenario.scenario import Scenario


def chosen(patterns: Sequence[str], labels: Sequence[str]) -> list[Scenario]:
    """Find what is named; without names, everything that the builds can run.

    Raises:
        ScenarioError: A pattern names nothing, or a file is wrong.
        BuildError: A label names no build, or one that cannot run what is named.
    """
    found = find(home() / "scenarios", patterns)
    accelerators = {label: parse_label(label).spec.accelerator for label in labels}
    misfits = [
        (scenario, label)
        for scenario in found
        for label, accelerator in accelerators.items()
        if not scenario.fits(accelerator)
    ]
    if misfits and patterns:
        scenario, label = misfits[0]
        raise BuildError(
            f"{scenario.id} needs the accelerator {scenario.accelerator}, and {label} is a build "
            f"for {accelerators[label]}; see: hybridwatch engine list"
        )
    unfit = {scenario.id for scenario, _ in misfits}
    return [scenario for scenario in found if scenario.id not in unfit]
