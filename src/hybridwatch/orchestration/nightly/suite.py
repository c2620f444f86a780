"""What the asv suites in ``benchmarks/`` are made of: a class per scenario, made from its file.

asv runs each benchmark in a process: ``setup_cache`` makes one session, and each ``track_*`` hands
out a part. asv knows no direction but down: rates have twins in seconds, answers count as wrong
ones. Results go by names such as ``smoke.padded_graph_rows.PaddedGraphRows.track_ttft``.

Environment variables, since asv hands no arguments on: ``HYBRIDWATCH_BUILD`` is the build that asv
gets the numbers of; ``HYBRIDWATCH_BASELINE`` a second one, measured in turn with it;
``HYBRIDWATCH_RESULTS`` the folder that gets the record; ``HYBRIDWATCH_RECEIPT`` a file that gets
the record's path, or has it already, and then nothing is measured; ``HYBRIDWATCH_CONSOLE`` where a
person looks on, as asv keeps output; ``HYBRIDWATCH_UNTIL`` the clock's seconds until which times
that changed may be measured again, 0 for never.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Final, cast

from hybridwatch.analysis.machine_state import blocks_missing
from hybridwatch.analysis.pair import reduce_side
from hybridwatch.analysis.run_noise import REMEMBERED, Noise, noise_between
from hybridwatch.analysis.subject import OneSide, Subject
from hybridwatch.database.heads import read_alike
from hybridwatch.engines.builds import DEFAULT_BUILD, BuildRequest, on_line, parse_label
from hybridwatch.engines.check import equipped_label, require_installed
from hybridwatch.errors import BuildError, HybridwatchError, MeasurementError, ScenarioError
from hybridwatch.formats.write.asv_benchmarks import (
    BUILD_VARIABLE,
    Form,
    FoundBenchmarks,
    TrackedMetric,
    benchmark_name,
    compute_noise,
    compute_stats,
    render_class_name,
    render_module_name,
    tracked,
)
from hybridwatch.measurement.session import run_session
from hybridwatch.measurement.session_request import Progress, SessionRequest
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.orchestration.nightly.checkout import second_look_here
from hybridwatch.records.identity import checked_line
from hybridwatch.records.run import Run
from hybridwatch.records.store import check_writable, read_run, results_folder, write_run
from hybridwatch.records.store.layout import RESULTS_VARIABLE
from hybridwatch.scenarios.load import load_scenario, scenario_files
from hybridwatch.scenarios.scenario import MIN_PERFORMANCE_TRIALS, Scenario
from hybridwatch.system.files import put
from hybridwatch.system.home import home
from hybridwatch.system.plain_text import visible

BASELINE_VARIABLE: Final = "HYBRIDWATCH_BASELINE"
LINE_VARIABLE: Final = "HYBRIDWATCH_LINE"
CONSOLE_VARIABLE: Final = "HYBRIDWATCH_CONSOLE"
RECEIPT_VARIABLE: Final = "HYBRIDWATCH_RECEIPT"
UNTIL_VARIABLE: Final = "HYBRIDWATCH_UNTIL"
Values = Mapping[str, FoundBenchmarks]
"""By the name of a benchmark."""


def labels() -> tuple[str, ...]:
    """The builds, the baseline first if there is one."""
    return tuple(filter(None, (os.environ.get(BASELINE_VARIABLE), _contender())))


def contender() -> BuildRequest:
    """Give the build that asv gets the numbers of."""
    return parse_label(_contender())


def _contender() -> str:
    return os.environ.get(BUILD_VARIABLE) or DEFAULT_BUILD


def stated_line() -> str | None:
    """Give the line of builds that the contender is stated to belong to."""
    text = os.environ.get(LINE_VARIABLE) or None
    try:
        return None if text is None else checked_line(text)
    except ValueError as error:
        raise BuildError(f"{LINE_VARIABLE}: {error}, found {text!r}") from None


def can_run(scenario: Scenario) -> bool:
    """Whether all of them are for what a scenario needs."""
    return all(scenario.fits(parse_label(label).spec.accelerator) for label in labels())


def measured(scenario: Scenario, wanted: Sequence[TrackedMetric]) -> Values:
    """Measure a scenario, or read what the receipt names, and give the contender's values.

    After a ``MeasurementError`` the record is kept, and asv shows the suite as failed.
    """
    _show("\n")  # asv has not ended its line yet
    try:
        return _measured(scenario, wanted)
    except HybridwatchError as error:
        _show(f"{scenario.id}: {error}\n")
        raise


def list_values(side: OneSide, wanted: Sequence[TrackedMetric], learned: Noise) -> Values:
    """Reduce a side to what benchmarks hand out, the noise between runs being known."""
    found = {}
    for one in wanted:
        subject = Subject(one.metric, one.statistic)
        values = reduce_side(side, subject).values
        noise = compute_noise(subject, side, learned.get((one.metric.id, one.statistic)))
        found[one.name] = FoundBenchmarks(
            values, compute_stats(one, values, noise) if values else None
        )
    return found


def _measured(scenario: Scenario, wanted: Sequence[TrackedMetric]) -> Values:
    receipt = os.environ.get(RECEIPT_VARIABLE)
    if receipt and Path(receipt).is_file():
        run = read_run(Path(Path(receipt).read_text(encoding="utf-8")))
    else:
        run = _measure(scenario, Path(receipt) if receipt else None)
    side = OneSide(run, len(run.builds) - 1)
    for trial in run.failed(side.index):
        assert trial.failure is not None  # noqa: S101 - what failed() yields
        raise MeasurementError(f"trial {trial.index}: {trial.failure.reason}")
    alike = read_alike(_results(), run, {side.build.label}, REMEMBERED)
    history = (OneSide(other, at) for other in alike for at in range(len(other.builds)))
    return list_values(side, wanted, noise_between(history, side, side))


def _results() -> Path:
    named = os.environ.get(RESULTS_VARIABLE)
    return results_folder(named) if named else home() / "results"


def _measure(scenario: Scenario, receipt: Path | None) -> Run:
    results = _results()
    check_writable(results)
    sides = on_line(_sides(scenario), stated_line())
    make_ready(scenario, sides, home() / "models")
    request = SessionRequest(
        enough_trials(scenario),
        sides,
        home() / "models",
        _print_progress,
        missing=blocks_missing,
        again=_second_look(time.time()),
    )
    run = run_session(request)
    record = write_run(results, run).resolve()
    if receipt is not None:
        put(receipt, str(record).encode())
    return run


def _second_look(begun: float) -> Callable[[Run], str]:
    """Measure again only if as much time as was taken so far is left: a first look is not lost."""
    until = min(begun + _SESSION_S, float(os.environ.get(UNTIL_VARIABLE) or "inf"))
    find_reason = second_look_here()

    def find_reason_in_time(run: Run) -> str:
        now = time.time()
        return find_reason(run) if 2 * now - begun <= until else ""

    return find_reason_in_time


def enough_trials(scenario: Scenario) -> Scenario:
    """Raise the timed trials to seven: fewer are in doubt by themselves (``compute_noise``)."""
    least = MIN_PERFORMANCE_TRIALS
    counts = scenario.trials.model_copy(
        update={
            "performance": max(least, scenario.trials.performance),
            "host_sync": max(least, scenario.trials.host_sync),
        }
    )
    return scenario.model_copy(update={"trials": counts})


def _sides(scenario: Scenario) -> list[BuildRequest]:
    sides = []
    for label in labels():
        require_installed(parse_label(label).spec)
        sides.append(parse_label(equipped_label(label, scenario.requires)))
    return sides


def _print_progress(progress: Progress) -> None:
    line = f"[{progress.done}/{progress.total}] {progress.text}\n"
    sys.stderr.write(line)
    _show(line)


def _show(line: str) -> None:
    """Print progress; standard error may be closed."""
    console = Path(os.environ.get(CONSOLE_VARIABLE) or os.devnull)
    # A file has a place at which its owner goes on writing, over what others have added.
    if not console.is_file():
        with suppress(OSError), console.open("a", encoding="utf-8") as shown:
            shown.write(visible(line))


_SESSION_S: Final = 4 * 3600.0
"""After that asv gives up a session: a scenario takes minutes, model runner V2 on a CPU more."""
_HAND_OUT_S: Final = 600.0
"""After that asv gives up a benchmark, which only hands out a number."""

STATS_MARK: Final = "hybridwatch: how sure asv may be: "
"""Begins the line of a benchmark's output that ``asv_plugin`` reads: asv makes an interval of its
own from samples, and has no place for another."""


class Suite:
    """Base of the classes of good scenarios; asv's words are ``version``, ``timeout`` (seconds).

    ``setup_cache`` makes the session, once for the class; none where the build cannot run it.
    """

    scenario: ClassVar[Scenario]
    tracked: ClassVar[tuple[TrackedMetric, ...]]
    version: ClassVar[str]
    timeout: ClassVar[float] = _HAND_OUT_S
    setup_cache: ClassVar[Callable[["Suite"], Values]]

    def setup(self, _values: Values) -> None:
        """Skip a benchmark that the build cannot run: asv's word is ``NotImplementedError``."""
        if not can_run(self.scenario):
            text = f"{self.scenario.id} needs the accelerator {self.scenario.accelerator}"
            raise NotImplementedError(text)


