"""From one record to the rows that the database keeps of it: read once, judged once.

Stamps say whether a record is still the one that was read; the digest of the rules says by which
rules its rows were made: other rules make them again.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple, TypeAlias

from hybridwatch.analysis.gate import consequence
from hybridwatch.analysis.machine_state import machine_doubts
from hybridwatch.analysis.pair import reduce_side
from hybridwatch.analysis.replay import present_tools
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.subject import OneSide, list_subjects
from hybridwatch.analysis.verdict import Comparison, Report
from hybridwatch.analysis.wording.report_json import comparison_to_json
from hybridwatch.database.schema import ROWS_VERSION
from hybridwatch.errors import HybridwatchError, RecordError
from hybridwatch.records.file_parts import name_bulk
from hybridwatch.records.identity import Named, Testbed, name_line, name_role
from hybridwatch.records.run import Run
from hybridwatch.records.store import list_records, read_run
from hybridwatch.records.store.layout import results_above
from hybridwatch.records.store.mirror import Mirror, mirror_at

_ABSENT = (-1, -1)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Changes when a record, or the file of answers next to it, is replaced.

    Of each when it was last written, in nanoseconds since 1970, and bytes; -1 for a missing file.
    """

    record_ns: int
    record_size: int
    bulk_ns: int
    bulk_size: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A record that lies in the store, not yet read."""

    path: Path
    stamp: Stamp


def list_stamped(results: Path) -> dict[str, Listed]:
    """List a store without reading it: by path below the results folder, oldest run first."""
    records = list_records(results)
    stamp = _stamp_in(mirror_at(results))
    return {
        printable(path.relative_to(results).as_posix()): Listed(path, stamp(path))
        for path in records
    }


def printable(text: str) -> str:
    """Write what is no Unicode, such as a file name of another alphabet, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def read_stamp(path: Path) -> Stamp:
    """Give what changes when a record, or the file next to it, is replaced."""
    return _stamp_in(mirror_at(results_above(path)))(path)


def _stamp_in(mirror: Mirror | None) -> Callable[[Path], Stamp]:
    """Give what stamps the records of a folder; in a mirror by sizes, the same on every machine."""
    written = _written if mirror is None else partial(_in_store, mirror)
    return lambda path: Stamp(*written(path), *written(name_bulk(path)))


def _in_store(mirror: Mirror, path: Path) -> tuple[int, int]:
    size = mirror.size(path)
    return _ABSENT if size is None else (0, size)


