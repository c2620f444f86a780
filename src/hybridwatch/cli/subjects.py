"""What a verb measures: builds, lines, scenarios and phases, and how many trials of them."""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import VerbOption
from hybridwatch.cli.terminal import say
from hybridwatch.engines.builds import CODE_DIGITS, CODE_MARK, DEFAULT_BUILD, BuildSpec, parse_label
from hybridwatch.engines.fitting import find_model_runner, misfit
from hybridwatch.errors import BuildError, ScenarioError
from hybridwatch.records.identity import checked_line
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.fixes import NO_FIX
from hybridwatch.scenarios.load import find
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home

if TYPE_CHECKING:
    from hybridwatch.engines.check import BuildCheck

_CHANGED_FILES: Final = 5
"""Changed files that are named of a build; more are counted."""


build_option: Final = partial(click.option, metavar="BUILD", shell_complete=completion.builds)
"""An option that names a build."""


def takes_build(says: str = "The engine build.", default: str = DEFAULT_BUILD) -> VerbOption:
    """Give a verb the argument ``build``, the label of one."""
    return build_option("--build", default=default, show_default=True, help=says)


def takes_builds(says: str) -> VerbOption:
    """Give a verb the argument ``labels``, of any number of builds."""
    return build_option("--build", "labels", multiple=True, help=says)


def takes_base(says: str) -> VerbOption:
    """Give a verb the argument ``base``, the build that one's own is laid over; empty for none."""
    return build_option("--base", default="", help=says)


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
    if wrong := next((word for word in words if word not in known), None):
        expected = f"expected {', '.join(known)}, found {wrong!r}"
        raise click.BadParameter(expected, context, option)
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


def chosen(patterns: Sequence[str], labels: Sequence[str]) -> list[Scenario]:
    """Find what is named, else all that the builds can run, as for the first one's model runner.

    Of a group those that do not apply to a build are left out, each with its reason on stderr.
    """
    found = find(home() / "scenarios", patterns)
    sides = [parse_label(label) for label in labels]
    whys = {one.id: [why for side in sides if (why := misfit(one, side))] for one in found}
    left_out = {scenario_id: reasons[0] for scenario_id, reasons in whys.items() if reasons}
    named = left_out if patterns else {}
    for name, reason in named.items():
        if name in patterns or len(named) == len(found):
            raise BuildError(f"{name} {reason}; see: hybridwatch engine list")
    say(*(f"left out: {name} {reason}" for name, reason in named.items()), err=True)
    fitting = [one for one in found if one.id not in left_out]
    return [one.on(find_model_runner(one, sides[0])) for one in fitting] if sides else fitting


MUTANTS_ALONE: Final = "no known bug to take out, mutants are the control"
"""What is said of a scenario that looks for no bug that is known."""


def with_known_bad(scenarios: Sequence[Scenario]) -> tuple[list[Scenario], str]:
    """Separate scenarios with a fix to take out, and a text on others; raise if none has one."""
    found = [scenario for scenario in scenarios if scenario.fix != NO_FIX]
    left = [scenario.id for scenario in scenarios if scenario.fix == NO_FIX]
    text = f"{MUTANTS_ALONE}: {', '.join(left)}" if left else ""
    if not found:
        raise ScenarioError(f"--known-bad: nothing to compare: {text}")
    return found, text


takes_documents = click.option(
    "--documents", type=click.IntRange(1), help="Number of documents of each accuracy task."
)
"""Gives a verb the argument ``documents``; ``None`` leaves the scenario's count."""

takes_second_look: Final = click.option(
    "--second-look/--no-second-look",
    default=True,
    help="Measure times again, on new engines, before they are called changed.  [default: on]",
)
"""Gives a verb the argument ``second_look``."""
takes_profile: Final = click.option(
    "--profile",
    is_flag=True,
    help="When all is measured, sample both engines of what got slower, and name the functions.",
)
"""Gives a verb the argument ``profile``."""

BRIEF_TRIALS: Final = {"contract": 1, "performance": 2, "host_sync": 1, "starts": 1}
"""Trials of a side at the most. A broken rule shows in one; times get no verdict from two or from
three, only from seven."""
BRIEF_DOCUMENTS: Final = 60
"""Of all tasks together at the most, and no more than half of each. A smoke scenario whose bug
loses answers loses 8 of these or more: exact p below 0.01."""
BRIEF_WARM_UPS: Final[tuple[Phase, ...]] = ()
"""Timed phases with a warm-up: contracts and accuracy came before on the same engine, a host-sync
trial counts first and times afterwards."""


def briefly(scenario: Scenario) -> Scenario:
    """Leave as much of a scenario as it takes to see whether its bug is caught."""
    trials = {
        name: min(getattr(scenario.trials, name), most) for name, most in BRIEF_TRIALS.items()
    }
    changed: dict[str, object] = {"trials": scenario.trials.model_copy(update=trials)}
    if scenario.accuracy is not None:
        most = BRIEF_DOCUMENTS // len(scenario.accuracy.tasks)
        documents = min(math.ceil(scenario.accuracy.documents / 2), max(1, most))
        changed["accuracy"] = scenario.accuracy.model_copy(update={"documents": documents})
    return scenario.model_copy(update=changed)


def with_counts(
    scenario: Scenario,
    *,
    contract: int | None = None,
    timed: int | None = None,
    documents: int | None = None,
    starts: int | None = None,
) -> Scenario:
    """Apply the counts, of trials and starts a side and of documents a task, that are not ``None``.

    The scenario stays the same one (``scenarios.digest``).
    """
    counts = {"contract": contract, "performance": timed, "host_sync": timed, "starts": starts}
    trials = {name: count for name, count in counts.items() if count is not None}
    changed: dict[str, object] = {"trials": scenario.trials.model_copy(update=trials)}
    if scenario.accuracy is not None and documents is not None:
        changed["accuracy"] = scenario.accuracy.model_copy(update={"documents": documents})
    return scenario.model_copy(update=changed)


def lines_about(build: BuildSpec, found: "BuildCheck") -> list[str]:
    """Say what a build is: where it is from, and how its code differs from the release's."""
    code = (found.code_digest or "")[:CODE_DIGITS]
    over = f", over {build.base}" if build.base else ""
    lines = [f"{build.name}{CODE_MARK}{code}: {found.distribution} {found.release}{over}"]
    if found.revision:
        clean = f"changes {found.diff_digest[:8]}" if found.diff_digest else "no changes"
        lines.append(f"  commit {found.revision[:12]}, {clean}")
    if found.changed_files is None:
        lines.append("  what differs from the release is not known: no wheel lists this code")
    else:
        named = list(found.changed_files[:_CHANGED_FILES])
        more = len(found.changed_files) - len(named)
        shown = ", ".join(named + ([f"{more} more"] if more else [])) or "none"
        lines.append(f"  Python files that differ from the wheel's: {shown}")
    return lines
