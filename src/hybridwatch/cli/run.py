"""``hybridwatch run`` and ``profile``: measure, keep the records, show the verdicts; sample."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.analysis.machine_state import BLOCKS, blocks_missing, leaves_work_open
from hybridwatch.analysis.power import open_metrics, schedule, timed
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.cli import completion
from hybridwatch.cli.by_phase import FailedScenarios, Plan, found_in, measure_by_phase, stopped_line
from hybridwatch.cli.options import leave, print_json, program, takes_json, takes_results, verb
from hybridwatch.cli.outcome import RunOutcome, RunRecords, print_closing
from hybridwatch.cli.subjects import (
    BRIEF_TRIALS,
    BRIEF_WARM_UPS,
    briefly,
    chosen,
    takes_builds,
    takes_documents,
    takes_line,
    takes_phases,
    takes_profile,
    takes_scenarios,
    takes_second_look,
    with_counts,
    with_known_bad,
)
from hybridwatch.cli.terminal import Console, TimeLeft, as_text, progress, say
from hybridwatch.engines.builds import DEFAULT_BUILD, BuildRequest, on_line, parse_label
from hybridwatch.engines.check import (
    healthy_label,
    known_bad_label,
    require_code,
    require_installed,
)
from hybridwatch.engines.fitting import on_usual_runner
from hybridwatch.errors import BuildError
from hybridwatch.measurement.plan import (
    TIMED_PHASES,
    USUAL_PHASES,
    Budget,
    BudgetStatus,
    can_be_duet,
    is_duet,
)
from hybridwatch.measurement.session import run_session
from hybridwatch.measurement.session_request import (
    ProgressCallback,
    Reason,
    SessionRequest,
    no_reason,
    none_missing,
)
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.orchestration.nightly.checkout import second_look_here
from hybridwatch.orchestration.nightly.profiling import profile_run, profile_slower
from hybridwatch.records.identity import side_names
from hybridwatch.records.run import Phase, Run
from hybridwatch.records.store import check_writable, find_record, read_run
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable

MAX_MINUTES: Final = 30.0
"""What a scenario may take until it is decided, by default."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is to be measured, of which builds, as the options of ``run`` say.

    ``trials`` are timed ones a side, at the first look if there are several; ``line`` is that of
    the last build. Timed trials are spread over ``starts`` of each engine. ``staged`` makes phases
    one after the other of all scenarios, ``second_look`` measures changed times again
    (``analysis/report.py``), and ``profile`` samples at the end what got slower.
    """

    labels: tuple[str, ...]
    known_bad: bool = False
    trials: int | None = None
    documents: int | None = None
    until_decided: bool = False
    max_minutes: float | None = None
    thorough: bool = False
    phases: tuple[Phase, ...] = ()
    staged: bool = False
    resume: bool = False
    line: str | None = None
    second_look: bool = True
    starts: int | None = None
    profile: bool = False

    @property
    def wanted_phases(self) -> tuple[Phase, ...]:
        """The phases that are measured, if the scenario has them."""
        return self.phases or USUAL_PHASES

    @property
    def by_phase(self) -> bool:
        """Whether engines of several scenarios live side by side; a GPU has no room for them."""
        if not (self.known_bad or self.staged) or self.until_decided or is_duet(self.phases):
            return False
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

    def request(
        self,
        plan: Plan,
        tell: ProgressCallback,
        earlier: Run | None,
        budget: Budget | None = None,
        *,
        again: Reason,
    ) -> SessionRequest:
        """Request a session of one scenario, to go on with an earlier run where there is one."""
        missing = none_missing if self.is_brief or self.trials is not None else blocks_missing
        models, phases, warmed = home() / "models", self.wanted_phases, self.warmed
        return SessionRequest(
            *plan, models, tell, phases, budget, warmed, missing, earlier, self.known_bad, again
        )

    def counted(self, scenario: Scenario) -> Scenario:
        """Give a scenario the counts of trials and documents that are wanted."""
        own = briefly(scenario) if self.is_brief else scenario
        return with_counts(own, timed=self.trials, documents=self.documents, starts=self.starts)

    def __post_init__(self) -> None:
        if self.max_minutes is not None and not self.until_decided:
            raise click.UsageError("--max-minutes: only --until-decided has a budget; give both.")
        if self.starts and (self.until_decided or self.is_brief):
            raise click.UsageError(
                "--starts: expected a number of timed trials that is fixed and not brief: give it "
                "without --until-decided, and with --known-bad give --thorough, too."
            )
        if self.until_decided and not set(TIMED_PHASES) & set(self.wanted_phases):
            raise click.UsageError("--until-decided: --phases leaves nothing that is timed.")


def measure_scenarios(
    scenarios: Sequence[Scenario], wanted: RunOptions, results: Path, console: Console
) -> tuple[list[RunOutcome], int]:
    """Measure scenarios, store a record of each as soon as it is whole, and show what came of it.

    Gives what came of each scenario that has a record, and of how many there is none. A build that
    cannot be started is a ``BuildError`` before anything is measured.
    """
    plans = [(wanted.counted(scenario), _sides(scenario, wanted)) for scenario in scenarios]
    check_writable(results)
    losses = FailedScenarios(console, alone=len(plans) == 1)
    records = RunRecords(results, _asked(plans, wanted), resume=wanted.resume)
    left = records.take_whole([scenario for scenario, _ in plans])
    if done := len(records.outcomes):
        console.print(as_text(f"going on: {plural(done, 'scenario')} measured before"))
    elif wanted.resume and not any(map(records.stopped, left)):
        console.print(as_text("--resume: no such call was stopped; everything is measured"))
    try:
        with stoppable():
            measurer = _ScenarioMeasurer(console, wanted, records, losses)
            measurer.measure_all([plan for plan in plans if plan[0] in left])
    except KeyboardInterrupt:
        for outcome in records.outcomes if len(plans) == 1 else ():
            outcome.show(console, whole=True)
        kept = {outcome.scenario for outcome in records.outcomes}
        unmeasured = [scenario.id for scenario, _ in plans if scenario.id not in kept]
        print_closing(records.outcomes, results, console, unmeasured=unmeasured)
        raise
    records.end()
    order = [scenario.id for scenario, _ in plans]
    outcomes = sorted(records.outcomes, key=lambda one: order.index(one.scenario))
    for outcome in outcomes if wanted.by_phase else ():
        if len(plans) == 1:
            outcome.show(console, whole=True)
        else:
            outcome.print_troubles(console, f"{outcome.scenario}: ")
    return outcomes, losses.count


def _asked(plans: Sequence[Plan], wanted: RunOptions) -> dict[str, object]:
    """All that makes two calls the same, so that one resumes the other."""
    labels = {scenario.id: [side.label for side in sides] for scenario, sides in plans}
    return {
        "plans": [[one.model_dump(mode="json"), labels[one.id]] for one, _ in plans],
        "phases": [phase.value for phase in wanted.wanted_phases],
        "warmed": [phase.value for phase in wanted.warmed],
        "until_decided": wanted.until_decided,
        "line": wanted.line,
    }


def _sides(scenario: Scenario, wanted: RunOptions) -> tuple[BuildRequest, ...]:
    """Resolve what is compared, and refuse what cannot be started before anything is."""
    labels = list(wanted.labels or (DEFAULT_BUILD,))
    for request in map(parse_label, labels):
        require_installed(request.spec)
        require_code(request)
    if wanted.known_bad:
        named = labels[0], scenario.fix, scenario.requires
        labels[:1] = [healthy_label(*named), known_bad_label(*named)]
    if len(labels) > 2:
        extra = " (--known-bad adds one)" if wanted.known_bad else ""
        raise BuildError(f"--build: expected one or two builds, got {len(labels)}{extra}")
    if wanted.until_decided and len(labels) == 1:
        expected = "--until-decided: expected two builds to decide between, got only"
        raise BuildError(f"{expected} {labels[0]}: give --build twice, or --known-bad")
    return on_line([on_usual_runner(scenario, parse_label(one)) for one in labels], wanted.line)


def _budget(scenario: Scenario, wanted: RunOptions) -> Budget | None:
    """Plan the looks before anything is measured; ``None`` when there is to be but one."""
    if not wanted.until_decided:
        return None

    def status(run: Run) -> BudgetStatus:
        report = build_report(run)
        return BudgetStatus(len(open_metrics(report)), len(timed(report)))

    seconds = 60 * (wanted.max_minutes or MAX_MINUTES)
    return Budget(schedule(scenario.trials.performance), seconds, status)


@dataclass(slots=True)
class _ScenarioMeasurer:
    """Measures scenario after scenario, and says how far all of it is."""

    console: Console
    wanted: RunOptions
    records: RunRecords
    losses: FailedScenarios

    def measure_all(self, plans: Sequence[Plan]) -> None:
        """Measure and store; what cannot be had is counted among the losses."""
        ready, wanted = [], self.wanted
        looks_again = wanted.second_look and not (wanted.known_bad or wanted.until_decided)
        again = second_look_here() if looks_again else no_reason
        for plan in plans:
            with self.losses.of(plan[0]):
                make_ready(*plan, home() / "models")
                ready.append(plan)
        if wanted.by_phase:
            request = partial(wanted.request, again=again)
            measure_by_phase(ready, self.records, self.console, self.losses, request)
            return
        left = TimeLeft(len(ready))
        # No one chose what is measured, or how long.
        is_open = not (wanted.phases or wanted.until_decided or wanted.trials is not None)
        for number, plan in enumerate(ready, start=1):
            place = f"[{number}/{len(ready)}] " if len(ready) > 1 else ""
            with self.losses.of(plan[0]):
                run = self._measure(plan, place, left, again)
                self._keep(plan, run)
                if is_open and can_be_duet(plan[1]) and leaves_work_open(build_report(run)):
                    self._keep(plan, self._measure_duet(plan, place, left, again), noted=False)

    def _keep(self, plan: Plan, run: Run, *, noted: bool = True) -> None:
        outcome = self.records.keep(plan[0], run, noted=noted)
        outcome.show(self.console, whole=self.losses.alone)

    def _measure(self, plan: Plan, place: str, left: TimeLeft, again: Reason) -> Run:
        """Measure one; with a budget it is not known how long it takes."""
        scenario, budget = plan[0], _budget(plan[0], self.wanted)

        def print_found(run: Run, phase: Phase) -> None:
            if any(trial.phase is phase for trial in run.trials):
                _, news = found_in(run, (phase,))
                self.console.print(as_text(f"  {phase.value}: ").append_text(news), soft_wrap=True)

        def keep_stopped(run: Run) -> None:
            self.console.print(stopped_line(self.records.keep(scenario, run)), soft_wrap=True)

        self._print_title(plan, place)
        with progress(self.console, None if budget else left) as on_progress:
            earlier = self.records.stopped(scenario)
            request = self.wanted.request(plan, on_progress, earlier, budget, again=again)
            return run_session(request, keep_stopped, print_found)

    def _measure_duet(self, plan: Plan, place: str, left: TimeLeft, again: Reason) -> Run:
        """Measure the same scenario once more, both sides at the same time."""
        note = "noisy machine, and whether the engine works more is open: a duet tells, "
        note += f"{plural(plan[0].trials.performance, 'trial')} of two starts each"
        self.console.print(as_text(note))
        self._print_title(plan, place, " (duet)")
        with progress(self.console, left) as tell:
            models, duet = home() / "models", {Phase.DUET}
            return run_session(SessionRequest(*plan, models, tell, duet, again=again))

    def _print_title(self, plan: Plan, place: str, what: str = "") -> None:
        names = side_names([side.label for side in plan[1]])
        title = f"{place}{plan[0].id}: {' against '.join(names)}{what}"
        self.console.print(as_text(title), style="bold")


@verb(
    "run",
    "smoke --known-bad",
    "smoke/padded-graph-rows --build cpu-0.27.1 --build cpu-0.28.0",
    "smoke/dummy-run --known-bad --until-decided --max-minutes 20",
    "smoke --build mine --build cpu-0.27.1 --phases contract",
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
    help="Add timed trials of both builds until no time, rate or count is inconclusive.",
)
@click.option(
    "--max-minutes",
    type=click.FloatRange(0, min_open=True),
    help=f"Time that a scenario may take until it is decided.  [default: {MAX_MINUTES:g}]",
)
@click.option(
    "--starts",
    type=click.IntRange(1, 1000),
    help="Number of starts of each engine over which its timed trials are spread.  "
    "[default: as the scenario counts, else 1]",
)
@takes_second_look
@takes_profile
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the same call where it was stopped; what it has finished is not repeated.",
)
@takes_json("Print one JSON object at the end.")
def run_command(
    scenarios: tuple[str, ...], results: Path, *, as_json: bool, **options: Any
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
    wanted = RunOptions(**options)
    named, left_out = chosen(scenarios, wanted.labels or (DEFAULT_BUILD,)), ""
    if wanted.known_bad:
        named, left_out = with_known_bad(named)
    console = Console(stderr=as_json)
    if left_out:
        console.print(as_text(f"left out: {left_out}"))
    try:
        outcomes, lost = measure_scenarios(named, wanted, results, console)
        if wanted.profile:
            with stoppable():
                for one in outcomes:
                    profile_slower(one.report, one.run, results, partial(say, err=True))
    except KeyboardInterrupt:
        words = [word for word in sys.argv[1:] if word != "--resume"]
        line = f"go on with: {program()} {shlex.join([*words, '--resume'])}"
        console.print(as_text(line), soft_wrap=True)
        raise
    count = plural(BRIEF_TRIALS["performance"], "trial")
    note = f"brief:    {count} a side settle nothing about time; --thorough makes them all"
    notes = [note] if wanted.is_brief and wanted.trials is None else []
    print_closing(outcomes, results, console, *notes)
    if as_json:
        print_json({"runs": [outcome.to_json() for outcome in outcomes]})
    leave(bad_news=lost > 0 or any(outcome.troubles for outcome in outcomes))


@verb("profile", "latest", "a5fa7e47")
@click.argument("record", shell_complete=completion.records)
@takes_results("Folder in which run ids are looked up; it gets the profile.")
def profile_command(*, record: str, results: Path) -> None:
    """Sample both builds of RECORD again under its load, and name what takes more time.

    RECORD is a record file, the id of a run, or "latest". Both engines are started, loaded in turn
    and sampled by py-spy, a hundred times a second. Nothing is timed. The stacks are stored under
    profiles/ of the results folder; the alert's page draws them, and a second call reads them. Up
    to five functions are named whose share of the engine's time grew beyond noise.
    """
    with stoppable():
        path = profile_run(read_run(find_record(results, record)), results, say)
    say(f"profile: {path}")
