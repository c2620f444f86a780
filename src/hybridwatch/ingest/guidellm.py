"""JSON reports of guidellm (``benchmarks.json``; read from what release 0.8.1 writes).

A report holds a benchmark for each load it tried; each becomes a run. guidellm's words are others
than vLLM's: its ``inter_token_latency_ms`` of a request is vLLM's ``tpot`` (the first token left
out), and its ``time_per_output_token_ms``, which takes the first token in, has no word of ours.
"""

from collections.abc import Iterator
from typing import Any, Final

from hybridwatch.ingest.document import Document, Node
from hybridwatch.ingest.foreign import Given, Told, run_of, short
from hybridwatch.record.run import UNKNOWN, Failure, Phase, Run, Sample, Trial

FORMAT: Final = "guidellm"
_SERIES: Final = {
    "ttft": ("time_to_first_token_ms", 1000.0),
    "tpot": ("inter_token_latency_ms", 1000.0),
    "e2el": ("request_latency", 1.0),
}
"""Metric, guidellm's name for it, and parts of a second."""


def is_report(document: Document) -> bool:
    """Whether this is a report."""
    root = Node(document.root)
    if "metadata" not in root or "benchmarks" not in root:
        return False
    return "guidellm_version" in root.at("metadata")


def read_report(document: Document, given: Given) -> Iterator[Run]:
    """Read every benchmark of a report."""
    root = Node(document.root)
    version = root.at("metadata", "guidellm_version").text()
    for benchmark in root.at("benchmarks").each():
        asked = _asked(root, benchmark)
        started, ended = benchmark.at("start_time"), benchmark.at("end_time")
        told = Told(
            format=FORMAT,
            tool=f"guidellm {version}",
            scenario=f"guidellm/{asked['model']}",
            asked=asked,
            started_at=started.moment(),
            finished_at=ended.moment(),
            trials=(_trial(benchmark),),
        )
        yield run_of(document, told, given)


def _asked(root: Node, benchmark: Node) -> dict[str, Any]:
    spec = root.at("config", "spec")
    strategy = benchmark.at("config", "strategy").value
    data = [_without_folder(item.value) for item in spec.at("data").each()]
    return {
        "model": short(str(spec.at("backend").value.get("model") or UNKNOWN)),
        "endpoint": spec.at("backend").value.get("request_format"),
        "strategy": {key: strategy.get(key) for key in ("type_", "streams", "rate")},
        "constraints": spec.value.get("constraints"),
        "data": data,
        "seed": spec.value.get("seed"),
    }


def _without_folder(value: Any) -> Any:
    return {
        key: short(item) if isinstance(item, str) else item
        for key, item in (value.items() if isinstance(value, dict) else ())
    }


def _trial(benchmark: Node) -> Trial:
    trial = Trial(
        0,
        0,
        Phase.PERFORMANCE,
        benchmark.at("start_time").moment(),
        benchmark.at("duration").number(),
    )
    totals = benchmark.at("metrics", "request_totals")
    failed = int(totals.at("errored").number())
    if failed:
        reason = f"{failed} of {int(totals.at('total').number())} requests failed"
        return Trial(**_fields(trial), failure=Failure(reason, ""))
    return Trial(**_fields(trial), samples=tuple(_samples(benchmark)))


def _fields(trial: Trial) -> dict[str, Any]:
    names = ("index", "side", "phase", "started_at", "duration_s")
    return {name: getattr(trial, name) for name in names}


def _samples(benchmark: Node) -> Iterator[Sample]:
    done = list(benchmark.at("requests", "successful").each())
    count = benchmark.at("metrics", "request_totals", "successful").number()
    seconds = benchmark.at("duration")
    if seconds.number() <= 0:
        raise seconds.wrong("a duration above 0")
    tokens = benchmark.at("metrics", "output_token_count", "successful", "total_sum").number()
    # Its own rates are means over moments; these are the words of the catalogue.
    yield Sample("output_throughput", (tokens / seconds.number(),))
    yield Sample("request_throughput", (count / seconds.number(),))
    whole = len(done) == count  # guidellm can be told to keep a sample of the requests only
    for metric, (name, parts) in _SERIES.items():
        if whole:
            told = [request.at(name) for request in done if name in request]
            values = tuple(node.number() / parts for node in told)
            if values:
                yield Sample(metric, values)
            continue
        spread = benchmark.at("metrics", name, "successful")
        yield Sample(metric, (spread.at("median").number() / parts,), "median")
        yield Sample(metric, (spread.at("percentiles", "p99").number() / parts,), "p99")
