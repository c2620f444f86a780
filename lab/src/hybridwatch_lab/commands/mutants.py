"""``hybridwatch mutants``: which faults that nobody prepared it for does the suite see?"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import click
from rich.table import Column

from hybridwatch.cli.options import examples, takes_results
from hybridwatch.cli.subjects import briefly, chosen, takes_build, takes_scenarios
from hybridwatch.cli.terminal import Console, as_text
from hybridwatch.engines.builds import BuildRequest, parse_label
from hybridwatch.engines.check import healthy_label, require_installed
from hybridwatch.errors import BuildError
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.scenarios.fixes import Half, Mutant
from hybridwatch.scenarios.load import digest
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch.system.stopping import require_wanted, stoppable
from hybridwatch_lab.mutants.cover import cover_lines
from hybridwatch_lab.mutants.faulty_engine import FaultyEngine
from hybridwatch_lab.mutants.runner import Effort, MutantRunner
from hybridwatch_lab.mutants.table import (
    HEALTHY,
    MutantCell,
    MutantState,
    append_cell,
    catalogue,
    compute_score,
    false_alarms,
    grid,
    halves,
    markdown,
    read_cells,
    render_kill,
    score_json,
    table_file,
)
from hybridwatch_lab.mutants.table import score_lines as lines_of

_Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _MutantOptions:
    """What the command line wants to be measured."""

    build: str
    only: tuple[str, ...]
    half: str | None
    effort: str
    anew: bool

    @property
    def pains(self) -> Effort:
        """How much of a scenario is measured for each mutant."""
        return Effort(self.effort)

    def scenarios(self, named: Sequence[str]) -> list[Scenario]:
        """Give the scenarios with contract trials, as much of each as the effort takes."""
        found = [one for one in chosen(named or ("smoke",), (self.build,)) if one.trials.contract]
        return found if self.pains is Effort.THOROUGH else [briefly(one) for one in found]

    def mutants(self) -> Mapping[str, Mutant]:
        """Give the mutants that are wanted."""
        known = catalogue()
        for name in self.only:
            if name not in known:
                raise BuildError(f"--only: expected one of {', '.join(known)}, found {name}")
        named = {name: one for name, one in known.items() if not self.only or name in self.only}
        return named if self.half is None else halves(named).get(self.half, {})


@dataclass(frozen=True, slots=True)
class _MutantJob:
    """What all scenarios of a call have in common."""

    options: _MutantOptions
    mutants: Mapping[str, Mutant]
    path: Path
    say: _Say


@click.command(
    "mutants",
    epilog=examples(
        "hybridwatch mutants smoke",
        "hybridwatch mutants smoke/dummy-run --only unzeroed-state",
        "hybridwatch mutants --show",
    ),
)
@takes_scenarios
# Most mutants are faults of model runner V1, which newer builds run few scenarios on.
@takes_build(default="cpu-0.32.0+v2")
@click.option("--only", multiple=True, metavar="NAME", help="This mutant alone; may be repeated.")
@click.option(
    "--half", type=click.Choice(get_args(Half)), help="The mutants of one half, or your own."
)
@click.option(
    "--effort",
    type=click.Choice([effort.value for effort in Effort]),
    default=Effort.BRIEF.value,
    show_default=True,
    help="contracts: one contract trial; brief: and a few documents; thorough: all that the "
    "scenario has, and times.",
)
@click.option("--anew", is_flag=True, help="Measure again what the table has.")
@click.option("--show", is_flag=True, help="Print the table that is there; measure nothing.")
@click.option("--cover", is_flag=True, help="Say which scenarios kill the most in the least time.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
@takes_results("Folder in which the table is kept.")
@click.pass_context
def command(
    context: click.Context,
    /,
    scenarios: tuple[str, ...],
    results: Path,
    *,
    show: bool,
    cover: bool,
    as_markdown: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Switch mutants on in a live engine, one at a time, and write down what kills them.

    SCENARIO is an id or a group; without one, the group smoke. A mutant is a fault that is planted
    in vLLM while it runs (lab/docs/mutants.md). Each scenario's contracts, then its answers are
    measured until one of them tells the engine with the mutant from the one without: how many
    trials and documents, --effort says. The table is kept in the results folder, and what it has is
    not measured again. The exit status is 1 when something is found in an engine in which no mutant
    acted.
    """
    wanted = _MutantOptions(**options)
    mutants, work = wanted.mutants(), wanted.scenarios(scenarios)
    path = table_file(results, parse_label(wanted.build).engine_name)
    console = Console(stderr=as_json or as_markdown)
    if not show:
        job = _MutantJob(wanted, mutants, path, _sayer(console))
        with stoppable():
            for scenario in work:
                make_ready(scenario, (_side(scenario, wanted.build),), home() / "models")
            for scenario in work:
                _measure(job, scenario)
    ids = {scenario.id for scenario in work} if scenarios else None
    cells = [cell for cell in read_cells(path) if ids is None or cell.scenario in ids]
    _print(console, cells, mutants, as_json=as_json, as_markdown=as_markdown)
    for line in cover_lines(cells) if cover else ():
        console.print(as_text(line))
    context.exit(int(bool(false_alarms(cells))))


