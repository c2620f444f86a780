"""How ``hybridwatch run`` ends: what came of each scenario, where it lies, what to do next."""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.text import Text

from hybridwatch.analysis.cause import causes_in
from hybridwatch.analysis.detection import Detection, KnownBad
from hybridwatch.analysis.report import broken_expectations
from hybridwatch.analysis.verdict import Comparison, Report, Verdict, find_line_verdict
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.analysis.wording.report_json import to_json
from hybridwatch.cli.options import program, with_results
from hybridwatch.cli.terminal import as_text
from hybridwatch.history.judge import both_sides, judge, judge_on, known_bad_in, save
from hybridwatch.measurement.session_request import is_stopped
from hybridwatch.records.identity import FixState
from hybridwatch.records.run import Phase, Run
from hybridwatch.records.store import read_run, write_run
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.jsonform import known_bad_to_json
from hybridwatch.reports.sentence import bugs_caught, clearest_sign, list_readings
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.reports.table import STYLES, print_table, print_values, values_line
from hybridwatch.scenarios.scenario import Expect, Scenario
from hybridwatch.system.plain_text import visible

_GOOD, _BAD = STYLES[Verdict.EQUIVALENT], STYLES[Verdict.REGRESSION]
_PREFIXES: Final = {Phase.CONTRACT: "contract.", Phase.ACCURACY: "accuracy."}
"""How the metrics of a phase begin."""
_AT_WORK: Final = frozenset({FixState.PRESENT, FixState.APPLIED})


class RunOutcome:
    """One run, as far as it was made: its report, what is wrong, where it was stopped if it was."""

    def __init__(
        self,
        scenario: Scenario,
        run: Run,
        path: Path,
        report: Report | None = None,
        verdict: Path | None = None,
    ) -> None:
        self.scenario = scenario.id
        self.run = run.so_far()
        lacking = next((t for t in run.trials if t.failure and t.failure.was_stopped), None)
        self.stopped = f"stopped in {lacking.phase.value}" if lacking else ""
        self.path = path
        self.verdict = verdict
        control = None if report is None else known_bad_in(report)
        # What a stopped run has not seen it might have seen yet.
        is_open = control is not None and self.stopped and control.detection is Detection.MISSED
        self.control = None if is_open else control
        self.report = report
        self.troubles = tuple(_troubles(scenario, self.run, self.control))

    @property
    def bad_news(self) -> Sequence[Comparison]:
        """What got worse, or could not be measured, in the gate's order."""
        every = () if self.report is None else _by_cause(self.report)
        return [one for one in every if one.verdict.is_bad_news]

    def show(self, console: Console, *, whole: bool) -> None:
        """Print what came of it: every number, or only what it comes to."""
        if not whole:
            word, style, by = self.summary()
            console.print(Text(visible(f"  {word}{by and f': {by}'}"), style=style))
        elif self.report is None:
            print_values(self.run, console)
        else:
            print_table(self.report, console)
        self.print_troubles(console)

    def print_troubles(self, console: Console, under: str = "") -> None:
        """Print what is wrong with it."""
        for trouble in self.troubles:
            console.print(as_text(f"{under}{trouble}"), style="red")

    def summary(self) -> tuple[str, str, str]:
        """Give the result in a word, the style of that word, and what shows it."""
        word, style, by = render_summary(self.run, self.report, self.control)
        by = "; ".join(filter(None, (by, self.stopped)))
        return word, _BAD if self.control is not None and self.troubles else style, by

    def to_json(self) -> dict[str, Any]:
        """As docs/json.md has it."""
        return {
            "scenario": self.scenario,
            "record": str(self.path),
            "verdict": None if self.verdict is None else str(self.verdict),
            "troubles": list(self.troubles),
            "control": None if self.control is None else known_bad_to_json(self.control),
            "report": None if self.report is None else to_json(self.report),
        }


