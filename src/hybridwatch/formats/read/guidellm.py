"""JSON reports of guidellm, ``benchmarks.json``, from 0.2 on.

A report holds a benchmark for each load it tried; each becomes a run. guidellm's words are others
than vLLM's: its ``inter_token_latency_ms`` of a request is vLLM's ``tpot`` (the first token left
out), and its ``time_per_output_token_ms``, which takes the first token in, has no word of ours.

Each form of the report keeps the workload elsewhere:

==========  ==========================================================================
0.7 on      ``config.spec``, one for all benchmarks, and ``config`` of each
0.4 to 0.6  ``args``, one for all, and ``config`` of each benchmark
0.2, 0.3    ``args``, ``worker`` and ``request_loader`` of each benchmark
==========  ==========================================================================
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import DocumentNode, ForeignDocument
from hybridwatch.formats.read.foreign import ForeignRun, build_trial, short
from hybridwatch.records.run import UNKNOWN, Failure, Sample, Trial

_NEWEST_FORM: Final = 2
"""``metadata.version`` from 0.7 on."""
_STRATEGY: Final = ("type_", "streams", "rate")
_STREAMS: Final = ("concurrent", "synchronous")
"""Strategies whose ``max_concurrency`` is their number of streams once more."""
_USUAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "strategy": {"rampup_duration": 0.0, "max_concurrency": None, "time_scale": 1.0},
    "backend": {"stream": True, "max_tokens": None, "extras": None},
    "requests": {"samples": -1, "shuffle": False},
    "warmup": {"value": None, "percent": None},
    "cooldown": {"value": None, "percent": None},
}
"""Parts of a benchmark's ``config`` from 0.7 on that belong to the load where they are not so."""
_TOKENS: Final = {
    "output_throughput": "output_token_count",
    "total_token_throughput": "total_token_count",
}
"""Metric and what is counted for it; before 0.4 there was no count of all."""
_SERIES: Final = {
    "ttft": ("time_to_first_token_ms", 1000.0),
    "tpot": ("inter_token_latency_ms", 1000.0),
    "e2el": ("request_latency", 1.0),
}
"""Metric, guidellm's name for it, and parts of a second."""
_SLACK: Final = 0.01
_SLACK_S: Final = 0.1
"""How much longer than the work the time called measured may be."""


def _is_old(root: DocumentNode) -> bool:
    """Whether this is a report of a guidellm that did not write its version yet."""
    listed = root.value["benchmarks"]
    first = DocumentNode(listed[0] if isinstance(listed, list) and listed else None)
    return _is_first(first) or ("metrics" in first and ("config" in first or "worker" in first))


def _is_first(benchmark: DocumentNode) -> bool:
    """Whether this is a benchmark as guidellm 0.1 writes it."""
    return benchmark.has("mode", "results", "concurrencies")


def _read_version(root: DocumentNode) -> str:
    if "metadata" in root:
        return root.at("metadata", "guidellm_version").text()
    return "0.4" if "args" in root else "0.2 or 0.3"


def _read_load(root: DocumentNode, benchmark: DocumentNode) -> dict[str, Any]:
    """Give the workload that an engine had; an error about its form names the report's version."""
    form = root.at("metadata").value.get("version") if "metadata" in root else None
    if "config" in root or form == _NEWEST_FORM:
        return _since_0_7(root, benchmark)
    if "args" in root and "config" in benchmark:
        return _since_0_4(root, benchmark)
    if "worker" in benchmark and "request_loader" in benchmark:
        return _since_0_2(benchmark)
    if _is_first(benchmark):
        raise IngestError(
            "benchmarks: this report is of guidellm 0.1 and has neither totals nor a measured "
            "time: expected one of 0.2 or later"
        )
    raise benchmark.wrong(
        f"the requested load, as guidellm 0.2 to 0.8 write it, in {_read_version(root)}"
    )


def _since_0_7(root: DocumentNode, benchmark: DocumentNode) -> dict[str, Any]:
    spec, config = root.at("config", "spec"), benchmark.at("config")
    strategy, backend = config.at("strategy").value, spec.at("backend").value
    # Where no model was given, only the benchmark has the one that the server named.
    used = (config.value.get("backend") or {}).get("model")
    unusual = {part: _unusual(config, part) for part in _USUAL}
    known = {key: strategy.get(key) for key in _STRATEGY}
    return {
        **{part: values for part, values in unusual.items() if values},
        "model": short(str(used or backend.get("model") or UNKNOWN)),
        "endpoint": backend.get("request_format"),
        "strategy": {**known, **unusual["strategy"]},
        "constraints": spec.value.get("constraints"),
        "data": [_without_folder(item.value) for item in spec.at("data").each()],
        "seed": spec.value.get("seed"),
    }


def _unusual(config: DocumentNode, part: str) -> dict[str, Any]:
    """Give what belongs to a load only where it is not as usual, so that usual loads stay equal."""
    found = config.at(part).value if part in config else {}
    if found.get("type_") in _STREAMS:
        found = {key: value for key, value in found.items() if key != "max_concurrency"}
    usual = _USUAL[part]
    return {key: found[key] for key in usual if found.get(key) not in (None, usual[key])}


