"""The session behind an asv suite: measured once, kept as a record, reduced to what asv can keep.

Environment variables, since asv hands no arguments on:
``HYBRIDWATCH_BUILD`` is the build that asv gets the numbers of; ``HYBRIDWATCH_BASELINE`` a second
one, measured in turn with it, for the verdict; ``HYBRIDWATCH_RESULTS`` the folder that gets the
record; ``HYBRIDWATCH_RECEIPT`` a file that gets the record's path. Where the receipt is there
already, its record is handed out and nothing is measured. ``HYBRIDWATCH_CONSOLE`` names where a
person looks on: asv keeps what a session says to itself until it has ended.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hybridwatch.analysis.machine_state import blocks_missing
from hybridwatch.analysis.noise import REMEMBERED, Noise, noise_between
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.pair import reduce_side
from hybridwatch.analysis.subject import Subject
from hybridwatch.database.heads import read_alike
from hybridwatch.engines.builds import DEFAULT_BUILD, BuildRequest, on_line, parse_label
from hybridwatch.engines.check import equipped_label, require_installed
from hybridwatch.errors import BuildError, HybridwatchError, MeasurementError
from hybridwatch.formats.write.asv_benchmarks import (
    BUILD_VARIABLE,
    FoundBenchmarks,
    TrackedMetric,
    compute_noise,
    compute_stats,
)
from hybridwatch.measurement.session import Progress, SessionRequest, run_session
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.records.identity import checked_line
from hybridwatch.records.run import Run
from hybridwatch.records.store import check_writable, read_run, results_folder, write_run
from hybridwatch.records.store.layout import RESULTS_VARIABLE
from hybridwatch.scenarios.scenario import MIN_PERFORMANCE_TRIALS, Scenario
from hybridwatch.system.home import home
from hybridwatch.system.plain_text import visible

BASELINE_VARIABLE: Final = "HYBRIDWATCH_BASELINE"
LINE_VARIABLE: Final = "HYBRIDWATCH_LINE"
CONSOLE_VARIABLE: Final = "HYBRIDWATCH_CONSOLE"
RECEIPT_VARIABLE: Final = "HYBRIDWATCH_RECEIPT"
Values = Mapping[str, FoundBenchmarks]
"""By the name of a benchmark."""


def labels() -> tuple[str, ...]:
    """The builds, the baseline first if there is one."""
    return tuple(filter(None, (os.environ.get(BASELINE_VARIABLE), _contender())))


def contender() -> BuildRequest:
    """Give the build that asv gets the numbers of.

    Raises:
        BuildError: Its label names no build.
    """
    return parse_label(_contender())


def _contender() -> str:
    return os.environ.get(BUILD_VARIABLE) or DEFAULT_BUILD


def stated_line() -> str | None:
    """Give the line of builds that the contender is stated to belong to.

    Raises:
        BuildError: It is none.
    """
    text = os.environ.get(LINE_VARIABLE) or None
    try:
        return None if text is None else checked_line(text)
    except ValueError as error:
        raise BuildError(f"{LINE_VARIABLE}: {error}, found {text!r}") from None


def can_run(scenario: Scenario) -> bool:
    """Whether all of them are for what a scenario needs.

    Raises:
        BuildError: A label names no build.
    """
    return all(scenario.fits(parse_label(label).spec.accelerator) for label in labels())


def measured(scenario: Scenario, wanted: Sequence[TrackedMetric]) -> Values:
    """Measure a scenario, or read what the receipt names, and give the contender's values.

    Raises:
        HybridwatchError: The scenario or a build cannot be used.
        MeasurementError: A trial failed; the record is kept, and asv shows the suite as failed.
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
    run = _kept(Path(receipt)) if receipt else None
    if run is None:
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


def _kept(receipt: Path) -> Run | None:
    return read_run(Path(receipt.read_text(encoding="utf-8"))) if receipt.is_file() else None


def _measure(scenario: Scenario, receipt: Path | None) -> Run:
    results = _results()
    check_writable(results)
    sides = on_line(_sides(scenario), stated_line())
    make_ready(scenario, sides, home() / "models")
    request = SessionRequest(
        enough_trials(scenario), sides, home() / "models", _tell, missing=blocks_missing
    )
    run = run_session(request)
    record = write_run(results, run).resolve()
    if receipt is not None:
        whole = receipt.with_name(f".{receipt.name}")
        whole.write_text(str(record), encoding="utf-8")
        whole.replace(receipt)
    return run


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


def _tell(progress: Progress) -> None:
    line = f"[{progress.done}/{progress.total}] {progress.text}\n"
    sys.stderr.write(line)
    _show(line)


def _show(line: str) -> None:
    """Tell who looks on; nobody may be there any more."""
    console = Path(os.environ.get(CONSOLE_VARIABLE) or os.devnull)
    # A file has a place at which its owner goes on writing, over what others have added.
    if not console.is_file():
        with suppress(OSError), console.open("a", encoding="utf-8") as shown:
            shown.write(visible(line))