def suites(root: Path, package: str) -> dict[str, type]:
    """Make a class of benchmarks for each scenario file below a folder, by names of their own.

    ``package`` is where asv looks for benchmarks. A wrong file's one benchmark fails with what is
    wrong.
    """
    made = {}
    for path in scenario_files(root):
        scenario_id = path.relative_to(root).with_suffix("").as_posix()
        try:
            suite: type = _suite(load_scenario(path, root), package)
        except ScenarioError as error:
            suite = _failing(scenario_id, str(error), package)
        made[re.sub(r"\W", "_", scenario_id)] = suite
    return made


def _suite(scenario: Scenario, package: str) -> type[Suite]:
    content: dict[str, Any] = {
        "__doc__": scenario.why,
        "__module__": _module(scenario.id, package),
        "scenario": scenario,
        "version": str(scenario.version),
        "tracked": tracked(scenario),
        "setup_cache": _session(scenario, package),
    }
    for one in tracked(scenario):
        content[f"track_{one.name}"] = _benchmark(one, scenario)
    return cast("type[Suite]", type(render_class_name(scenario.id), (Suite,), content))


def _failing(scenario_id: str, problem: str, package: str) -> type:
    def track(_self: object) -> float:
        raise ScenarioError(problem)

    track.benchmark_name = benchmark_name(scenario_id, "scenario_file")  # type: ignore[attr-defined]
    content = {"__module__": _module(scenario_id, package), "track_scenario_file": track}
    return type(render_class_name(scenario_id), (), content)


