"""``hybridwatch run``: measure scenarios, keep the records, show the verdicts."""

import json
from pathlib import Path

import click
from rich.console import Console

from hybridwatch.analysis.expectation import broken_expectations
from hybridwatch.analysis.report import report_of
from hybridwatch.cli.progress import ended_by_sigterm, progress
from hybridwatch.engine.builds import DEFAULT_BUILD, BuildRequest, home, parse_label
from hybridwatch.engine.check import require_installed
from hybridwatch.engine.native import healthy_label, known_bad_label
from hybridwatch.errors import BuildError
from hybridwatch.measure.session import SessionRequest, run_session
from hybridwatch.record.identity import FixState
from hybridwatch.record.run import Run
from hybridwatch.scenario.load import find
from hybridwatch.scenario.scenario import Scenario
from hybridwatch.store import check_writable, write_run
from hybridwatch.views.jsonform import to_json
from hybridwatch.views.table import print_table, print_values


@click.command("run")
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...")
@click.option(
    "--build",
    "labels",
    multiple=True,
    metavar="BUILD",
    help="Engine build, such as cpu-0.27.1 or cpu-0.27.1~padded-rows-prefilling; give it twice "
    f"to compare two, the same one twice for an A/A run.  [default: {DEFAULT_BUILD}]",
)
@click.option(
    "--known-bad", is_flag=True, help="Compare the build with itself without the scenario's fix."
)
@click.option("--trials", type=click.IntRange(7, 1000), help="Timed trials a side.")
@click.option("--documents", type=click.IntRange(1), help="Documents of each accuracy task.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder that gets the records.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
@click.pass_context
def command(
    context: click.Context,
    scenarios: tuple[str, ...],
    labels: tuple[str, ...],
    trials: int | None,
    documents: int | None,
    results: Path,
    *,
    known_bad: bool,
    as_json: bool,
) -> None:
    """Measure each SCENARIO (an id or a group such as smoke; all when none is given).

    Ends with a verdict table and the place of the records. The exit status is 1 when a trial
    failed or the baseline is not what the scenario expects of a healthy engine; a regression of
    the contender is an answer, and `hybridwatch gate` turns it into a status.
    """
    chosen = [
        _adjusted(scenario, trials, documents) for scenario in find(home() / "scenarios", scenarios)
    ]
    plans = [(scenario, _sides(scenario, labels, known_bad=known_bad)) for scenario in chosen]
    check_writable(results)
    console = Console(stderr=as_json)
    outcomes = []
    with ended_by_sigterm():
        for scenario, sides in plans:
            run = _measure(scenario, sides, console)
            outcomes.append(_Outcome(scenario, run, write_run(results, run)))
            outcomes[-1].show(console)
    if as_json:
        click.echo(json.dumps({"runs": [outcome.to_json() for outcome in outcomes]}, indent=2))
    context.exit(int(any(outcome.troubles for outcome in outcomes)))


def _adjusted(scenario: Scenario, trials: int | None, documents: int | None) -> Scenario:
    """Apply the command line's counts; the scenario stays the same one (``scenario.digest``)."""
    if trials is not None:
        counts = scenario.trials.model_copy(update={"performance": trials, "host_sync": trials})
        scenario = scenario.model_copy(update={"trials": counts})
    if documents is not None:
        accuracy = scenario.accuracy.model_copy(update={"documents": documents})
        scenario = scenario.model_copy(update={"accuracy": accuracy})
    return scenario


def _sides(
    scenario: Scenario, labels: tuple[str, ...], *, known_bad: bool
) -> tuple[BuildRequest, ...]:
    """Resolve what is compared, and refuse what cannot be started before anything is."""
    asked = list(labels or (DEFAULT_BUILD,))
    for label in asked:
        require_installed(parse_label(label).spec)
    if known_bad:
        named = asked[0], scenario.fix, scenario.requires
        asked[:1] = [healthy_label(*named), known_bad_label(*named)]
    if len(asked) > 2:
        extra = " (--known-bad adds one)" if known_bad else ""
        raise BuildError(f"--build: expected one or two builds, got {len(asked)}{extra}")
    return tuple(parse_label(label) for label in asked)


def _measure(scenario: Scenario, sides: tuple[BuildRequest, ...], console: Console) -> Run:
    title = f"{scenario.id}: {' against '.join(side.label for side in sides)}"
    console.print(title, style="bold", markup=False, highlight=False)
    models = home() / "models"
    with progress(console) as tell:
        return run_session(SessionRequest(scenario, sides, models, tell))


class _Outcome:
    """One finished run: what to show and what is wrong with it."""

    def __init__(self, scenario: Scenario, run: Run, path: Path) -> None:
        self._run = run
        self._path = path
        self._report = report_of(run) if len(run.builds) == 2 else None
        failures = [
            f"trial {trial.index} ({trial.phase.value}) failed: {trial.failure.reason}"
            for trial in run.trials
            if trial.failure is not None
        ]
        needed = {run.builds[0].fixes.get(fix) for fix in (scenario.fix, *scenario.requires)}
        healthy = needed <= {FixState.PRESENT, FixState.APPLIED}
        broken = broken_expectations(run, 0, scenario.expect) if healthy else ()
        self.troubles = (
            *failures,
            *(f"the healthy engine is not as expected: {line}" for line in broken),
        )

    def show(self, console: Console) -> None:
        if self._report is None:
            print_values(self._run, console)
        else:
            print_table(self._report, console)
        for trouble in self.troubles:
            console.print(trouble, style="red", markup=False, highlight=False)
        lines = [f"record: {self._path}"]
        if self._report is not None:
            lines += [
                f"next:   hybridwatch comment --dry-run {self._path}",
                f"        hybridwatch gate {self._path}",
                "        hybridwatch dashboard",
            ]
        for line in lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    def to_json(self) -> dict[str, object]:
        return {
            "record": str(self._path),
            "troubles": list(self.troubles),
            "report": None if self._report is None else to_json(self._report),
        }
