"""Scenarios measured stage by stage: contracts of all, then accuracy of all, then times."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from rich.text import Text

from hybridwatch.analysis.report import report_of
from hybridwatch.cli.board import Board
from hybridwatch.cli.known_bad import known_bad_in
from hybridwatch.cli.outcome import Outcome, keep, summary_of
from hybridwatch.cli.say import as_text
from hybridwatch.cli.terminal import Console
from hybridwatch.engine.builds import BuildRequest
from hybridwatch.home import home
from hybridwatch.measure.budget import Budget
from hybridwatch.measure.plan import TIMED_PHASES, USUAL_PHASES
from hybridwatch.measure.relay import Relay
from hybridwatch.measure.session import Missing, SessionRequest, Tell, none_missing
from hybridwatch.plain_text import visible
from hybridwatch.record.run import Phase, Run
from hybridwatch.scenario.scenario import Scenario
from hybridwatch.store import write_run

Plan = tuple[Scenario, tuple[BuildRequest, ...]]
"""A scenario and its two sides."""


@dataclass(frozen=True, slots=True)
class Measured:
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
        self, plan: Plan, models: Path, tell: Tell, budget: Budget | None = None
    ) -> SessionRequest:
        """Request a session of one scenario."""
        scenario, sides = plan
        return SessionRequest(
            scenario,
            sides,
            models,
            tell,
            self.phases,
            budget,
            self.warmed,
            self.missing,
            self.known_bad,
        )


EVERYTHING: Final = Measured()


class Losses(Protocol):
    """Takes in the scenarios of which there is nothing to record."""

    def of(self, scenario: Scenario) -> AbstractContextManager[None]:
        """Take a step for a scenario whose engine may not come up."""


def measure_by_phase(
    plans: Sequence[Plan],
    results: Path,
    console: Console,
    losses: Losses,
    measured: Measured = EVERYTHING,
) -> list[Outcome]:
    """Measure scenarios of two sides each, and store every run as soon as it is whole.

    After a stop the runs that have a whole phase are stored as well, with a failed trial for each
    phase that they lack.

    Args:
        plans: What to measure.
        results: Folder that gets the records.
        console: Shows how far it is.
        losses: Takes in the scenarios whose engine does not come up.
        measured: Which phases, and which of them begin with a warm-up.

    Raises:
        KeyboardInterrupt: A stop was requested.
    """
    board = Board(console, [scenario.id for scenario, _ in plans])
    models = home() / "models"
    requests = [measured.requested(plan, models, board.tell) for plan in plans]
    outcomes: dict[int, Outcome] = {}
    with (
        Relay(requests) as relay,
        _kept_when_stopped(relay, plans, outcomes, results),
        board.shown(len(relay.steps)),
    ):
        for step in relay.steps:
            at = step.session
            if relay.is_over(at):
                continue
            board.begin(at, step.phases)
            with losses.of(plans[at][0]):
                run = relay.make(step)
                board.end(at, step.phases, _found(run))
                if relay.is_over(at):
                    outcomes[at] = keep(plans[at][0], run, results)
    return [outcomes[at] for at in sorted(outcomes)]


def _found(run: Run) -> Text:
    report = report_of(run) if len(run.builds) > 1 else None
    control = None if report is None else known_bad_in(report)
    word, style, by = summary_of(run, report, control)
    return Text(visible(f"{word}{by and f': {by}'}"), style=style)


@contextmanager
def _kept_when_stopped(
    relay: Relay, plans: Sequence[Plan], outcomes: dict[int, Outcome], results: Path
) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        console = Console(stderr=True)
        for at, (scenario, _) in enumerate(plans):
            run = None if at in outcomes else relay.cut_short(at)
            if run is not None:
                record = write_run(results, run)
                text = f"{scenario.id}: stopped; what was measured is in {record}"
                console.print(as_text(text), soft_wrap=True)
        raise