def _module(scenario_id: str, package: str) -> str:
    """Make a module for each scenario, by which asv distinguishes sessions."""
    name = f"{package}.{render_module_name(scenario_id)}"
    sys.modules.setdefault(name, ModuleType(name))
    return name


def _session(scenario: Scenario, package: str) -> Callable[[Suite], Values]:
    def setup_cache(self: Suite) -> Values:
        if not can_run(self.scenario):
            return {}
        return measured(self.scenario, self.tracked)

    # asv distinguishes sessions by module and line. The line is the same for all; the module must
    # not be, or the first class would measure for every other.
    setup_cache.__module__ = _module(scenario.id, package)
    setup_cache.timeout = _SESSION_S  # type: ignore[attr-defined]  # asv reads it from the function
    return setup_cache


def _benchmark(one: TrackedMetric, scenario: Scenario) -> Callable[[Suite, Values], Any]:
    def track(_self: Suite, values: Values) -> Any:
        found = values[one.name]
        if found.stats is not None:
            sys.stderr.write(f"{STATS_MARK}{json.dumps(dict(found.stats))}\n")
        return _handed(one, found.values)

    track.__doc__ = one.metric.doc
    # asv reads these from the function; without a name it would take that of the module.
    track.benchmark_name = benchmark_name(scenario.id, one.name)  # type: ignore[attr-defined]
    track.unit = one.unit  # type: ignore[attr-defined]
    track.pretty_name = f"{scenario.id}: {one.name}"  # type: ignore[attr-defined]
    return track


def _handed(one: TrackedMetric, values: tuple[float, ...]) -> Any:
    if not values:
        return float("nan")  # asv's word for skipped: this engine has no such number
    own = [one.form.of(value) for value in values]
    match one.form:
        case Form.WORST:
            worst = max(own)
            return int(worst) if worst.is_integer() else worst  # "27", not "27.0"
        case Form.WRONG:
            return sum(own) / len(own)
        case _:
            return {"samples": own, "number": 1}