def judged(scenario: Scenario, run: Run, record: Path, results: Path) -> RunOutcome:
    """Judge a run that is stored, and store the verdict between its two sides if it has two.

    Of a stopped run it says that phases failed; the one that is shown has those that were made.
    """
    if len(run.builds) != 2:
        return RunOutcome(scenario, run, record)
    found = judge(*both_sides(record, run), results)
    shown = judge_on(found.terms, *both_sides(record, run.so_far()))
    return RunOutcome(scenario, run, record, shown.report, save(results, found))


def render_summary(
    run: Run, report: Report | None, control: KnownBad | None
) -> tuple[str, str, str]:
    """Give what a run shows so far in a word, the style of that word, and what shows it."""
    if control is not None:
        caught = control.detection is Detection.CAUGHT
        return control.detection.value, _GOOD if caught else _BAD, clearest_sign(control)
    if report is None:
        return "measured", "", values_line(run)
    loudest = find_line_verdict(report)
    alike = [c for c in _by_cause(report) if c.verdict is loudest]
    by = plural(len(alike), "comparison")
    if loudest not in {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE}:
        by = list_readings(alike, most=1)
    return loudest.value, STYLES[loudest], by


def _by_cause(report: Report) -> list[Comparison]:
    """Order comparisons as the gate names them: by cause, in it what users feel, then by size."""
    named = [part.comparison for cause in causes_in(report) for part in cause.parts]
    return sorted(report.comparisons, key=[*named, *report.comparisons].index)


def print_closing(
    outcomes: Sequence[RunOutcome],
    results: Path,
    console: Console,
    *notes: str,
    unmeasured: Sequence[str] = (),
) -> None:
    """Print what was caught, where it lies, notes about all of it, and commands to go on with."""
    if not outcomes:
        return
    if len(outcomes) + len(unmeasured) > 1:
        console.print()
        console.print(_table(outcomes, unmeasured))
        console.print()
    controls = [outcome.control for outcome in outcomes if outcome.control is not None]
    if controls:
        good = all(control.ok for control in controls)
        console.print(Text(f"{bugs_caught(controls)}.", style=_GOOD if good else _BAD))
    for line in (*notes, *_places(outcomes, results)):
        console.print(as_text(line), soft_wrap=True)


def _table(outcomes: Sequence[RunOutcome], unmeasured: Sequence[str]) -> StackedTable:
    table = StackedTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("scenario", no_wrap=True)
    table.add_column("result", no_wrap=True)
    table.add_column("shown by")
    for outcome in outcomes:
        word, style, by = outcome.summary()
        table.add_row(Text(one_line(outcome.scenario)), Text(word, style=style), Text(one_line(by)))
    for scenario in unmeasured:
        table.add_row(Text(one_line(scenario)), "not measured", "")
    return table


def _places(outcomes: Sequence[RunOutcome], results: Path) -> Iterator[str]:
    judged = [outcome for outcome in outcomes if outcome.verdict is not None]
    if len(outcomes) == 1:
        yield f"record:  {outcomes[0].path}"
        if outcomes[0].verdict is not None:
            yield f"verdict: {outcomes[0].verdict}"
    else:
        yield f"builds:   {_names_of_builds(outcomes)}"
        folders = dict.fromkeys(str(outcome.path.parent) for outcome in outcomes)
        yield f"records:  {', '.join(folders)} ({len(outcomes)} new)"
        folders = dict.fromkeys(str(o.verdict.parent) for o in judged if o.verdict is not None)
        if folders:
            yield f"verdicts: {', '.join(folders)}"
    indent = 9 if len(outcomes) == 1 else 10
    for at, command in enumerate(_next(judged, results)):
        yield f"{'' if at else 'next:':<{indent}}{command}"


def _names_of_builds(outcomes: Sequence[RunOutcome]) -> str:
    """Name the builds with their model runners: first what most scenarios ran on."""
    scenarios: dict[str, list[str]] = {}
    for outcome in outcomes:
        names = [re.split(r"~|\+(?!v[12]\b)", one.label)[0] for one in outcome.run.builds]
        scenarios.setdefault(" against ".join(dict.fromkeys(names)), []).append(outcome.scenario)
    most, *others = sorted(scenarios, key=lambda name: -len(scenarios[name]))
    return "; ".join([most, *(f"of {', '.join(scenarios[one])} {one}" for one in others)])


