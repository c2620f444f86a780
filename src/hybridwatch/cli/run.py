"""``hybridwatch run``: measure scenarios, keep the records, show the verdicts."""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from hybridwatch.analysis.report import report_of
from hybridwatch.analysis.sequential import open_metrics, schedule, timed
from hybridwatch.cli import completion
from hybridwatch.cli.by_phase import Measured, measure_by_phase
from hybridwatch.cli.choosing import chosen
from hybridwatch.cli.counts import (
    BRIEF_TRIALS,
    BRIEF_WARM_UPS,
    briefly,
    takes_documents,
    with_counts,
)
from hybridwatch.cli.known_bad import with_known_bad
from hybridwatch.cli.options import examples, takes_results
from hybridwatch.cli.outcome import Outcome, keep, print_closing
from hybridwatch.cli.progress import TimeLeft, progress
from hybridwatch.cli.say import as_text
from hybridwatch.cli.subject_options import takes_scenarios
from hybridwatch.engine.builds import DEFAULT_BUILD, BuildRequest, parse_label
from hybridwatch.engine.check import require_code, require_installed
from hybridwatch.engine.label_resolution import healthy_label, known_bad_label
from hybridwatch.errors import BuildError, EngineError, ScenarioError
from hybridwatch.home import home
from hybridwatch.measure.budget import Budget, Standing
from hybridwatch.measure.plan import TIMED_PHASES
from hybridwatch.measure.ready import make_ready
from hybridwatch.measure.session import SessionRequest, run_session
from hybridwatch.process import stoppable
from hybridwatch.record.run import Phase, Run
from hybridwatch.record.side_names import side_names
from hybridwatch.report.sentence import plural
from hybridwatch.scenario.scenario import Scenario
from hybridwatch.store import check_writable

_MAX_MINUTES: Final = 30.0
_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class _RunOptions:
    """What the command line asks to be measured.

    Attributes:
        labels: Engine builds, as written.
        known_bad: Whether one more is the first without the scenario's fix.
        trials: Timed trials a side; at the first look, if there are several.
        documents: Of each accuracy task.
        until_decided: Whether trials are added until every timed metric has its verdict.
        max_minutes: What a scenario may take then; ``None`` for the usual.
        thorough: Whether a known-bad run makes every trial that its scenario counts.
        phases: Which phases; every one when there is none.
        staged: Whether phases are made one after the other of all scenarios, whatever the question.
    """

    labels: tuple[str, ...]
    known_bad: bool
    trials: int | None
    documents: int | None
    until_decided: bool
    max_minutes: float | None
    thorough: bool
    phases: tuple[Phase, ...]
    staged: bool

    @property
    def wanted_phases(self) -> tuple[Phase, ...]:
        """The phases that are measured, if the scenario has them."""
        return self.phases or tuple(Phase)

    @property
    def by_phase(self) -> bool:
        """Whether the question is first of all whether something is wrong.

        Engines of several scenarios then live side by side, for which a GPU has no room.
        """
        wanted = self.known_bad or self.staged
        return wanted and not self.until_decided and self._on_cpu

    @property
    def _on_cpu(self) -> bool:
        labels = self.labels or (DEFAULT_BUILD,)
        return all(parse_label(label).spec.accelerator == "cpu" for label in labels)

    @property
    def is_brief(self) -> bool:
        """Whether less is measured than the scenarios count."""
        return self.by_phase and self.known_bad and not self.thorough

    @property
    def warmed(self) -> tuple[Phase, ...]:
        """Timed phases that begin with a warm-up."""
        return BRIEF_WARM_UPS if self.is_brief else TIMED_PHASES

    @property
    def notes(self) -> tuple[str, ...]:
        """What the last screen has to say of the counts."""
        if not self.is_brief or self.trials is not None:
            return ()
        count = plural(BRIEF_TRIALS["performance"], "trial")
        return (f"brief:    {count} a side settle nothing about time; --thorough makes them all",)

    def counted(self, scenario: Scenario) -> Scenario:
        """Give a scenario the counts of trials and documents that are wanted."""
        own = briefly(scenario) if self.is_brief else scenario
        return with_counts(own, timed=self.trials, documents=self.documents)

    def __post_init__(self) -> None:
        if self.max_minutes is not None and not self.until_decided:
            raise click.UsageError("--max-minutes: only --until-decided has a budget; give both.")
        if self.until_decided and not set(TIMED_PHASES) & set(self.wanted_phases):
            raise click.UsageError("--until-decided: --phases leaves nothing that is timed.")


