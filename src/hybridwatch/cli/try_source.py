"""``hybridwatch try``: from a patched vLLM to an answer, in one command."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from hybridwatch.analysis.change_review import Blindness, find_blindness
from hybridwatch.analysis.policy import STRICT
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording.numbers import MOST_TRIALS, plural
from hybridwatch.cli.options import (
    leave,
    print_json,
    program,
    takes_json,
    takes_results,
    verb,
    with_results,
)
from hybridwatch.cli.outcome import RunOutcome, print_closing
from hybridwatch.cli.run import RunOptions, measure_scenarios
from hybridwatch.cli.subjects import (
    chosen,
    lines_about,
    takes_base,
    takes_line,
    takes_phases,
    takes_scenarios,
)
from hybridwatch.cli.terminal import Console, as_text
from hybridwatch.engines.builds import BuildSpec
from hybridwatch.engines.check import check_build
from hybridwatch.engines.own_builds import add_python, add_source, add_wheel
from hybridwatch.errors import BuildError
from hybridwatch.measurement.plan import TIMED_PHASES, USUAL_PHASES
from hybridwatch.records.run import Phase
from hybridwatch.reports.reason_text import blind_sentence, settling
from hybridwatch.reports.sentence import list_readings
from hybridwatch.reports.table import STYLES
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch.system.plain_text import visible

_READINGS: Final = 3
"""Of the numbers that got worse in a scenario, as many are named."""
_MARGINS: Final = 1.0
"""A change of more than its margin that would have passed unseen is reported."""
_MINUTE: Final = 60.0
_NAMES: Final = {
    Phase.CONTRACT: "contracts",
    Phase.ACCURACY: "answers",
    Phase.PERFORMANCE: "times",
    Phase.HOST_SYNC: "host reads",
    Phase.DUET: "duets",
}
"""What is looked at in each phase."""


@verb(
    "try", "~/vllm", "~/vllm smoke/padded-graph-rows --max-minutes 30", "~/vllm --phases contract"
)
@click.argument("source", metavar="SOURCE", type=click.Path(path_type=Path))
@takes_scenarios
@click.option(
    "--name",
    default="mine",
    show_default=True,
    help="What the build is called, as `engine add` has.",
)
@takes_base("The release that it is compared with.  [default: the nearest installed one]")
@takes_phases
@click.option(
    "--max-minutes",
    type=click.FloatRange(0, min_open=True),
    default=15.0,
    show_default=True,
    help="Time after which no other scenario is timed; the one at hand gets its verdicts.",
)
@takes_line
@takes_results("Folder that gets the records.")
@takes_json("Print one JSON object at the end.")
def command(
    source: Path,
    scenarios: tuple[str, ...],
    name: str,
    *,
    base: str,
    phases: tuple[Phase, ...],
    max_minutes: float,
    line: str | None,
    results: Path,
    as_json: bool,
) -> None:
    """Say whether your vLLM is worse than the release that it comes from.

    SOURCE is a checkout of vLLM or a copy of its package, a wheel, or the interpreter of an
    environment. It is added, or added again, as a build of your own. Then both sides run in turn:
    contracts of all scenarios first, then answers, then, if nothing is wrong yet, the times of one
    scenario after the other, until each is decided or the minutes are over. SCENARIO is an id or a
    group.  [default: smoke]

    The exit status is 1 when your build is worse, or a trial failed.
    """
    end = time.monotonic() + max_minutes * _MINUTE
    build = _added(source, name, base)
    console = Console(stderr=as_json)
    for finding in lines_about(build, check_build(build)):
        console.print(as_text(finding), soft_wrap=True)
    trying = _SourceTrial((base or build.base, build.name), results, console, line)
    named = sorted(chosen(scenarios or ("smoke",), trying.labels), key=_slowness)
    wanted = phases or USUAL_PHASES
    if untimed := tuple(phase for phase in wanted if phase not in TIMED_PHASES):
        trying.measure(named, phases=untimed, staged=True)
    if timed := tuple(phase for phase in wanted if phase in TIMED_PHASES):
        # Phases that are named are all wanted; else what is wrong already is the answer.
        trying.time(named, timed, end, whatever_else=bool(phases))
    print_closing(trying.outcomes, results, console)
    trying.print_answer()
    if as_json:
        print_json(trying.to_json())
    leave(bad_news=trying.is_worse)


@dataclass(slots=True)
class _SourceTrial:
    """What is known so far of a build and its release, of the runs so far (``outcomes``)."""

    labels: tuple[str, str]
    results: Path
    console: Console
    line: str | None
    outcomes: list[RunOutcome] = field(default_factory=list)
    lost: int = 0
    untimed: tuple[str, ...] = ()

    @property
    def worse(self) -> list[RunOutcome]:
        """Runs in which something got worse, or could not be measured."""
        return [one for one in self.outcomes if one.troubles or one.bad_news]

    @property
    def is_worse(self) -> bool:
        """Whether the build is worse, or cannot run a scenario, so that no one knows."""
        return bool(self.worse) or self.lost > 0

    def measure(self, scenarios: Sequence[Scenario], **options: Any) -> None:
        """Measure scenarios; the options are those of ``RunOptions``."""
        wanted = RunOptions(self.labels, line=self.line, **options)
        found, lost = measure_scenarios(scenarios, wanted, self.results, self.console)
        self.outcomes += found
        self.lost += lost

    def time(
        self,
        scenarios: Sequence[Scenario],
        phases: tuple[Phase, ...],
        end: float,
        *,
        whatever_else: bool,
    ) -> None:
        """Time one by one until one is worse, unless ``whatever_else``, or monotonic ``end``."""
        rest = list(scenarios)
        while rest and (whatever_else or not self.is_worse):
            left = (end - time.monotonic()) / _MINUTE
            if left <= 0:
                break
            self.measure([rest.pop(0)], phases=phases, until_decided=True, max_minutes=left)
        self.untimed = tuple(scenario.id for scenario in rest)

    def to_json(self) -> dict[str, Any]:
        """Give what was found as plain JSON, and what was not looked at."""
        return {
            "worse": self.is_worse,
            "not_looked_at": [phase.value for phase in _not_looked_at(self.outcomes)],
            "not_timed": list(self.untimed),
            "runs": [outcome.to_json() for outcome in self.outcomes],
        }

    def print_answer(self) -> None:
        """Say what got worse, a line for each run, what was not looked at or could not be seen."""
        release = self.labels[0]
        lines = [
            f"worse than {release} in {one.scenario}: "
            f"{list_readings(one.bad_news, most=_READINGS) or one.troubles[0]}"
            for one in self.worse
        ]
        if self.lost:
            lines.append(f"{plural(self.lost, 'scenario')} could not be measured")
        style = STYLES[Verdict.REGRESSION]
        if not lines:
            count = plural(len({one.scenario for one in self.outcomes}), "scenario")
            looked = ", ".join(_NAMES[phase] for phase in _looked_at(self.outcomes))
            lines = [f"nothing worse than {release} in {count}: {looked}"]
            style = STYLES[Verdict.EQUIVALENT]
        self.console.print()
        for line in lines:
            self.console.print(Text(visible(line), style=style), soft_wrap=True)
        left_open = []
        if rest := [_NAMES[phase] for phase in _not_looked_at(self.outcomes)]:
            left_open.append(f"not looked at: {', '.join(rest)}")
        if self.untimed:
            left_open.append(f"not timed: {', '.join(self.untimed)}")
        if not self.is_worse:
            left_open += _unseen(self.outcomes, self.labels, self.results)
        for line in left_open:
            self.console.print(as_text(line), soft_wrap=True)


def _slowness(scenario: Scenario) -> tuple[bool, bool]:
    """What takes long comes last: Triton's interpreter below model runner V2, then drafts."""
    return scenario.engine.model_runner == "v2", scenario.engine.speculation is not None


