"""Result files of asv, versions 1 (until asv 0.4, 2019) and 2 (``asv/results.py``).

One file holds what was measured of one commit, in one environment, on one machine. A benchmark has
a version of its own and becomes a run of its own; every sample becomes a trial, as asv itself
compares them. One named after a metric of ours becomes that metric, ``track_seconds_per_token`` the
inverse of ``output_throughput``; the others keep their names. What asv wrote of it, which a record
has no place for, is kept next to the record, for ``formats.write.asv``.

A result of version 1 was a number, or an object with ``result``, ``params``, ``stats`` and
``samples``. When it began and ended, and the benchmark's version, stood outside all results.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import DocumentNode, ForeignDocument, read_folder
from hybridwatch.formats.read.foreign import ForeignRun, build_trial, is_metric
from hybridwatch.metrics import Unit
from hybridwatch.records.identity import Testbed
from hybridwatch.records.run import UNKNOWN, Failure, Sample, Trial

_FIRST: Final = 1
_COLUMNS: Final = ("result", "params", "version", "started_at", "duration", "samples")
_NEWEST: Final = 2
_KIND: Final = re.compile(r"(timeraw|time|track|peakmem|mem)_|(Timeraw|Time|PeakMem|Mem)(?=[A-Z_])")
"""How asv knows by its name what a benchmark measures (``asv_runner.benchmarks``)."""
_OWN_UNITS: Final = {
    **dict.fromkeys(("timeraw", "time"), "seconds"),
    **dict.fromkeys(("peakmem", "mem"), "bytes"),
}
"""The unit of what asv measures itself; that of a ``track_`` its author states."""
INVERSES: Final[Mapping[str, str]] = {
    "output_throughput": "seconds_per_token",
    "total_token_throughput": "seconds_per_token_read_or_written",
    "request_throughput": "seconds_per_request",
    "request_goodput": "seconds_per_good_request",
    "slo_request_rate": "seconds_between_requests_in_slo",
    "acceptance_length": "steps_per_token",
    "engine_step_rate": "seconds_per_step",
    "batch_occupancy": "steps_per_request",
}
"""What one over a metric is called, for tools that know only that lower is better."""
_INVERSE: Final = {
    INVERSES[metric]: metric for metric in ("output_throughput", "request_throughput")
}
_SECONDS: Final = {
    "sec second seconds": 1.0,
    "ms msec millisecond milliseconds": 1e-3,
    # The sign for micro and the Greek letter are two characters.
    "us \u00b5s \u03bcs usec microsecond microseconds": 1e-6,
    "ns nsec nanosecond nanoseconds": 1e-9,
    "min minute minutes": 60.0,
    "h hour hours": 3600.0,
}
_UNITS: Final[Mapping[str, tuple[Unit, float]]] = {
    **{unit.value: (unit, 1.0) for unit in Unit},
    **{name: (Unit.SECONDS, one) for names, one in _SECONDS.items() for name in names.split()},
    **dict.fromkeys(("B", "byte"), (Unit.BYTES, 1.0)),
    **{f"{k}B": (Unit.BYTES, 1000.0**power) for power, k in enumerate("kMGT", 1)},
    "KB": (Unit.BYTES, 1000.0),
    **{f"{k}iB": (Unit.BYTES, 1024.0**power) for power, k in enumerate("KMGT", 1)},
    **dict.fromkeys(("share", "ratio", "fraction"), (Unit.RATIO, 1.0)),
    **dict.fromkeys(("%", "percent"), (Unit.RATIO, 0.01)),
}
"""What an author calls a unit, with the unit of ours and how much of it that is."""
_FAMILIES: Final = {Unit.SECONDS: "asv_time", Unit.BYTES: "asv_memory", Unit.RATIO: "asv_ratio"}
_FACTS: Final = frozenset({"machine", "os", "arch", "cpu", "num_cpu", "ram", "version"})
_COMMENT: Final = re.compile(
    r"""("(?:\\.|[^"\\])*(?:"|\Z)|'(?:\\.|[^'\\])*(?:'|\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)""", re.DOTALL
)
"""In JSON with comments: a comment, or a text, in which no comment begins."""
_RESULTS_DIR: Final = re.compile(r"""\bresults_dir["']?\s*:\s*(["'])([^"'\n]*)\1""")
_PARTS: Final = 1000
"""Of a second: asv counts time since 1970 in milliseconds."""
_LABEL: Final = 128
"""asv's own limit of an environment's name in a file name."""
_SMALLEST: Final = 2**28
"""Bytes of memory. A smaller number was typed by hand: the 32 of 32 GB."""