class _FailedScenarios:
    """Scenarios of which there is nothing to record; the others are measured all the same.

    Args:
        console: Where each is printed.
        alone: Whether there is no other, so that its error is the command's.
    """

    def __init__(self, console: Console, *, alone: bool) -> None:
        self.count = 0
        self._console = console
        self._alone = alone

    @contextmanager
    def of(self, scenario: Scenario) -> Iterator[None]:
        """Take a step for a scenario whose build, engine or model may not be had."""
        try:
            yield
        except (BuildError, EngineError, ScenarioError) as error:
            if self._alone:
                raise
            self.count += 1
            message = f"{scenario.id}: {error}"
            self._console.print(as_text(message), style="red")
            if isinstance(error, EngineError) and error.log_tail:
                self._console.print(as_text(error.log_tail))


def _phases(context: click.Context, option: click.Parameter, text: str) -> tuple[Phase, ...]:
    known = {phase.value: phase for phase in Phase}
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise click.BadParameter(
                f"expected {', '.join(known)}, found {word!r}", context, option
            )
    return tuple(phase for name, phase in known.items() if name in words)


@click.command(
    "run",
    epilog=examples(
        "hybridwatch run smoke --known-bad",
        "hybridwatch run smoke/padded-graph-rows --build cpu-0.27.1 --build cpu-0.28.0",
        "hybridwatch run smoke/dummy-run --known-bad --until-decided --max-minutes 20",
        "hybridwatch run smoke --build mine --build cpu-0.27.1 --phases contract",
    ),
)
@takes_scenarios
@click.option(
    "--build",
    "labels",
    multiple=True,
    metavar="BUILD",
    shell_complete=completion.builds,
    help="Engine build, such as cpu-0.27.1 or cpu-0.27.1~padded-rows-prefilling; give it twice "
    f"to compare two, the same one twice for an A/A run.  [default: {DEFAULT_BUILD}]",
)
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
    help="Number of timed trials on each side; with --until-decided, at the first look.",
)
@takes_documents
@click.option(
    "--phases",
    metavar="PHASES",
    default="",
    callback=_phases,
    help=f"What to measure, with commas between: {', '.join(phase.value for phase in Phase)}.  "
    "[default: all]",
)
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
    help=f"Time that a scenario may take until it is decided.  [default: {_MAX_MINUTES:g}]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
