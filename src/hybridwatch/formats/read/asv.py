"""Result files of asv, versions 1 (until asv 0.4, 2019) and 2 (``asv/results.py``).

One file holds what was measured of one commit, in one environment, on one machine. Benchmarks of
one class ask one question and become one run; every sample becomes a trial, as asv itself compares
them. A benchmark named after a metric of ours becomes that metric, ``track_seconds_per_token`` the
inverse of ``output_throughput``; the others keep their names.

A result of version 1 was a number, or an object with ``result``, ``params``, ``stats`` and
``samples``. When it began and ended, and the benchmark's version, stood outside all results.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.foreign import DocumentNode, ForeignDocument, ForeignRun
from hybridwatch.metrics import INVERSES, Unit, find_metric
from hybridwatch.records.identity import Testbed
from hybridwatch.records.run import UNKNOWN, Failure, Phase, Sample, Trial

_FIRST: Final = 1
_COLUMNS: Final = ("result", "params", "version", "started_at", "duration", "samples")
_NEWEST: Final = 2
_KINDS: Final = ("timeraw_", "time_", "track_", "peakmem_", "mem_")
_INVERSE: Final = {
    INVERSES[metric]: metric for metric in ("output_throughput", "request_throughput")
}
_UNITS: Final = {
    "seconds": Unit.SECONDS,
    "share": Unit.RATIO,
    **{unit.value: unit for unit in Unit},
}
_FAMILIES: Final = {"seconds": "asv_time", "s": "asv_time", "bytes": "asv_memory"}
_FACTS: Final = frozenset({"machine", "os", "arch", "cpu", "num_cpu", "ram", "version"})
_PARTS: Final = 1000
"""Of a second: asv counts time since 1970 in milliseconds."""
_LABEL: Final = 128
"""asv's own limit of an environment's name in a file name."""


def _is_first(root: DocumentNode) -> bool:
    """Whether this is a result file of version 1."""
    return root.value.get("version") == _FIRST and all(
        key in root for key in ("commit_hash", "date", "params", "python", "results")
    )


def _upgraded(root: DocumentNode) -> DocumentNode:
    """Put a file into the words of version 2."""
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
    """One benchmark in a result file.

    Attributes:
        name: Such as ``suite.Class.track_ttft``.
        started_at: When, ``None`` where the file does not say.
        version: asv's word for what was run: normally a hash of the benchmark's code.
        cells: Parameters in asv's writing, and the samples under them; ``None`` where it failed.
        intervals: Of the medians under them, 99 %, where asv wrote one.
    """

    name: str
    started_at: datetime | None
    seconds: float
    version: str
    cells: Mapping[str, tuple[float, ...] | None]
    intervals: Mapping[str, tuple[float, float]]


def is_results(document: ForeignDocument) -> bool:
    """Whether this is a result file."""
    root = document.root
    if not isinstance(root.value, dict):
        return False
    keys = ("commit_hash", "env_name", "result_columns", "results")
    return all(key in root for key in keys) or _is_first(root)


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


def read_results(
    document: ForeignDocument,
    machine: ForeignDocument | None,
    benchmarks: ForeignDocument | None,
) -> Iterator[ForeignRun]:
    """Read a result file.

    ``machine`` is the ``machine.json`` in its folder; without it the file itself says less.
    ``benchmarks`` is the ``benchmarks.json`` above, which has the units.
    """
    root = document.root
    if _is_first(root):
        root = _upgraded(root)
    if root.at("version").value != _NEWEST:
        raise root.at("version").wrong(f"version {_FIRST} or {_NEWEST}")
    units = {} if benchmarks is None else _units(benchmarks)
    classes: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in _rows(root):
        classes[row.name.rpartition(".")[0] or row.name].append(row)
    for name, rows in classes.items():
        yield _foreign_run(root, name, rows, units, _testbed(root, machine))


def _foreign_run(
    root: DocumentNode, name: str, rows: list[_Row], units: Mapping[str, str], testbed: Testbed
) -> ForeignRun:
    committed = root.at("date").moment(_PARTS)
    started = min((row.started_at for row in rows if row.started_at), default=committed)
    ended = [row.started_at + timedelta(seconds=row.seconds) for row in rows if row.started_at]
    commit = root.at("commit_hash").text()
    return ForeignRun(
        tool="asv",
        scenario=f"asv/{name}",
        workload={row.name: row.version for row in rows},
        started_at=started,
        finished_at=max(ended, default=started),
        trials=_trials(rows, units, started),
        build=root.at("env_name").text()[:_LABEL],
        release=commit,
        testbed=testbed,
        unknown=("harness.version", *(() if ended else ("started_at", "finished_at"))),
        commit=commit,
        committed_at=committed,
    )


def _trials(rows: list[_Row], units: Mapping[str, str], started: datetime) -> list[Trial]:
    """Trial n holds the n-th sample of every benchmark; what failed is a trial that failed."""
    samples: defaultdict[int, list[Sample]] = defaultdict(list)
    failures: list[Failure] = []
    for row in rows:
        for label, values in row.cells.items():
            if values is None:
                failures.append(Failure(f"{row.name}{label} failed", ""))
                continue
            metric, invert = _translate_metric(row.name, label, units.get(row.name, UNKNOWN))
            for place, value in enumerate(values):
                if invert and value == 0:
                    raise IngestError(f"results.{row.name}: expected a time above 0, found 0")
                # An interval is of the median alone: samples say more.
                limits = row.intervals.get(label) if len(values) == 1 else None
                samples[place].append(_sample(metric, value, limits, invert=invert))
    good = [
        Trial(0, 0, Phase.PERFORMANCE, started, 0.0, samples=tuple(samples[place]))
        for place in sorted(samples)
    ]
    bad = [Trial(0, 0, Phase.PERFORMANCE, started, 0.0, failure=failure) for failure in failures]
    return [*good, *bad]


def _sample(
    metric: str, value: float, limits: tuple[float, float] | None, *, invert: bool
) -> Sample:
    if not invert:
        return Sample(metric, (value,), interval=limits)
    turned = (1 / limits[1], 1 / limits[0]) if limits and min(limits) > 0 else None
    return Sample(metric, (1 / value,), interval=turned)


def _translate_metric(name: str, label: str, unit: str) -> tuple[str, bool]:
    """Name the metric of a benchmark, and say whether its values are to be inverted."""
    own = name.rpartition(".")[2]
    word = next((own.removeprefix(kind) for kind in _KINDS if own.startswith(kind)), own)
    if not label and word in _INVERSE and unit in {"s", "seconds"}:
        return _INVERSE[word], True
    if not label and _is_ours(word, unit):
        return word, False
    return f"{_FAMILIES.get(unit, 'asv_number')}.{own}{label}", False


def _is_ours(word: str, unit: str) -> bool:
    try:
        return find_metric(word).unit is _UNITS.get(unit)
    except KeyError:
        return False


def _rows(root: DocumentNode) -> Iterator[_Row]:
    columns = [column.text() for column in root.at("result_columns").each()]
    for name, node in root.at("results").items():
        row = dict(zip(columns, node.each(), strict=False))  # asv leaves out trailing nulls
        if "result" not in row or "params" not in row:
            raise node.wrong("result and params")
        told = {column: cell for column, cell in row.items() if cell.value is not None}
        yield _Row(
            name=name,
            started_at=told["started_at"].moment(_PARTS) if "started_at" in told else None,
            seconds=told["duration"].number() if "duration" in told else 0.0,
            version=told["version"].text() if "version" in told else UNKNOWN,
            cells=dict(_cells(row)),
            intervals=dict(_intervals(row)),
        )


def _cells(row: Mapping[str, DocumentNode]) -> Iterator[tuple[str, tuple[float, ...] | None]]:
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
        else:
            # NaN is asv's word for skipped, null for failed; both are null here, and neither
            # measured anything.
            yield label, None if result is None else (DocumentNode(result, where).number(),)


def _labels(row: Mapping[str, DocumentNode]) -> list[str]:
    params = [[cell.text() for cell in axis.each()] for axis in row["params"].each()]
    return [f"({', '.join(cells)})" if cells else "" for cells in product(*params)]


def _intervals(row: Mapping[str, DocumentNode]) -> Iterator[tuple[str, tuple[float, float]]]:
    ends = [row.get(name) for name in ("stats_ci_99_a", "stats_ci_99_b")]
    lists = [list(end.each()) for end in ends if end is not None and end.value is not None]
    if len(lists) < len(ends):
        return
    for label, low, high in zip(_labels(row), *lists, strict=False):
        if low.value is None or high.value is None:
            continue  # infinite: asv knows no interval of so few samples
        if low.number() > high.number():
            raise high.wrong(f"at least {low.number():g}")
        yield label, (low.number(), high.number())


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _units(benchmarks: ForeignDocument) -> dict[str, str]:
    return {
        name: str(node.value.get("unit", UNKNOWN))
        for name, node in benchmarks.root.items()
        if isinstance(node.value, dict)
    }


def _testbed(root: DocumentNode, machine: ForeignDocument | None) -> Testbed:
    facts: dict[str, Any] = {**root.at("params").value}
    facts |= machine.root.value if machine is not None else {}
    return Testbed(
        id=str(facts.get("machine") or UNKNOWN),
        cpu_model=str(facts.get("cpu") or UNKNOWN),
        cores=_whole(facts.get("num_cpu")),
        memory_bytes=_whole(facts.get("ram")),
        kernel=str(facts.get("os") or UNKNOWN),
    )


def _whole(text: object) -> int:
    # A person may have typed "4GB" where asv itself writes bytes.
    return int(str(text)) if str(text).isdigit() else 0