def _is_first(root: DocumentNode) -> bool:
    keys = ("commit_hash", "date", "params", "python", "results")
    return root.value.get("version") == _FIRST and root.has(*keys)


def _upgraded(root: DocumentNode) -> DocumentNode:
    rows = {name: _row(root, name, result) for name, result in root.at("results").items()}
    return DocumentNode(
        root.value
        | {
            "version": 2,
            "env_name": root.value.get("env_name") or _environment(root),
            "result_columns": list(_COLUMNS),
            "results": rows,
        }
    )


def _row(root: DocumentNode, name: str, result: DocumentNode) -> list[Any]:
    cell_table = result.value if isinstance(result.value, dict) else {"result": result.value}
    if "result" not in cell_table:
        raise result.wrong("a result")
    cells = cell_table["result"]
    began = _beside(root, "started_at", name)
    return [
        _listed(cells),
        cell_table.get("params") or [],
        _beside(root, "benchmark_version", name),
        began,
        _seconds(root, name, began),
        cell_table.get("samples"),
    ]


def _seconds(root: DocumentNode, name: str, began: Any) -> Any:
    ended = _beside(root, "ended_at", name)
    if ended is None or began is None:
        return _beside(root, "duration", name)
    times = (DocumentNode(ended, f"ended_at.{name}"), DocumentNode(began, f"started_at.{name}"))
    return (times[0].number() - times[1].number()) / _PARTS


def _beside(root: DocumentNode, key: str, name: str) -> Any:
    return root.at(key).value.get(name) if key in root else None


def _environment(root: DocumentNode) -> str:
    """Name the environment as asv named its files then."""
    needed = root.value.get("requirements") or {}
    parts = [f"{name}{version or ''}" for name, version in sorted(needed.items())]
    return "-".join([f"py{root.at('python').text()}", *parts]) if parts else UNKNOWN


@dataclass(frozen=True, slots=True)
class _Row:
    """One benchmark in a result file, such as ``suite.Class.track_ttft``.

    ``columns`` is all that the file says. ``version`` is normally a hash of the benchmark's code.
    ``cells`` has parameters in asv's writing and the samples under them, or why there are none; a
    skipped one is left out. ``intervals`` are 99 %, of the medians under them.
    """

    name: str
    columns: Mapping[str, Any]
    started_at: datetime | None
    seconds: float
    version: str
    cells: Mapping[str, tuple[float, ...] | str]
    intervals: Mapping[str, tuple[float, float]]


def is_configuration(path: Path) -> bool:
    """Whether this is the configuration of a project, by its name."""
    return path.name in {"asv.conf.json", "asv.conf.jsonc"}


def find_results(configuration: Path) -> Path:
    """Name the folder of results: the configuration's ``results_dir``, as seen from the file."""
    text = configuration.read_text(encoding="utf-8", errors="replace")
    found = _RESULTS_DIR.search(_COMMENT.sub(lambda match: match[1] or "", text))
    return configuration.parent / (found[2] if found else "results")


def is_results(document: ForeignDocument) -> bool:
    """Whether this is a result file."""
    root = document.root
    if not isinstance(root.value, dict):
        return False
    return root.has("commit_hash", "env_name", "result_columns", "results") or _is_first(root)


def is_machine(document: ForeignDocument) -> bool:
    """Whether this is the ``machine.json`` next to result files."""
    root = document.root.value
    return isinstance(root, dict) and {"machine", "version"} <= root.keys() <= _FACTS


