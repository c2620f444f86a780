"""Reports of aiperf, read from what release 0.13.0 writes.

``profile_export_aiperf.json`` has statistics, ``profile_export.jsonl`` beside it every request. The
``inter_token_latency`` of a request is vLLM's ``tpot``, ``inter_chunk_latency`` the gaps that vLLM
calls ``itl``.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.ingest.document import Document, Node
from hybridwatch.ingest.foreign import Given, Told, run_of, short
from hybridwatch.record.run import Failure, Phase, Run, Sample, Trial

FORMAT: Final = "aiperf"
_SERIES: Final = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "e2el": "request_latency",
}
_RATES: Final = {
    "output_throughput": "output_token_throughput",
    "request_throughput": "request_throughput",
}
_PERCENTILES: Final = {"median": "p50", "p99": "p99"}
_PARTS: Final = {"ms": 1000.0, "sec": 1.0, "s": 1.0, "us": 1e6, "ns": 1e9}
_NS: Final = 10**9


def is_report(document: Document) -> bool:
    """Whether this is a report."""
    return "aiperf_version" in Node(document.root) and "request_count" in Node(document.root)


def is_requests(document: Document) -> bool:
    """Whether this is a file of requests."""
    first = Node(document.lines[0])
    if "metadata" not in first or "metrics" not in first:
        return False
    return "request_start_ns" in first.at("metadata")


def is_inputs(document: Document) -> bool:
    """Whether this is the ``inputs.json`` that aiperf leaves beside a report."""
    root = Node(document.root)
    return (
        "data" in root
        and isinstance(root.value["data"], list)
        and "session_id" in Node(next(iter(root.value["data"]), None))
    )


def read_report(document: Document, given: Given, beside: Sequence[Document]) -> Run:
    """Read a report.

    Args:
        document: The report.
        given: As for every format.
        beside: Files of requests in the same folder; one of another run is left alone.
    """
    root = Node(document.root)
    started, finished = _moment(root.at("start_time")), _moment(root.at("end_time"))
    asked = _asked(root)
    requests = next((file for file in beside if _belongs(file, root)), None)
    told = Told(
        format=FORMAT,
        tool=f"aiperf {root.at('aiperf_version').text()}",
        scenario=f"aiperf/{asked['models'][0]}",
        asked=asked,
        started_at=started,
        finished_at=finished,
        trials=(_trial(root, started, requests),),
        # Local time, without a word on which.
        unknown=("started_at", "finished_at"),
    )
    return run_of(document, told, given)


def _asked(root: Node) -> dict[str, Any]:
    config = root.at("input_config")
    models = [short(item.at("name").text()) for item in config.at("models", "items").each()]
    if not models:
        raise config.at("models").wrong("at least one model")
    return {
        "models": models,
        "endpoint": config.at("endpoint").value.get("type"),
        "streaming": config.at("endpoint").value.get("streaming"),
        "datasets": config.at("datasets").value,
        "phases": config.at("phases").value,
    }


def _belongs(requests: Document, root: Node) -> bool:
    """The same number of requests, and the slowest of them as slow as the report says."""
    measured = list(_measured(requests))
    try:
        slowest = max(node.at("metrics", "request_latency", "value").number() for node in measured)
        count = root.at("request_count", "avg").number()
        return len(measured) == count and slowest == root.at("request_latency", "max").number()
    except (IngestError, ValueError):
        return False


def _measured(requests: Document) -> Iterator[Node]:
    for node in requests.nodes:
        if node.at("metadata").value.get("phase_kind", "profiling") == "profiling":
            yield node


def _trial(root: Node, started: datetime, requests: Document | None) -> Trial:
    seconds = _in_seconds(root.at("benchmark_duration"), "avg")
    rate = root.value.get("request_error_rate")
    failed = 0.0 if rate is None else root.at("request_error_rate", "avg").number()
    if failed:
        failure = Failure(f"{failed:g} % of the requests failed", "")
        return Trial(0, 0, Phase.PERFORMANCE, started, seconds, failure=failure)
    samples = [Sample(metric, (root.at(name, "avg").number(),)) for metric, name in _RATES.items()]
    samples += _reduced(root) if requests is None else _raw(requests)
    return Trial(0, 0, Phase.PERFORMANCE, started, seconds, samples=tuple(samples))


def _raw(requests: Document) -> list[Sample]:
    found = []
    for metric, name in _SERIES.items():
        values: list[float] = []
        for node in _measured(requests):
            if name in node.at("metrics"):
                told = node.at("metrics", name)
                value, parts = told.at("value"), _parts(told)
                several = value.numbers() if isinstance(value.value, list) else (value.number(),)
                values += [one / parts for one in several]
        if values:
            found.append(Sample(metric, tuple(values)))
    return found


def _reduced(root: Node) -> list[Sample]:
    return [
        Sample(metric, (_in_seconds(root.at(name), word),), statistic)
        for metric, name in _SERIES.items()
        if name in root
        for statistic, word in _PERCENTILES.items()
    ]


def _in_seconds(told: Node, word: str) -> float:
    return told.at(word).number() / _parts(told)


def _parts(told: Node) -> float:
    unit = told.at("unit")
    if unit.value not in _PARTS:
        raise unit.wrong(f"one of {', '.join(_PARTS)}")
    return _PARTS[unit.value]


def _moment(node: Node) -> datetime:
    try:
        moment = datetime.fromisoformat(node.text())
    except ValueError:
        raise node.wrong("a date such as 2026-11-21T09:15:00") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