def _written(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return _ABSENT  # deleted since it was listed: the reader will say so
    return status.st_mtime_ns, status.st_size


_LENGTH: Final = 16
"""Characters of a digest."""


@cache
def rules_digest() -> str:
    """Give a word that changes with the tools of a verdict and the version of the rows."""
    hangs_on = {**present_tools(), "rows": str(ROWS_VERSION)}
    return hashlib.sha256(json.dumps(hangs_on, sort_keys=True).encode()).hexdigest()[:_LENGTH]


Row: TypeAlias = dict[str, Any]
_GIB: Final = 1024**3
_FAST: Final = 1
"""Of zlib: the usual level takes twice as long and makes it smaller by a tenth."""


class MeasuredRows(NamedTuple):
    """What a side of a run gives to a series; ``values`` are trial and value, as measured."""

    metric: str
    statistic: str
    side: int
    median: float
    values: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class RecordRows:
    """Everything that is kept of one record; the names of columns are those of ``schema``.

    Attributes:
        record: Its path, its stamp from before it was read, and why it cannot be read.
        lines: Of the builds, baseline and contender; a run of one build has an empty baseline.
        verdicts: ``metric`` and ``statistic`` stand for the question.
        report: All of them and their causes, compressed; empty where there are none.
    """

    record: Row
    lines: tuple[str, str] = ("", "")
    run: Row | None = None
    sides: tuple[Row, ...] = ()
    measured: tuple[MeasuredRows, ...] = ()
    verdicts: tuple[Row, ...] = ()
    report: bytes = b""


def read_rows(name: str, listed: Listed) -> RecordRows:
    """Read a record and judge it; one that cannot be read is kept with the reason."""
    record = {"path": name, **asdict(listed.stamp), "judged": True, "broken": ""}
    try:
        run = read_run(listed.path)
    except RecordError as error:
        broken = printable(str(error).removeprefix(f"{listed.path}: "))
        return RecordRows(record | {"broken": broken})
    report, trouble = _judged(run)
    sides = [OneSide(run, index) for index in range(len(run.builds))]
    doubts = "\n".join(machine_doubts(run)) if report else ""
    return RecordRows(
        record,
        lines_in(run.builds),
        run_row(run) | {"trouble": trouble, "doubts": doubts},
        tuple(map(_of_side, sides)),
        tuple(measured for side in sides for measured in _measured(side)),
        tuple(
            {"place": place} | _verdict(comparison, report)
            for place, comparison in enumerate(report.comparisons)
        )
        if report
        else (),
        packed(report) if report else b"",
    )


def packed(report: Report) -> bytes:
    """Compress the JSON of a report as far as little time allows."""
    text = json.dumps(comparison_to_json(report), allow_nan=False)
    return zlib.compress(text.encode(), level=_FAST)


def unpacked(report: bytes) -> bytes:
    """Give the JSON of a report, in UTF-8."""
    return zlib.decompress(report)


def lines_in(builds: Sequence[Named]) -> tuple[str, str]:
    """Name the lines that a run compares; the baseline of a run of one build is empty."""
    return name_line(builds[0]) if len(builds) > 1 else "", name_line(builds[-1])


def run_row(run: Run) -> Row:
    """Say what a run is about, before it is judged."""
    scenario, source = run.scenario, run.source
    return {
        "run": run.id,
        "sides": len(run.builds),
        "scenario": scenario.id,
        "version": scenario.version,
        "digest": scenario.digest,
        "settings": json.dumps(dict(scenario.settings), sort_keys=True),
        "testbed": run.testbed.id,
        "machine": json.dumps(_machine(run.testbed), ensure_ascii=False),
        "started_at": run.started_at,
        "committed_at": source.committed_at if source else None,
        "role": name_role(*run.builds, known_bad=run.known_bad).value
        if len(run.builds) > 1
        else "",
        "revision": run.harness.revision or "unknown",
        "source": source.format if source else "",
        "sha256": run.sha256 or "",
        "trouble": "",
        "doubts": "",
    }


def _machine(testbed: Testbed) -> Mapping[str, str]:
    """Say in words what is known of a machine; what a tool that was ingested left out is not."""
    facts = {
        "kernel": testbed.kernel,
        "driver": testbed.driver or "",
        "CUDA version": testbed.cuda or "",
        "processor": testbed.cpu_model,
        "number of cores": str(testbed.cores or ""),
        "memory": f"{testbed.memory_bytes / _GIB:.0f} GiB" if testbed.memory_bytes else "",
        "GPUs": ", ".join(testbed.gpus),
        "power limit": ", ".join(f"{limit:g} W" for limit in testbed.gpu_power_limits_w),
    }
    return {name: value for name, value in facts.items() if value not in {"", "unknown"}}


def _judged(run: Run) -> tuple[Report | None, str]:
    try:
        return build_report(run), ""
    except HybridwatchError as error:
        return None, str(error)


def _of_side(side: OneSide) -> Row:
    build = side.build
    fixes = {name: state.value for name, state in sorted(build.fixes.items())}
    return {
        "side": side.index,
        "build": build.label,
        "line": name_line(build),
        "release": build.release,
        "accelerator": build.accelerator,
        "fixes": json.dumps(fixes, ensure_ascii=False),
        "failures": sum(1 for _ in side.run.failed(side.index)),
    }


def _measured(side: OneSide) -> Iterator[MeasuredRows]:
    for subject in list_subjects(side, side):
        values = tuple(reduce_side(side, subject).by_trial.items())
        if values:
            middle = median(value for _, value in values)
            yield MeasuredRows(subject.metric.id, subject.statistic, side.index, middle, values)


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
