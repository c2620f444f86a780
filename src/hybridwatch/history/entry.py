"""A stored run as a page needs it: with its report, or named as broken."""

from dataclasses import dataclass, replace
from pathlib import Path

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Report
from hybridwatch.errors import HybridwatchError, RecordError
from hybridwatch.records.readings import without_results
from hybridwatch.records.run import Run
from hybridwatch.records.store import Broken, read_run


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored run with its report.

    Attributes:
        report: Its verdicts; ``None`` when it has no two sides to compare.
        trouble: Why there is no report, in one line.
    """

    path: Path
    run: Run
    report: Report | None
    trouble: str = ""


def load_entry(path: Path) -> Entry | Broken:
    """Read one record and judge it; ``Broken`` if that fails.

    The run comes without its answers; the report keeps those that flipped.
    """
    try:
        run = read_run(path)
    except RecordError as error:
        return Broken(path, str(error).removeprefix(f"{path}: "))
    try:
        return Entry(path, _slim(run), build_report(run))
    except HybridwatchError as error:
        return Entry(path, _slim(run), None, str(error))


def _slim(run: Run) -> Run:
    trials = (
        replace(
            trial,
            answers=(),
            client_result=None,
            curve=None if trial.curve is None else without_results(trial.curve),
        )
        for trial in run.trials
    )
    return replace(run, trials=tuple(trials))
