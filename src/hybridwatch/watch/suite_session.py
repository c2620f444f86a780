"""The session behind an asv suite: measured once, kept as a record, reduced to what asv can keep.

Environment variables, since asv hands no arguments on:
``HYBRIDWATCH_BUILD`` is the build that asv gets the numbers of; ``HYBRIDWATCH_BASELINE`` a second
one, measured in turn with it, for the verdict; ``HYBRIDWATCH_RESULTS`` the folder that gets the
record; ``HYBRIDWATCH_RECEIPT`` a file that gets the record's path. Where the receipt is there
already, its record is handed out and nothing is measured.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.reduction import reduce_side
from hybridwatch.analysis.restless import blocks_missing
from hybridwatch.analysis.subject import Subject
from hybridwatch.engine.builds import BuildRequest, parse_label
from hybridwatch.engine.check import require_installed
from hybridwatch.engine.label_resolution import equipped_label
from hybridwatch.errors import MeasurementError
from hybridwatch.home import home
from hybridwatch.measure.ready import make_ready
from hybridwatch.measure.session import Progress, SessionRequest, run_session
from hybridwatch.record.run import Run
from hybridwatch.scenario.scenario import MIN_PERFORMANCE_TRIALS, Scenario
from hybridwatch.store import check_writable, read_run, results_folder, write_run
from hybridwatch.store.address import RESULTS_VARIABLE
from hybridwatch.watch.suite_builds import labels
from hybridwatch.watch.tracked import Tracked

RECEIPT_VARIABLE: Final = "HYBRIDWATCH_RECEIPT"

Values = Mapping[str, tuple[float, ...]]
"""Name of a benchmark to one value per trial, or per document for answers; empty without one."""


def measured(scenario: Scenario, wanted: Sequence[Tracked]) -> Values:
    """Measure a scenario, or read what the receipt names, and give the contender's values.

    Raises:
        HybridwatchError: The scenario or a build cannot be used.
        MeasurementError: A trial failed; the record is kept, and asv shows the suite as failed.
    """
    receipt = os.environ.get(RECEIPT_VARIABLE)
    run = _kept(Path(receipt)) if receipt else None
    if run is None:
        run = _measure(scenario, Path(receipt) if receipt else None)
    side = len(run.builds) - 1
    for trial in run.failed(side):
        assert trial.failure is not None  # noqa: S101 - what failed() yields
        raise MeasurementError(f"trial {trial.index}: {trial.failure.reason}")
    return values_of(OneSide(run, side), wanted)


def values_of(side: OneSide, wanted: Sequence[Tracked]) -> Values:
    """Reduce a side to the values of benchmarks."""
    return {
        one.name: reduce_side(side, Subject(one.metric, one.statistic)).values for one in wanted
    }


def _kept(receipt: Path) -> Run | None:
    return read_run(Path(receipt.read_text(encoding="utf-8"))) if receipt.is_file() else None


def _measure(scenario: Scenario, receipt: Path | None) -> Run:
    named = os.environ.get(RESULTS_VARIABLE)
    results = results_folder(named) if named else home() / "results"
    check_writable(results)
    sides = tuple(_sides(scenario))
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
    """Raise the timed trials to seven: asv's rank rule can never fire on fewer."""
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
    sys.stderr.write(f"[{progress.done}/{progress.total}] {progress.text}\n")
