"""Scenarios measured stage by stage: contracts of all, then accuracy of all, then times."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol

from rich.text import Text

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.subject import find_phase
from hybridwatch.cli.board import Board
from hybridwatch.cli.outcome import RunOutcome, render_summary
from hybridwatch.cli.run_records import RunRecords
from hybridwatch.cli.terminal import Console
from hybridwatch.engines.builds import BuildRequest
from hybridwatch.history.known_bad import known_bad_in
from hybridwatch.measurement.phased_run import PhasedRun
from hybridwatch.measurement.plan import TIMED_PHASES, USUAL_PHASES, Budget
from hybridwatch.measurement.session import Missing, SessionRequest, Tell, none_missing
from hybridwatch.records.run import Phase, Run
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.console_text import as_text
from hybridwatch.system.home import home
from hybridwatch.system.plain_text import visible

Plan = tuple[Scenario, tuple[BuildRequest, ...]]
"""A scenario and its two sides."""


@dataclass(frozen=True, slots=True)
class MeasurementScope:
    """What is measured of every scenario.

    Attributes:
        phases: Which phases.
        warmed: Timed phases that begin with a warm-up.
        missing: Says how many more timed trials a side a run needs on its machine.
        known_bad: Whether the second side is the first without its fix, on purpose.
    """

    phases: Collection[Phase] = USUAL_PHASES
    warmed: Collection[Phase] = TIMED_PHASES
    missing: Missing = none_missing
    known_bad: bool = False

    def requested(
        self,
        plan: Plan,
        tell: Tell,
        budget: Budget | None = None,
        earlier: Run | None = None,
    ) -> SessionRequest:
        """Request a session of one scenario, to go on with an earlier run where there is one."""
        scenario, sides = plan
        return SessionRequest(
            scenario,
            sides,
            home() / "models",
            tell,
            self.phases,
            budget,
            self.warmed,
            self.missing,
            earlier,
            self.known_bad,
        )


EVERYTHING: Final = MeasurementScope()


class Losses(Protocol):
    """Takes in the scenarios of which there is nothing to record."""

    def of(self, scenario: Scenario) -> AbstractContextManager[None]:
        """Take a step for a scenario whose engine may not come up."""


def measure_by_phase(
    plans: Sequence[Plan],
    records: RunRecords,
    console: Console,
    losses: Losses,
    measured: MeasurementScope = EVERYTHING,
) -> None:
    """Measure scenarios, and store every run as soon as it is whole.

    After a stop the runs that have a whole round are stored as well, with a failed trial for each
    phase that they lack.

    Args:
        plans: What to measure.
        records: Stores it, and knows what an earlier call has measured of it.
        console: Shows how far it is.
        losses: Takes in the scenarios whose engine does not come up.
        measured: Which phases, and which of them begin with a warm-up.

    Raises:
        KeyboardInterrupt: A stop was requested.
    """
    board = Board(console, [scenario.id for scenario, _ in plans])
    requests = [
        measured.requested(plan, board.tell, earlier=records.stopped(plan[0])) for plan in plans
    ]
    stored: set[int] = set()
    with (
        PhasedRun(requests) as phased_run,
        _kept_when_stopped(phased_run, plans, stored, records),
        board.shown([step.phases for step in phased_run.steps]),
    ):
        for step in phased_run.steps:
            at = step.session
            if phased_run.is_over(at):
                continue
            board.begin(at, step.phases)
            with losses.of(plans[at][0]):
                run = phased_run.make(step)
                board.end(at, step.phases, *found_in(run, step.phases))
                if phased_run.is_over(at):
                    stored.add(at)
                    records.keep(plans[at][0], run)


def found_in(run: Run, phases: Collection[Phase]) -> tuple[Text, Text]:
    """Say what all of a run shows so far, and what some phases of it alone have shown."""
    report = build_report(run) if len(run.builds) > 1 else None
    own = replace(run, trials=tuple(one for one in run.trials if one.phase in phases))
    if report is None:
        return _text(*render_summary(run, None, None)), _text(*render_summary(own, None, None))
    control = known_bad_in(report)
    everything = _text(*render_summary(run, report, control))
    by = [] if control is None else [c for c in control.by if find_phase(c.metric) in phases]
    news = tuple(c for c in report.comparisons if find_phase(c.metric) in phases)
    # That a bug is not seen here says nothing: another phase may be there to see it.
    seen = replace(control, by=tuple(by)) if control is not None and by else None
    return everything, _text(*render_summary(own, replace(report, comparisons=news), seen))


def _text(word: str, style: str, by: str) -> Text:
    return Text(visible(f"{word}{by and f': {by}'}"), style=style)


@contextmanager
def _kept_when_stopped(
    phased_run: PhasedRun, plans: Sequence[Plan], stored: Collection[int], records: RunRecords
) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        console = Console(stderr=True)
        for at, (scenario, _) in enumerate(plans):
            run = None if at in stored else phased_run.cut_short(at)
            if run is not None:
                console.print(stopped_line(records.keep(scenario, run)), soft_wrap=True)
        raise


def stopped_line(outcome: RunOutcome) -> Text:
    """Say where lies what was measured of a scenario before a stop."""
    what = f"{outcome.stopped or 'stopped'}; what was measured is in {outcome.path}"
    return as_text(f"{outcome.scenario}: {what}")
