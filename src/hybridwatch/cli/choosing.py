"""Which scenarios a command line means, given the builds that shall run them."""

from collections.abc import Collection, Mapping, Sequence

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.fitting import find_model_runner, misfit
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.load import find
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.console_text import say
from hybridwatch.system.home import home


def chosen(patterns: Sequence[str], labels: Sequence[str]) -> list[Scenario]:
    """Find what is named; without names, everything that the builds can run.

    Of a group that is named, those that do not apply to a build are left out, and each is named on
    standard error with the reason. Each is given as it is for the first build's model runner.

    Raises:
        ScenarioError: A pattern names nothing, or a file is wrong.
        BuildError: A label names no build, or one that cannot run what is named.
    """
    found = find(home() / "scenarios", patterns)
    sides = [parse_label(label) for label in labels]
    whys = {one.id: [why for side in sides if (why := misfit(one, side))] for one in found}
    left_out = {scenario_id: reasons[0] for scenario_id, reasons in whys.items() if reasons}
    if patterns:
        _tell(left_out, patterns, whys)
    return [
        one.on(find_model_runner(one, sides[0])) if sides else one
        for one in found
        if one.id not in left_out
    ]


def _tell(left_out: Mapping[str, str], patterns: Sequence[str], found: Collection[str]) -> None:
    """Refuse what is named itself, or all there is; say what else is left out."""
    for scenario_id, reason in left_out.items():
        if scenario_id in patterns or len(left_out) == len(found):
            raise BuildError(f"{scenario_id} {reason}; see: hybridwatch engine list")
    for scenario_id, reason in left_out.items():
        say(f"left out: {scenario_id} {reason}", err=True)
