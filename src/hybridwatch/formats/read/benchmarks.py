"""Files of benchmarks that are names with values.

=======================  ==================================================  =====================
pytest-benchmark         5.3.1, ``plugin.py`` and ``stats.py``: seconds      rounds, or the median
google-benchmark         ``src/json_reporter.cc`` at 00e988c: ``real_time``  a trial a repetition
github-action-benchmark  what its tools ``custom...IsBetter`` take           one value
Bencher                  its Metric Format (BMF): Bencher's own measures     one value
=======================  ==================================================  =====================

A value named after a metric of ours, in its unit, becomes that metric. Others keep their names, in
a family by unit and direction. A value of which nothing says which way is better is left out: its
run names the unit, or Bencher's measure, in ``unknown``.

Benchmarks are distinguished by name: one more of them leaves the series of the others alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import DocumentNode, ForeignDocument
from hybridwatch.formats.read.foreign import ForeignRun, bare_testbed, build_trial, is_metric, short
from hybridwatch.metrics import Direction
from hybridwatch.records.run import UNKNOWN, Failure, Sample

_UNITS: Final = {
    **dict.fromkeys(("s", "sec", "seconds"), ("s", 1.0)),
    "ms": ("s", 1e3),
    # The sign for micro and the Greek letter are two characters.
    **dict.fromkeys(("us", "\u00b5s", "\u03bcs"), ("s", 1e6)),
    "ns": ("s", 1e9),
    **dict.fromkeys(("B", "bytes"), ("bytes", 1.0)),
}
"""The unit of ours, and its parts of that size."""
_FAMILIES: Final = {"s": "asv_time", "bytes": "asv_memory"}
_OWN: Final = {"latency": "ns", "throughput": "ops/s", "build-time": "s", "file-size": "bytes"}
"""Bencher's own (``lib/bencher_adapter``); units and directions of others stand on its server."""
_MUTED: Final = "-bencher-ignore"
_DATE: Final = "2026-11-21T09:15:00+00:00"


@dataclass(frozen=True, slots=True)
class NamedValues:
    """What one benchmark measured in one trial, in the file's unit; empty where it has none.

    ``kind`` is what ``unknown`` names where no direction (``better``) is known.
    """

    name: str
    values: tuple[float, ...]
    unit: str
    better: Direction | None = None
    kind: str = ""
    statistic: str | None = None

    def translate(self) -> Sample | None:
        """Give the sample; ``None`` where nothing says which way is better."""
        unit, parts = _UNITS.get(self.unit, (self.unit, 1.0))
        is_rate = unit.endswith(("/s", "/sec"))
        better = Direction.HIGHER if self.better is None and is_rate else self.better
        if is_metric(self.name, unit):
            metric = self.name
        elif unit in _FAMILIES and better is not Direction.HIGHER:
            metric = f"{_FAMILIES[unit]}.{self.name}"
        elif better is None:
            return None
        else:
            family = "benchmark_score" if better is Direction.HIGHER else "asv_number"
            metric = f"{family}.{self.name}"
        return Sample(metric, tuple(value / parts for value in self.values), self.statistic)


def _build(
    tool: str,
    suite: str,
    found: Iterable[Iterable[NamedValues] | Failure],
    at: datetime,
    unknown: Iterable[str],
    **facts: Any,
) -> ForeignRun:
    trials, lacks = [], dict[str, None]()
    for one in found:
        if isinstance(one, Failure):
            trials.append(build_trial(at, 0.0, one))
            continue
        pairs = [(each.kind, each.translate()) for each in one]
        lacks |= {f"direction of {kind}": None for kind, sample in pairs if sample is None}
        samples = {sample.metric: sample for _, sample in pairs if sample is not None}
        if len(samples) < sum(sample is not None for _, sample in pairs):
            raise IngestError("expected every benchmark once, found one of a name twice")
        if samples:
            trials.append(build_trial(at, 0.0, samples.values()))
    if not trials:
        wanted = "a benchmark that says which way is better, by a unit such as ns or ops/s"
        raise IngestError(f"expected {wanted}, found {', '.join(lacks) or 'no benchmark'}")
    scenario = f"{tool.partition(' ')[0]}/{suite}".rstrip("/")
    return ForeignRun(
        tool=tool,
        scenario=scenario,
        workload={"suite": scenario},
        started_at=at,
        finished_at=at,
        trials=trials,
        unknown=(*unknown, *lacks),
        **facts,
    )


def is_pytest(document: ForeignDocument) -> bool:
    """Whether pytest-benchmark wrote this."""
    return document.root.has("machine_info", "benchmarks", "datetime")