def is_benchmarks(document: ForeignDocument) -> bool:
    """Whether this is the ``benchmarks.json`` above result files."""
    root = document.root.value
    return isinstance(root, dict) and any(
        isinstance(value, dict) and {"param_names", "type", "unit"} <= value.keys()
        for value in root.values()
    )


def read_results(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read a result file; without ``machine.json`` it says less."""
    folder = document.path.parent
    machine = next(filter(is_machine, read_folder(folder)), None)
    benchmarks = next(filter(is_benchmarks, read_folder(folder.parent)), None)
    # NaN is asv's word for skipped, null for failed: the document has null for both.
    root = DocumentNode(json.loads(document.raw.decode("utf-8-sig")))
    if _is_first(root):
        root = _upgraded(root)
    if root.at("version").value != _NEWEST:
        raise root.at("version").wrong(f"version {_FIRST} or {_NEWEST}")
    described = {} if benchmarks is None else benchmarks.root.value
    head = {key: value for key, value in root.value.items() if key != "results"}
    beside = {"file": head, "machine": None if machine is None else machine.root.value}
    testbed = _testbed(root, machine)
    for row in _rows(root):
        benchmark = described.get(row.name)
        run = _foreign_run(root, row, _find_unit(row.name, benchmark), testbed)
        written = {**beside, "name": row.name, "row": row.columns, "benchmark": benchmark}
        # As text, since no record knows NaN and infinity.
        first = replace(run.trials[0], client_result={"asv": json.dumps(written)})
        yield replace(run, trials=[first, *run.trials[1:]])


def _find_unit(name: str, benchmark: Any) -> str:
    """Give what ``benchmarks.json`` says; it lacks the benchmarks that are gone by now."""
    if isinstance(benchmark, dict):
        return str(benchmark.get("unit", UNKNOWN))
    kind = _KIND.match(name.rpartition(".")[2])
    return _OWN_UNITS.get((kind[1] or kind[2]).lower(), UNKNOWN) if kind else UNKNOWN


def _foreign_run(root: DocumentNode, row: _Row, unit: str, testbed: Testbed) -> ForeignRun:
    committed = root.at("date").moment(_PARTS)
    started = row.started_at or committed
    commit = root.at("commit_hash").text()
    return ForeignRun(
        tool="asv",
        scenario=f"asv/{row.name}",
        workload={row.name: row.version},
        started_at=started,
        finished_at=started + timedelta(seconds=row.seconds) if row.started_at else started,
        trials=_trials(row, unit, started),
        build=root.at("env_name").text()[:_LABEL],
        release=commit,
        testbed=testbed,
        unknown=("harness.version", *(() if row.started_at else ("started_at", "finished_at"))),
        commit=commit,
        committed_at=committed,
    )


def _trials(row: _Row, unit: str, started: datetime) -> list[Trial]:
    """Trial n holds the n-th sample under all parameters; what failed is a trial that failed."""
    samples: defaultdict[int, list[Sample]] = defaultdict(list)
    failures: list[Failure] = []
    for label, values in row.cells.items():
        if isinstance(values, str):
            failures.append(Failure(f"{row.name}{label} {values}", ""))
            continue
        metric, factor, invert = _translate_metric(row.name, label, unit)
        for place, value in enumerate(values):
            if invert and value == 0:
                raise IngestError(f"results.{row.name}: expected a time above 0, found 0")
            # An interval is of the median alone: samples say more.
            limits = row.intervals.get(label, ()) if len(values) == 1 else ()
            one = _sample(metric, value * factor, [end * factor for end in limits], invert=invert)
            samples[place].append(one)
    found: list[Sequence[Sample] | Failure] = [samples[place] for place in sorted(samples)]
    found += failures
    # Where everything was skipped, one trial without a value says that it was.
    return [build_trial(started, 0.0, one) for one in found or [()]]


def _sample(metric: str, value: float, limits: Sequence[float], *, invert: bool) -> Sample:
    if not invert:
        return Sample(metric, (value,), interval=(limits[0], limits[1]) if limits else None)
    turned = (1 / limits[1], 1 / limits[0]) if limits and min(limits) > 0 else None
    return Sample(metric, (1 / value,), interval=turned)


def _translate_metric(name: str, label: str, text: str) -> tuple[str, float, bool]:
    """Name the metric of a benchmark; what one of its unit is in ours; whether to invert that."""
    own = name.rpartition(".")[2]
    kind = _KIND.match(own)
    word = own[kind.end() :] if kind else own
    unit, factor = _UNITS.get(text, (None, 1.0))
    if not label and word in _INVERSE and unit is Unit.SECONDS:
        return _INVERSE[word], factor, True
    if not label and unit is not None and is_metric(word, unit.value):
        return word, factor, False
    family = "asv_number" if unit is None else _FAMILIES.get(unit, "asv_number")
    return f"{family}.{own}{label}", factor, False


def _rows(root: DocumentNode) -> Iterator[_Row]:
    columns = [column.text() for column in root.at("result_columns").each()]
    for name, node in root.at("results").items():
        row = dict(zip(columns, node.each(), strict=False))  # asv leaves out trailing nulls
        if "result" not in row or "params" not in row:
            raise node.wrong("result and params")
        given = {column: cell for column, cell in row.items() if cell.value is not None}
        yield _Row(
            name=name,
            columns={column: cell.value for column, cell in row.items()},
            started_at=given["started_at"].moment(_PARTS) if "started_at" in given else None,
            seconds=given["duration"].number() if "duration" in given else 0.0,
            version=given["version"].text() if "version" in given else UNKNOWN,
            cells=dict(_cells(row)),
            intervals=dict(_intervals(row)),
        )


def _cells(row: Mapping[str, DocumentNode]) -> Iterator[tuple[str, tuple[float, ...] | str]]:
    labels = _labels(row)
    cells = row["result"].value
    nothing: list[Any] = [None] * len(labels)
    results = nothing if cells is None or cells == [] else _listed(cells)
    samples = (row["samples"].value if "samples" in row else None) or nothing
    if not len(labels) == len(results) == len(samples):
        found = f"{len(results)} and {len(samples)}"
        raise row["result"].wrong(f"{len(labels)} results and samples, one per parameter ({found})")
    for label, result, several in zip(labels, results, samples, strict=True):
        where = row["result"].path
        if several is not None:
            yield label, DocumentNode(several, where).numbers()
        elif result is None:
            yield label, "failed"
        elif isinstance(result, float) and math.isinf(result):
            yield label, "gave an infinite number, which no record holds"
        elif not (isinstance(result, float) and math.isnan(result)):
            yield label, (DocumentNode(result, where).number(),)


def _labels(row: Mapping[str, DocumentNode]) -> list[str]:
    params = [[cell.text() for cell in axis.each()] for axis in row["params"].each()]
    return [f"({', '.join(cells)})" if cells else "" for cells in product(*params)]


def _intervals(row: Mapping[str, DocumentNode]) -> Iterator[tuple[str, tuple[float, float]]]:
    ends = [row.get(name) for name in ("stats_ci_99_a", "stats_ci_99_b")]
    lists = [list(end.each()) for end in ends if end is not None and end.value is not None]
    if len(lists) < len(ends):
        return
    for label, low, high in zip(_labels(row), *lists, strict=False):
        if not (_is_finite(low.value) and _is_finite(high.value)):
            continue  # asv knows no interval of so few samples
        if low.number() > high.number():
            raise high.wrong(f"at least {low.number():g}")
        yield label, (low.number(), high.number())


def _is_finite(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _testbed(root: DocumentNode, machine: ForeignDocument | None) -> Testbed:
    facts: dict[str, Any] = {**root.at("params").value}
    facts |= machine.root.value if machine is not None else {}
    memory = _whole(facts.get("ram"))
    return Testbed(
        id=str(facts.get("machine") or UNKNOWN),
        cpu_model=str(facts.get("cpu") or UNKNOWN),
        cores=_whole(facts.get("num_cpu")),
        memory_bytes=memory if memory >= _SMALLEST else 0,
        kernel=str(facts.get("os") or UNKNOWN),
    )


def _whole(text: object) -> int:
    # A person may have typed "4GB" where asv itself writes bytes.
    return int(str(text)) if str(text).isdecimal() else 0
