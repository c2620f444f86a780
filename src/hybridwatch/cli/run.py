"""``hybridwatch run``: measure scenarios, keep the records, show the verdicts."""

import shlex
import sys
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.analysis.noisy_machine import BLOCKS
from hybridwatch.cli.measuring import MAX_MINUTES, RunOptions, measure_scenarios
from hybridwatch.cli.options import leave, print_json, program, takes_json, takes_results, verb
from hybridwatch.cli.outcome import print_closing
from hybridwatch.cli.subjects import (
    chosen,
    takes_builds,
    takes_documents,
    takes_line,
    takes_phases,
    takes_scenarios,
)
from hybridwatch.cli.terminal import Console
from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.history.known_bad import with_known_bad
from hybridwatch.system.console_text import as_text

_RESUME: Final = "--resume"


@verb(
    "run",
    "hybridwatch run smoke --known-bad",
    "hybridwatch run smoke/padded-graph-rows --build cpu-0.27.1 --build cpu-0.28.0",
    "hybridwatch run smoke/dummy-run --known-bad --until-decided --max-minutes 20",
    "hybridwatch run smoke --build mine --build cpu-0.27.1 --phases contract",
)
@takes_scenarios
@takes_builds(
    "Engine build, such as cpu-0.27.1 or cpu-0.27.1~padded-rows-prefilling; give it twice "
    f"to compare two, the same one twice for an A/A run.  [default: {DEFAULT_BUILD}]"
)
@takes_line
@click.option(
    "--known-bad", is_flag=True, help="Compare the build with itself without the scenario's fix."
)
@click.option(
    "--thorough",
    is_flag=True,
    help="With --known-bad, make all trials that the scenario counts, enough for verdicts on time.",
)
@click.option(
    "--trials",
    type=click.IntRange(7, 1000),
    help="Number of timed trials on each side; with --until-decided, at the first look.  "
    f"[default: as the scenario counts; on a noisy machine at least {BLOCKS}]",
)
@takes_documents
@takes_phases
@click.option(
    "--by-phase",
    "staged",
    is_flag=True,
    help="On a CPU, measure the contracts of all scenarios first, then their answers, then times.",
)
@takes_results("Folder that gets the records.")
@click.option(
    "--until-decided",
    is_flag=True,
    help="Add timed trials of both builds until each time, rate and count is called a regression, "
    "an improvement or equivalent.",
)
@click.option(
    "--max-minutes",
    type=click.FloatRange(0, min_open=True),
    help=f"Time that a scenario may take until it is decided.  [default: {MAX_MINUTES:g}]",
)
@click.option(
    _RESUME,
    is_flag=True,
    help="Go on with the same call where it was stopped; what it has finished is not repeated.",
)
@takes_json("Print one JSON object at the end.")
def command(scenarios: tuple[str, ...], results: Path, *, as_json: bool, **wish: Any) -> None:
    """Measure each SCENARIO and show what changed.

    SCENARIO is an id or a group such as smoke; without one, all that the builds can run. One
    scenario ends with its verdicts, several with a line for each; then the output names the records
    and the next commands. With --known-bad on a CPU the contracts of all scenarios come first, then
    their answers, then times, and no more is measured than it takes to see whether each bug is
    caught. The exit status is 1 when a trial failed, an engine did not start, a
    known bug was not caught, or the baseline is not what the scenario expects of a healthy engine.
    Any other regression is an answer; `hybridwatch gate` turns it into an exit status.
    """
    wanted = RunOptions(**wish)
    named, left_out = chosen(scenarios, wanted.labels or (DEFAULT_BUILD,)), ""
    if wanted.known_bad:
        named, left_out = with_known_bad(named)
    console = Console(stderr=as_json)
    if left_out:
        console.print(as_text(f"left out: {left_out}"))
    try:
        outcomes, lost = measure_scenarios(named, wanted, results, console)
    except KeyboardInterrupt:
        words = [word for word in sys.argv[1:] if word != _RESUME]
        line = f"go on with: {program()} {shlex.join([*words, _RESUME])}"
        console.print(as_text(line), soft_wrap=True)
        raise
    print_closing(outcomes, results, console, *wanted.notes)
    if as_json:
        print_json({"runs": [outcome.to_json() for outcome in outcomes]})
    leave(bad_news=lost > 0 or any(outcome.troubles for outcome in outcomes))