def _since_0_4(root: DocumentNode, benchmark: DocumentNode) -> dict[str, Any]:
    args, config = root.at("args").value, benchmark.at("config")
    strategy = config.at("strategy").value
    backend = config.value.get("backend") or {}
    limits = ("max_seconds", "max_requests", "max_errors", "warmup", "cooldown", "rampup")
    return {
        "model": short(str(args.get("model") or backend.get("model") or UNKNOWN)),
        "endpoint": args.get("request_format"),
        "strategy": {key: strategy.get(key) for key in (*_STRATEGY, "max_concurrency")},
        "constraints": {key: args.get(key) for key in limits},
        "data": [_shown(item) for item in args.get("data") or ()],
        "seed": args.get("random_seed"),
    }


def _since_0_2(benchmark: DocumentNode) -> dict[str, Any]:
    args, loader = benchmark.at("args"), benchmark.at("request_loader").value
    strategy = args.at("strategy").value
    limits = ("number", "duration")
    return {
        "model": short(str(benchmark.at("worker").value.get("backend_model") or UNKNOWN)),
        "endpoint": None,
        "strategy": {key: strategy.get(key) for key in (*_STRATEGY, "max_concurrency")},
        "constraints": {
            f"{word}_{limit}": args.value.get(f"{word}_{limit}")
            for word in ("max", "warmup", "cooldown")
            for limit in limits
        },
        "data": [_shown(loader.get("data")), loader.get("data_args")],
        "seed": (args.value.get("profile") or {}).get("random_seed"),
    }


def _without_folder(value: Any) -> Any:
    return {
        key: short(item) if isinstance(item, str) else item
        for key, item in (value.items() if isinstance(value, dict) else ())
    }


def _shown(value: Any) -> Any:
    return short(value) if isinstance(value, str) else _without_folder(value)


def parse_version(document: ForeignDocument) -> str | None:
    """Name the guidellm that wrote a file, where the file names it."""
    root = document.root
    metadata = root.at("metadata") if "metadata" in root else DocumentNode(None)
    version = "guidellm_version"
    return str(metadata.value[version]) if version in metadata else None


def is_report(document: ForeignDocument) -> bool:
    """Whether this is a report."""
    root = document.root
    if "benchmarks" not in root:
        return False
    if "metadata" not in root:
        return _is_old(root)
    return "guidellm_version" in root.at("metadata")


def read_report(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read every benchmark of a report."""
    root = document.root
    benchmarks = list(root.at("benchmarks").each())
    if not benchmarks:
        raise root.at("benchmarks").wrong("at least one benchmark")
    for benchmark in benchmarks:
        workload = _read_load(root, benchmark)
        started, ended = benchmark.at("start_time"), benchmark.at("end_time")
        yield ForeignRun(
            tool=f"guidellm {_read_version(root)}",
            scenario=f"guidellm/{workload['model']}",
            workload=workload,
            started_at=started.moment(),
            finished_at=ended.moment(),
            trials=(_trial(benchmark),),
            unknown=_list_unknown(root, benchmark),
        )


def _list_unknown(root: DocumentNode, benchmark: DocumentNode) -> tuple[str, ...]:
    version = () if "metadata" in root else ("harness.version",)
    rates = (*_TOKENS, "request_throughput")
    return version if _is_window_whole(benchmark) else (*version, *rates)


def _is_window_whole(benchmark: DocumentNode) -> bool:
    """Whether work went on throughout the time that is called measured.

    guidellm 0.5 sets its end by the given limit, even if the requests ran out long before: a rate
    over it means nothing.
    """
    if "cooldown_duration" not in benchmark:
        return True
    slack = max(_SLACK_S, benchmark.at("duration").amount() * _SLACK)
    return benchmark.at("cooldown_duration").number() >= -slack


def _trial(benchmark: DocumentNode) -> Trial:
    started, seconds = benchmark.at("start_time").moment(), benchmark.at("duration").amount()
    totals = _totals(benchmark)
    failed, total = totals.at("errored").count(), totals.at("total").count()
    if failed or not totals.at("successful").count():
        reason = f"{failed} of {total} requests failed" if failed else f"0 of {total} requests done"
        return build_trial(started, seconds, Failure(reason, ""))
    return build_trial(started, seconds, _samples(benchmark))


def _totals(benchmark: DocumentNode) -> DocumentNode:
    metrics = benchmark.at("metrics")
    return (metrics if "request_totals" in metrics else benchmark).at("request_totals")


def _samples(benchmark: DocumentNode) -> Iterator[Sample]:
    done = list(benchmark.at("requests", "successful").each())
    count = _totals(benchmark).at("successful").amount()
    seconds = benchmark.at("duration")
    if seconds.amount() <= 0:
        raise seconds.wrong("a duration above 0")
    metrics = benchmark.at("metrics")
    if _is_window_whole(benchmark):
        # Its own rates are means over moments; these are the words of the catalogue.
        for metric, name in _TOKENS.items():
            if metric == "output_throughput" or name in metrics:
                tokens = metrics.at(name, "successful", "total_sum").amount()
                yield Sample(metric, (tokens / seconds.amount(),))
        yield Sample("request_throughput", (count / seconds.amount(),))
    # guidellm can be set to keep a sample of the requests only, and keeps those of its warm-up.
    whole = len(done) == count
    for metric, (name, parts) in _SERIES.items():
        if whole:
            nodes = [request.at(name) for request in done if name in request]
            values = tuple(node.amount() / parts for node in nodes)
            if values:
                yield Sample(metric, values)
            continue
        spread = metrics.at(name, "successful")
        if spread.value.get("count") == 0:
            continue  # such as the first token where nothing is streamed
        yield Sample(metric, (spread.at("median").amount() / parts,), "median")
        yield Sample(metric, (spread.at("percentiles", "p99").amount() / parts,), "p99")