@click.pass_context
def command(
    context: click.Context,
    /,
    scenarios: tuple[str, ...],
    results: Path,
    *,
    as_json: bool,
    **wish: Any,
) -> None:
    """Measure each SCENARIO and show what changed.

    SCENARIO is an id or a group such as smoke; without one, all that the builds can run. One
    scenario ends with its verdicts, several with a line for each; then the output names the records
    and the next commands. With --known-bad on a CPU the contracts of all scenarios come first, then
    their answers, then times, and no more is measured than it takes to see whether each bug is
    caught. The exit status is 1 when a trial failed, an engine did not start, a
    known bug was not caught, or the baseline is not what the scenario expects of a healthy engine.
    Any other regression is an answer; `hybridwatch gate` turns it into an exit status.
    """
    wanted = _RunOptions(**wish)
    named, left_out = chosen(scenarios, wanted.labels or (DEFAULT_BUILD,)), ""
    if wanted.known_bad:
        named, left_out = with_known_bad(named)
    plans = [(wanted.counted(scenario), _sides(scenario, wanted)) for scenario in named]
    check_writable(results)
    console = Console(stderr=as_json)
    if left_out:
        console.print(as_text(f"left out: {left_out}"))
    outcomes: list[Outcome] = []
    losses = _FailedScenarios(console, alone=len(plans) == 1)
    with stoppable():
        ready = []
        for scenario, sides in plans:
            with losses.of(scenario):
                make_ready(scenario, sides, home() / "models")
                ready.append((scenario, sides))
        if wanted.by_phase:
            how = Measured(wanted.wanted_phases, wanted.warmed)
            outcomes += measure_by_phase(ready, results, console, losses, how)
            for outcome in outcomes:
                if len(plans) == 1:
                    outcome.show(console, whole=True)
                else:
                    outcome.print_troubles(console)
        else:
            measuring = _Measuring(console, len(ready), wanted.wanted_phases)
            for scenario, sides in ready:
                with losses.of(scenario):
                    run = measuring.measure(scenario, sides, _budget(scenario, wanted))
                    outcomes.append(keep(scenario, run, results))
                    outcomes[-1].show(console, whole=len(plans) == 1)
    print_closing(outcomes, results, console, *wanted.notes)
    if as_json:
        click.echo(json.dumps({"runs": [outcome.to_json() for outcome in outcomes]}, indent=2))
    context.exit(int(losses.count > 0 or any(outcome.troubles for outcome in outcomes)))


def _sides(scenario: Scenario, wanted: _RunOptions) -> tuple[BuildRequest, ...]:
    """Resolve what is compared, and refuse what cannot be started before anything is."""
    labels = list(wanted.labels or (DEFAULT_BUILD,))
    for label in labels:
        request = parse_label(label)
        require_installed(request.spec)
        require_code(request)
    if wanted.known_bad:
        named = labels[0], scenario.fix, scenario.requires
        labels[:1] = [healthy_label(*named), known_bad_label(*named)]
    if len(labels) > 2:
        extra = " (--known-bad adds one)" if wanted.known_bad else ""
        raise BuildError(f"--build: expected one or two builds, got {len(labels)}{extra}")
    if wanted.until_decided and len(labels) == 1:
        raise BuildError(
            f"--until-decided: expected two builds to decide between, got only {labels[0]}: "
            "give --build twice, or --known-bad"
        )
    return tuple(parse_label(label) for label in labels)


def _budget(scenario: Scenario, wanted: _RunOptions) -> Budget | None:
    """Plan the looks before anything is measured; ``None`` when there is to be but one."""
    if not wanted.until_decided:
        return None
    minutes = wanted.max_minutes or _MAX_MINUTES
    return Budget(schedule(scenario.trials.performance), minutes * _MINUTE, _standing)


def _standing(run: Run) -> Standing:
    report = report_of(run)
    return Standing(len(open_metrics(report)), len(timed(report)))


class _Measuring:
    """Measures scenario after scenario, and says how far all of it is."""

    def __init__(self, console: Console, scenarios: int, phases: Collection[Phase]) -> None:
        self._console = console
        self._scenarios = scenarios
        self._phases = phases
        self._begun = 0
        self._left = TimeLeft(scenarios)

    def measure(
        self, scenario: Scenario, sides: tuple[BuildRequest, ...], budget: Budget | None
    ) -> Run:
        """Measure one; with a budget nobody knows how long it takes."""
        self._begun += 1
        place = f"[{self._begun}/{self._scenarios}] " if self._scenarios > 1 else ""
        names = side_names([side.label for side in sides])
        title = f"{place}{scenario.id}: {' against '.join(names)}"
        self._console.print(as_text(title), style="bold")
        with progress(self._console, None if budget else self._left) as tell:
            models = home() / "models"
            return run_session(
                SessionRequest(scenario, sides, models, tell, self._phases, budget=budget)
            )