def _side(scenario: Scenario, build: str) -> BuildRequest:
    side = parse_label(healthy_label(build, scenario.fix, scenario.requires))
    require_installed(side.spec)
    return side


def _sayer(console: Console) -> _Say:
    def say(text: str) -> None:
        console.print(as_text(text), soft_wrap=True)

    return say


def _kept(job: _MutantJob, scenario: Scenario) -> dict[str, MutantCell]:
    """Cells of a scenario that need not be measured again, by mutant."""
    if job.options.anew:
        return {}
    work, digests = digest(scenario), _digests(job.mutants)
    return {
        cell.mutant: cell
        for cell in read_cells(job.path)
        if (cell.scenario, cell.scenario_digest) == (scenario.id, work)
        and cell.mutant_digest == digests.get(cell.mutant)
        and not (
            cell.state is MutantState.NOT_MEASURED
            and _does_more(job.options.pains, job.mutants, cell)
        )
    }


def _does_more(effort: Effort, mutants: Mapping[str, Mutant], cell: MutantCell) -> bool:
    """Whether what could show a mutant is measured with this effort."""
    if effort is Effort.BRIEF:
        return cell.mutant == HEALTHY or mutants[cell.mutant].phase == "answers"
    return effort is Effort.THOROUGH


def _digests(mutants: Mapping[str, Mutant]) -> dict[str, str]:
    return {HEALTHY: "", **{name: one.digest for name, one in mutants.items()}}


def _measure(job: _MutantJob, scenario: Scenario) -> None:
    """Fill in the cells of a scenario that are not there."""
    kept = _kept(job, scenario)
    lacking = {name: one for name, one in job.mutants.items() if name not in kept}
    if not lacking:
        job.say(f"{scenario.id}: all {len(job.mutants)} mutants are in the table")
        return
    job.say(f"{scenario.id}: {len(lacking)} of {len(job.mutants)} mutants to measure")
    side, models = _side(scenario, job.options.build), home() / "models"
    with (
        tempfile.TemporaryDirectory(prefix="hybridwatch-") as work,
        FaultyEngine(scenario, side, models, Path(work), job.say) as engine,
    ):
        runner = MutantRunner(engine, job.options.pains)
        runner.measure_healthy()
        total = len(job.mutants) + 1
        for number, cell in enumerate(_cells(runner, lacking, kept), start=len(kept) + 1):
            append_cell(job.path, cell)
            job.say(f"[{number}/{total}] {scenario.id}: {cell.mutant}: {render_kill(cell)}")


def _cells(
    runner: MutantRunner, mutants: Mapping[str, Mutant], kept: Mapping[str, MutantCell]
) -> Iterator[MutantCell]:
    if HEALTHY not in kept:
        yield runner.healthy()
    for name, mutant in mutants.items():
        require_wanted()
        yield runner.measure(name, mutant)


def _print(
    console: Console,
    cells: Sequence[MutantCell],
    mutants: Mapping[str, Mutant],
    *,
    as_json: bool,
    as_markdown: bool,
) -> None:
    if as_json:
        click.echo(json.dumps(_json(cells, mutants), indent=2))
        return
    if as_markdown:
        click.echo(markdown(cells, mutants))
        click.echo()
        click.echo("\n".join(f"- {line}" for line in lines_of(cells, mutants)))
        return
    console.print(_table(cells, mutants))
    for line in lines_of(cells, mutants):
        console.print(as_text(line))


def _json(cells: Sequence[MutantCell], mutants: Mapping[str, Mutant]) -> dict[str, object]:
    named = {HEALTHY, *mutants}
    scores = {half: compute_score(cells, members) for half, members in halves(mutants).items()}
    scores["together"] = compute_score(cells, mutants)
    return {
        "cells": [cell.model_dump(mode="json") for cell in cells if cell.mutant in named],
        "score": {name: score_json(score) for name, score in scores.items()},
    }


def _table(cells: Sequence[MutantCell], mutants: Mapping[str, Mutant]) -> StackedTable:
    # Half and mechanism are for pages, which are wider than a terminal.
    (mutant, _, _, *head), body = grid(cells, mutants)
    table = StackedTable(
        Column(mutant, no_wrap=True), *(Column(name, overflow="fold") for name in head)
    )
    for name, _, _, *words in body:
        table.add_row(as_text(name), *map(as_text, words))
    return table