def read_pytest(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read the benchmarks of each file of tests; the rounds of one are values of one trial."""
    root = document.root
    suites: defaultdict[str, list[NamedValues]] = defaultdict(list)
    for one in root.at("benchmarks").each():
        suite, _, name = one.at("fullname").text().partition("::")
        data = one.at("stats", "data").amounts() if "data" in one.at("stats") else ()
        values = data or (one.at("stats", "median").amount(),)
        statistic = None if data else "median"
        suites[suite].append(NamedValues(name or suite, values, "s", statistic=statistic))
    if not suites:
        raise root.at("benchmarks").wrong("at least one benchmark")
    tool, at = f"pytest-benchmark {root.value.get('version')}", root.at("datetime").date(_DATE)
    facts = _machine(root.at("machine_info").value) | _commit(root)
    for suite, found in suites.items():
        yield _build(tool, suite, [found], at, ["started_at"], **facts)


def _machine(info: Mapping[str, Any]) -> dict[str, Any]:
    cpu = info.get("cpu") or {}
    testbed = replace(
        bare_testbed(str(info.get("node") or UNKNOWN)),
        cpu_model=str(cpu.get("brand_raw") or UNKNOWN),
        cores=DocumentNode(cpu.get("count") or 0, "machine_info.cpu.count").count(),
        kernel=str(info.get("release") or UNKNOWN),
    )
    python = [info.get(f"python_{key}") for key in ("implementation", "version")]
    return {"testbed": testbed, "build": "-".join(map(str, python)) if all(python) else None}


def _commit(root: DocumentNode) -> dict[str, Any]:
    """Name the commit that was measured, unless files were changed since."""
    info = root.at("commit_info") if "commit_info" in root else DocumentNode({})
    if info.value.get("dirty") or "time" not in info:
        return {}
    commit, made = info.at("id").text(), info.at("time").date(_DATE)
    return {"commit": commit, "release": commit, "committed_at": made}


def is_google(document: ForeignDocument) -> bool:
    """Whether google-benchmark wrote this."""
    root = document.root
    return "benchmarks" in root and "host_name" in DocumentNode(root.value.get("context"))


def read_google(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read the repetitions; where only what they were reduced to is there, its median."""
    context = document.root.at("context")
    testbed = replace(
        bare_testbed(context.at("host_name").text()),
        cores=context.at("num_cpus").count() if "num_cpus" in context else 0,
    )
    version = context.value.get("library_version")
    yield _build(
        f"google-benchmark {version or ''}".rstrip(),
        short(str(context.value.get("executable") or "")),
        _repetitions(list(document.root.at("benchmarks").each())),
        context.at("date").date(_DATE),
        ["finished_at", *(() if version else ("harness.version",))],
        testbed=testbed,
    )


def _repetitions(rows: list[DocumentNode]) -> list[list[NamedValues] | Failure]:
    whole = {_name(row) for row in rows if row.value.get("run_type") != "aggregate"}
    seen: Counter[str] = Counter()
    trials: defaultdict[int, list[NamedValues]] = defaultdict(list)
    failures: list[Failure] = []
    for row in rows:
        name, statistic = _name(row), row.value.get("aggregate_name")
        if statistic is not None and (name in whole or statistic != "median"):
            continue
        if row.value.get("error_occurred"):
            failures.append(Failure(f"{name}: {row.value.get('error_message')}", ""))
            continue
        value, unit = row.at("real_time").amount(), row.at("time_unit").text()
        trials[seen[name]].append(NamedValues(name, (value,), unit, statistic=statistic))
        seen[name] += 1
    return [*trials.values(), *failures]


def _name(row: DocumentNode) -> str:
    return row.at("run_name" if "run_name" in row else "name").text()


def is_github_action(document: ForeignDocument) -> bool:
    """Whether this is what github-action-benchmark takes."""
    is_list = isinstance(document.root.value, list)
    return is_list and document.first.has("name", "unit", "value")


def read_github_action(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read the list; a file called smaller or bigger-is-better says which way that is."""
    named = document.path.name.lower()
    ways = {"smaller": Direction.LOWER, "bigger": Direction.HIGHER}
    better = next((way for word, way in ways.items() if word in named), None)
    found = []
    for row in document.rows:
        unit, values = row.at("unit").text(), (row.at("value").number(),)
        found.append(NamedValues(row.at("name").text(), values, unit, better, f"unit {unit}"))
    yield _untimed(document, "github-action-benchmark", found)


def is_bencher(document: ForeignDocument) -> bool:
    """Whether this is Bencher's Metric Format."""
    root = document.root.value
    tables = list(root.values()) if isinstance(root, dict) else []
    measures = [m for one in tables for m in (one.values() if isinstance(one, dict) else [one])]
    return bool(measures) and all(
        isinstance(one, dict) and {"value"} <= one.keys() <= {"value", "lower_value", "upper_value"}
        for one in measures
    )


def read_bencher(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read the measures that are Bencher's own."""
    found = []
    for benchmark, table in document.root.items():
        for measure, node in table.items():
            name, values = benchmark.removesuffix(_MUTED), (node.at("value").number(),)
            unit, kind = _OWN.get(measure, ""), f"measure {measure}"
            found.append(NamedValues(f"{name} {measure}", values, unit, kind=kind))
    yield _untimed(document, "bencher", found)


def _untimed(document: ForeignDocument, tool: str, found: Iterable[NamedValues]) -> ForeignRun:
    unknown = ("harness.version", "started_at", "finished_at", "scenario.digest")
    return _build(tool, "", [found], document.written_at, unknown)