def _next(judged: Sequence[RunOutcome], results: Path) -> Iterator[str]:
    name, where = program(), with_results(results)
    if judged:
        one, verdict = judged[0].run.id, shlex.quote(str(judged[0].verdict))
        alone = len(judged) == 1
        yield f"{name} explain {verdict}" if alone else f"{name} compare {one}{where}"
        yield f"{name} gate {one}{where}"
    yield f"{name} dashboard{where}"


def _troubles(scenario: Scenario, run: Run, control: KnownBad | None) -> Iterator[str]:
    for trial in run.trials:
        if trial.failure is not None:
            reason = trial.failure.reason
            yield f"trial {trial.index} ({trial.phase.value}) failed: {reason}"
    if run.looks is not None and not run.looks.made:
        yield "no timed trial fitted into the time; give a larger --max-minutes"
    needed = {run.builds[0].fixes.get(fix) for fix in scenario.needed_fixes}
    if needed <= _AT_WORK:
        for line in broken_expectations(run, 0, _of_phases(scenario.expect, run)):
            yield f"the healthy engine is not as expected: {line}"
    if control is not None and control.detection is Detection.MISSED:
        yield f"the bug was not caught: without {', '.join(control.lost)} this passes"


def _of_phases(expect: Expect, run: Run) -> Expect:
    """Keep what is expected of the phases that a run was to have: others have no trials at all."""
    made = {trial.phase for trial in run.trials}
    left_out = tuple(prefix for phase, prefix in _PREFIXES.items() if phase not in made)

    def kept(bounds: Mapping[str, float]) -> dict[str, float]:
        return {name: bound for name, bound in bounds.items() if not name.startswith(left_out)}

    changes = {"exactly": kept(expect.exactly), "at_least": kept(expect.at_least)}
    return expect.model_copy(update=changes)


class RunRecords:
    """Stores what is measured, and notes it as it comes: a stopped call can be resumed.

    Each call has a file in ``unfinished/`` of the results folder, named after what was ``asked``,
    with a line for each record. It goes when all is measured; a process that is killed leaves it.
    """

    def __init__(self, results: Path, asked: Any, *, resume: bool) -> None:
        self.outcomes: list[RunOutcome] = []
        self._results = results
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        self._file = results / "unfinished" / f"{digest[:12]}.txt"
        if not resume:
            self.end()
        noted = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
        paths = [results / name for name in noted.splitlines()]
        runs = [(path, read_run(path)) for path in paths if path.is_file()]
        self._earlier = {run.scenario.id: (path, run) for path, run in runs}

    def take_whole(self, scenarios: Sequence[Scenario]) -> list[Scenario]:
        """Take in what an earlier call has finished, and return the scenarios that are left."""
        left = []
        for scenario in scenarios:
            path, run = self._earlier.get(scenario.id, (None, None))
            if path is None or run is None or is_stopped(run):
                left.append(scenario)
            else:
                self.outcomes.append(judged(scenario, run, path, self._results))
        return left

    def stopped(self, scenario: Scenario) -> Run | None:
        """Give the run of a scenario that was stopped before it was whole."""
        earlier = self._earlier.get(scenario.id)
        return earlier and earlier[1]

    def keep(self, scenario: Scenario, run: Run, *, noted: bool = True) -> RunOutcome:
        """Store a run and its verdict; what is added to a whole one is not ``noted`` to go on."""
        path = write_run(self._results, run)
        if noted:
            self._file.parent.mkdir(exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{path.relative_to(self._results)}\n")
        self.outcomes.append(judged(scenario, run, path, self._results))
        return self.outcomes[-1]

    def end(self) -> None:
        """Forget the call: nothing of it is left to be measured."""
        self._file.unlink(missing_ok=True)
