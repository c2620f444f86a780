"""Scenarios measured stage by stage, contracts of all, then accuracy, then times, on a board."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.subject import find_phase
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.cli import terminal
from hybridwatch.cli.outcome import RunOutcome, RunRecords, render_summary
from hybridwatch.cli.terminal import as_text
from hybridwatch.engines.builds import BuildRequest
from hybridwatch.errors import BuildError, EngineError, ScenarioError
from hybridwatch.history.judge import known_bad_in
from hybridwatch.measurement.phased_run import STAGES, PhasedRun
from hybridwatch.measurement.session_request import Progress, SessionRequest
from hybridwatch.records.run import Phase, Run
from hybridwatch.reports.escape import one_line
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.plain_text import visible

_NAMES: Final = ("contracts", "accuracy", "times")
Plan = tuple[Scenario, tuple[BuildRequest, ...]]
"""A scenario and its two sides."""


class Board:
    """A table that is drawn again and again on a terminal; elsewhere a line for each step."""

    def __init__(
        self,
        console: Console,
        scenarios: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._scenarios = scenarios
        self._steps = 0
        self._stages: tuple[int, ...] = ()
        self._clock = clock
        self._begin = clock()
        self._done = 0
        self._cells = [["", "", ""] for _ in scenarios]
        self._found = [Text() for _ in scenarios]
        self._doing = ""

    @contextmanager
    def shown(self, steps: Sequence[Collection[Phase]]) -> Iterator[None]:
        """Keep the table in sight; it is gone afterwards."""
        self._steps = len(steps)
        self._stages = tuple(sorted({_stage(tuple(phases)) for phases in steps}))
        if not self._console.is_terminal:
            what = f"{plural(len(self._scenarios), 'scenario')}, both sides of each in turn"
            self._console.print(f"{what}: {', then '.join(self._names)}", soft_wrap=True)
            yield
            return
        with Live(
            get_renderable=self.drawn, console=self._console, refresh_per_second=2, transient=True
        ):
            yield

    def tell(self, progress: Progress) -> None:
        """Say what is going on; a log has only what came of it."""
        self._doing = progress.text

    def begin(self, scenario: int, phases: Sequence[Phase]) -> None:
        """Note that a step begins."""
        self._cells[scenario][_stage(phases)] = "..."

    def end(self, scenario: int, phases: Sequence[Phase], found: Text, news: Text) -> None:
        """Note what all of a scenario shows after a step, and for a log what the step has."""
        self._done += 1
        stage = _stage(phases)
        self._cells[scenario][stage] = self._elapsed()
        self._found[scenario] = found
        if not self._console.is_terminal:
            place = f"[{self._done}/{self._steps}] {self._elapsed()}"
            line = as_text(f"{place} {self._scenarios[scenario]}, {_NAMES[stage]}: ")
            self._console.print(line.append_text(news), soft_wrap=True)

    @property
    def _names(self) -> tuple[str, ...]:
        """Of the stages that are measured."""
        return tuple(_NAMES[stage] for stage in self._stages)

    def _elapsed(self) -> str:
        minutes, seconds = divmod(int(self._clock() - self._begin), 60)
        return f"{minutes}:{seconds:02}"

    def drawn(self) -> Table:
        """Draw the table as it stands."""
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        for name in ("scenario", *self._names):
            table.add_column(name, no_wrap=True)
        table.add_column("found", no_wrap=True, overflow="ellipsis")
        for scenario, cells, found in zip(self._scenarios, self._cells, self._found, strict=True):
            shown = (Text(cells[stage]) for stage in self._stages)
            table.add_row(Text(one_line(scenario)), *shown, found)
        table.caption = as_text(f"{self._elapsed()} {self._doing}")
        table.caption_justify = "left"
        return table


def _stage(phases: Sequence[Phase]) -> int:
    return next(at for at, stage in enumerate(STAGES) if phases[0] in stage)


class FailedScenarios:
    """Scenarios without a record; of one that is ``alone`` the error is the command's."""

    def __init__(self, console: Console, *, alone: bool) -> None:
        self.count = 0
        self._console = console
        self.alone = alone

    @contextmanager
    def of(self, scenario: Scenario) -> Iterator[None]:
        """Take a step for a scenario whose build, engine or model may not be had."""
        try:
            yield
        except (BuildError, EngineError, ScenarioError) as error:
            if self.alone:
                raise
            self.count += 1
            cause = str(error)
            if isinstance(error, EngineError):
                cause = error.cause
                self._console.print(as_text(error.log_tail.rstrip()), soft_wrap=True)
            self._console.print(as_text(f"{scenario.id}: {cause}"), style="red", soft_wrap=True)


def measure_by_phase(
    plans: Sequence[Plan],
    records: RunRecords,
    console: Console,
    losses: FailedScenarios,
    request: Callable[..., SessionRequest],
) -> None:
    """Measure scenarios, and store every run as soon as it is whole.

    After a stop the runs that have a whole round are stored as well, with a failed trial for each
    phase that they lack. ``request`` makes a session of a plan, progress and an earlier run.
    """
    board = Board(console, [scenario.id for scenario, _ in plans])
    requests = [request(plan, board.tell, records.stopped(plan[0])) for plan in plans]
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
        console = terminal.Console(stderr=True)
        for at, (scenario, _) in enumerate(plans):
            run = None if at in stored else phased_run.cut_short(at)
            if run is not None:
                console.print(stopped_line(records.keep(scenario, run)), soft_wrap=True)
        raise


def stopped_line(outcome: RunOutcome) -> Text:
    """Say where lies what was measured of a scenario before a stop."""
    what = f"{outcome.stopped or 'stopped'}; what was measured is in {outcome.path}"
    return as_text(f"{outcome.scenario}: {what}")
