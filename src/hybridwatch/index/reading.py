"""From one record to the rows that the index keeps of it: read once, judged once."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from hybridwatch.analysis.gate import consequence
from hybridwatch.analysis.machine_state import machine_doubts
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.reduction import reduce_side
from hybridwatch.analysis.report import report_of
from hybridwatch.analysis.subject import subjects_of
from hybridwatch.analysis.verdict import Comparison, Report
from hybridwatch.errors import HybridwatchError, RecordError
from hybridwatch.index.stamps import Listed, printable
from hybridwatch.index.tables import RECORDS, RUNS, VALUES, VERDICTS
from hybridwatch.record.run import Run
from hybridwatch.store import read_run

Row: TypeAlias = dict[str, Any]

Headline: TypeAlias = Callable[[Report], str]
"""Says a report in one sentence; words are ``report``'s business, which lies above the index."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of some records, by table."""

    rows: dict[str, list[Row]] = field(
        default_factory=lambda: {RECORDS: [], RUNS: [], VALUES: [], VERDICTS: []}
    )

    def add(self, name: str, listed: Listed, headline: Headline) -> None:
        """Read a record and judge it; one that cannot be read is kept with the reason.

        Args:
            name: What the index calls it: its path below the results folder.
            listed: Where it lies, and its stamp from before it was read.
            headline: Says a report in one sentence.
        """
        broken = ""
        try:
            run = read_run(listed.path)
        except RecordError as error:
            broken = printable(str(error).removeprefix(f"{listed.path}: "))
        else:
            self._add_run(name, run, headline)
        self.rows[RECORDS].append({"record": name, **asdict(listed.stamp), "broken": broken})

    def _add_run(self, name: str, run: Run, headline: Headline) -> None:
        report, trouble = _judged(run)
        shared = _shared(name, run) | {
            "trouble": trouble,
            "headline": headline(report) if report else "",
            "doubts": "\n".join(machine_doubts(run)) if report else "",
        }
        for index in range(len(run.builds)):
            side = OneSide(run, index)
            self.rows[RUNS].append(shared | _of_side(side))
            self.rows[VALUES].extend(
                {"record": name, "side": index} | value for value in _values(side)
            )
        if report:
            self.rows[VERDICTS].extend(
                {"record": name, "place": place} | _verdict(comparison, report)
                for place, comparison in enumerate(report.comparisons)
            )


def _judged(run: Run) -> tuple[Report | None, str]:
    try:
        return report_of(run), ""
    except HybridwatchError as error:
        return None, str(error)


def _shared(name: str, run: Run) -> Row:
    scenario, source = run.scenario, run.source
    return {
        "record": name,
        "run": run.id,
        "scenario": scenario.id,
        "version": scenario.version,
        "group": scenario.id.partition("/")[0],
        "testbed": run.testbed.id,
        "started_at": run.started_at,
        "committed_at": source.committed_at if source else None,
        "revision": run.harness.revision or "unknown",
        "source": source.format if source else "",
    }


def _of_side(side: OneSide) -> Row:
    build = side.build
    fixes = {name: state.value for name, state in sorted(build.fixes.items())}
    return {
        "side": side.index,
        "build": build.label,
        "release": build.release,
        "accelerator": build.accelerator,
        "fixes": json.dumps(fixes, ensure_ascii=False),
        "failures": sum(1 for _ in side.run.failed(side.index)),
    }


def _values(side: OneSide) -> Iterator[Row]:
    for subject in subjects_of(side, side):
        named = {"metric": subject.metric.id, "statistic": subject.statistic}
        for trial, value in reduce_side(side, subject).by_trial.items():
            yield named | {"trial": trial, "value": value}


def _verdict(comparison: Comparison, report: Report) -> Row:
    interval, old, new = comparison.interval, comparison.baseline, comparison.contender
    return {
        "metric": comparison.metric.id,
        "statistic": comparison.statistic,
        "verdict": comparison.verdict.value,
        "effect": comparison.effect,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "p_adjusted": comparison.p_adjusted,
        "p_holm": comparison.p_holm,
        "old": old.center if old else None,
        "new": new.center if new else None,
        "n_old": old.n if old else 0,
        "n_new": new.n if new else 0,
        "gate": consequence(comparison, report).value,
        "doubt": comparison.doubts[0] if comparison.doubts else "",
        "doubts": len(comparison.doubts),
    }
