"""``hybridwatch controls``: can every scenario tell its bug from nothing at all?"""

from collections.abc import Iterator

import click

from hybridwatch.analysis.control import (
    Control,
    ControlKind,
    a_a_control,
    known_bad_control,
    same_curve_control,
    slow_control,
)
from hybridwatch.cli.options import leave, print_json, takes_json, verb
from hybridwatch.cli.subjects import (
    MUTANTS_ALONE,
    chosen,
    takes_build,
    takes_documents,
    takes_scenarios,
    with_counts,
)
from hybridwatch.cli.terminal import Console, TimeLeft, as_text, progress
from hybridwatch.engines.builds import BuildRequest, parse_label
from hybridwatch.engines.check import healthy_label, known_bad_label, require_installed
from hybridwatch.errors import ScenarioError
from hybridwatch.measurement.session import run_session
from hybridwatch.measurement.session_request import SessionRequest
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.records.run import Phase
from hybridwatch.reports.jsonform import control_to_json
from hybridwatch.reports.sentence import caught_sentence
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable

_PHASES = frozenset({Phase.CONTRACT, Phase.ACCURACY})
_HEALTHY, _BAD = range(2)


@verb("controls", "smoke/dummy-run --seeds 20")
@takes_scenarios
@takes_build()
@click.option(
    "--seeds", type=click.IntRange(1, 1000), help="Number of contract trials on each side."
)
@takes_documents
@takes_json("Print one JSON object at the end.")
def command(
    scenarios: tuple[str, ...],
    build: str,
    seeds: int | None,
    documents: int | None,
    *,
    as_json: bool,
) -> None:
    """Check that each SCENARIO finds its bug, and finds nothing in a healthy engine.

    SCENARIO is an id or a group; without one, all that the build can run. The build without the
    scenario's fix must break a contract and give a wrong answer; the same build twice must not
    differ. A scenario without a known bug has this second check alone. Only contracts and answers
    are measured, but for a sweep, whose curve must show the fault that it names and call the same
    build twice equivalent. Nothing is stored. The exit status is 1 when a bug is not found, or
    two healthy sides differ.
    """
    wanted = [
        with_counts(scenario, contract=seeds, documents=documents)
        for scenario in chosen(scenarios, (build,))
    ]
    # Nothing in what looks at speed alone is right or wrong.
    mute = [one.id for one in wanted if one.slow_control is None and one.is_of_speed_alone]
    without = f"no control, only speed is measured: {', '.join(mute)}"
    plans = [(one, _sides(one, build)) for one in wanted if one.id not in mute]
    if not plans:
        raise ScenarioError(f"nothing to control: {without if mute else ''}")
    console = Console(stderr=as_json)
    if mute:
        console.print(as_text(f"left out: {without}"))
    controls: list[Control] = []
    with stoppable():
        for scenario, sides in plans:
            make_ready(scenario, sides, home() / "models")
        left = TimeLeft(len(plans))
        for scenario, sides in plans:
            controls += _control(scenario, sides, console, left)
    if as_json:
        print_json({"controls": [control_to_json(control) for control in controls]})
    else:
        console.print(_table(controls))
        bugs = [control.ok for control in controls if control.kind is ControlKind.KNOWN_BAD]
        unclean = [c.scenario for c in controls if c.kind is ControlKind.A_A and not c.ok]
        console.print(as_text(f"{caught_sentence(sum(bugs), len(bugs), unclean)}."))
    leave(bad_news=not all(control.ok for control in controls))


def _sides(scenario: Scenario, build: str) -> tuple[BuildRequest, ...]:
    require_installed(parse_label(build).spec)
    named = build, scenario.fix, scenario.requires
    healthy = parse_label(healthy_label(*named))
    if scenario.slow_control is not None:
        return healthy, parse_label(f"{healthy.label}+{scenario.slow_control}"), healthy
    if not scenario.has_known_bad:
        return healthy, healthy
    return healthy, parse_label(known_bad_label(*named)), healthy


def _control(
    scenario: Scenario, sides: tuple[BuildRequest, ...], console: Console, left: TimeLeft
) -> Iterator[Control]:
    by_curve = scenario.slow_control is not None
    looked_for = scenario.fix if scenario.has_known_bad else MUTANTS_ALONE
    console.print(as_text(f"{scenario.id}: {scenario.slow_control or looked_for}"), style="bold")
    phases = {Phase.PERFORMANCE} if by_curve else _PHASES
    with progress(console, left) as on_progress:
        run = run_session(SessionRequest(scenario, sides, home() / "models", on_progress, phases))
    if by_curve:
        yield slow_control(scenario, run, _HEALTHY, _BAD)
        yield same_curve_control(scenario, run, _HEALTHY, len(sides) - 1)
        return
    if scenario.has_known_bad:
        yield known_bad_control(scenario, run, _HEALTHY, _BAD)
    yield a_a_control(scenario, run, _HEALTHY, len(sides) - 1)


def _table(controls: list[Control]) -> StackedTable:
    table = StackedTable("scenario", "control", "", "detail")
    for one in controls:
        word = "[green]ok[/]" if one.ok else "[red]not ok[/]"
        table.add_row(as_text(one.scenario), one.kind.value, word, as_text(one.detail))
    return table