def _added(source: Path, name: str, base: str) -> BuildSpec:
    if source.is_dir():
        return add_source(home(), name, source, base)
    if source.suffix == ".whl":
        return add_wheel(home(), name, source, base)
    if not base:
        raise BuildError(f"{name}: has no release below it; --base names the one to compare with")
    return add_python(home(), name, source, base)


def _looked_at(outcomes: Sequence[RunOutcome]) -> tuple[Phase, ...]:
    """Name the phases of which there is a trial that did not fail."""
    made = {trial.phase for one in outcomes for trial in one.run.trials if trial.failure is None}
    return tuple(phase for phase in Phase if phase in made)


def _not_looked_at(outcomes: Sequence[RunOutcome]) -> tuple[Phase, ...]:
    """Name the usual phases of which there is none."""
    made = _looked_at(outcomes)
    return tuple(phase for phase in USUAL_PHASES if phase not in made)


def _unseen(outcomes: Sequence[RunOutcome], labels: Sequence[str], results: Path) -> Iterator[str]:
    """Yield what was timed and could not have been seen, and what it would take to see it."""
    timed = [one for one in outcomes if set(TIMED_PHASES) & set(_looked_at([one]))]
    reports = tuple(one.report for one in timed if one.report is not None)
    blind = find_blindness(reports, STRICT, beyond=_MARGINS)
    if not blind.spots:
        return
    yield blind_sentence(blind, lambda report: report.scenario.id)
    yield f"it would take {settling(blind)}{_minutes(timed, blind)}"
    if Phase.DUET not in _looked_at(timed):
        worst = blind.spots[-1].report.scenario.id
        builds = "".join(f" --build {label}" for label in labels)
        command = f"{program()} run {worst}{builds} --phases duet{with_results(results)}"
        yield f"or, where others use the machine, processor time: {command}"


def _minutes(timed: Sequence[RunOutcome], blind: Blindness) -> str:
    """Say how long the trials take that would settle it, as far as that is known."""
    if blind.trials_needed is None or blind.trials_needed > MOST_TRIALS:
        return ""
    seconds = 0.0
    for one in timed:
        own = (spot.comparison for spot in blind.spots if spot.report is one.report)
        seconds += _round_s(one) * max((spot.trials_needed or 0 for spot in own), default=0)
    return f": some {max(1.0, seconds / _MINUTE):.0f} min (--max-minutes)"


def _round_s(outcome: RunOutcome) -> float:
    """Seconds of a timed trial of each side, of every phase that is timed."""
    trials = [one for one in outcome.run.trials if one.phase in TIMED_PHASES and not one.warmup]
    rounds = max(
        sum(one.phase is phase and one.side == 0 for one in trials) for phase in TIMED_PHASES
    )
    return sum(one.duration_s for one in trials) / max(rounds, 1)
