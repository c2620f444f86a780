"""Reports of aiperf, from 0.1.1 to 0.13, and of genai-perf, which came before it.

``profile_export_aiperf.json`` has statistics, ``profile_export.jsonl`` with it every request. The
``inter_token_latency`` of a request is vLLM's ``tpot``, ``inter_chunk_latency`` the gaps that vLLM
calls ``itl``. The load stands in ``models``, ``datasets`` and ``phases`` from 0.10 on;
before, it is what a user typed, in ``endpoint``, ``input`` and ``loadgen``. In 0.1.1 the statistics
stand one level down, in ``records``.

``*_genai_perf.json`` (0.0.16, ``export_data/json_exporter.py``) has the same words; the load
is what a user typed, flat or, in newer ones, by topic. No file of it has a date, nor a count of
failed requests.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import DocumentNode, ForeignDocument, read_folder
from hybridwatch.formats.read.foreign import (
    ForeignRun,
    build_trial,
    build_untimed,
    model_name,
    short,
)
from hybridwatch.records.run import UNKNOWN, Failure, Sample, Trial

_SERIES: Final = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "e2el": "request_latency",
}
_RATES: Final = {
    "output_throughput": ("output_token_throughput", "tokens/sec"),
    "total_token_throughput": ("total_token_throughput", "tokens/sec"),
    "request_throughput": ("request_throughput", "requests/sec"),
}
"""Metric, aiperf's name for it, and the unit that makes them the same."""
_PERCENTILES: Final = {"median": "p50", "p99": "p99"}
_PARTS: Final = {"ms": 1000.0, "sec": 1.0, "s": 1.0, "us": 1e6, "ns": 1e9}
_DATE: Final = "2026-11-21T09:15:00"
"""As aiperf writes one."""
_STAMP_OF_0_1: Final = "timestamp_ns"


def parse_version(document: ForeignDocument) -> str | None:
    """Name the aiperf that wrote a file, where the file names it."""
    root = document.root
    return str(root.value["aiperf_version"]) if "aiperf_version" in root else None


def is_report(document: ForeignDocument) -> bool:
    """Whether this is a report."""
    root = document.root
    if _is_0_1(root):
        return True
    if "request_count" not in root and "error_request_count" not in root:
        return False
    return "aiperf_version" in root or "input_config" in root


def is_requests(document: ForeignDocument) -> bool:
    """Whether this is a file of requests."""
    first = document.nodes[0]
    if "metadata" not in first or "metrics" not in first:
        return False
    metadata = first.at("metadata")
    return "request_start_ns" in metadata or _STAMP_OF_0_1 in metadata


def is_inputs(document: ForeignDocument) -> bool:
    """Whether this is the ``inputs.json`` that aiperf leaves next to a report."""
    root = document.root
    return (
        "data" in root
        and isinstance(root.value["data"], list)
        and "session_id" in DocumentNode(next(iter(root.value["data"]), None))
    )


def why_alone(requests: ForeignDocument, folder: Sequence[ForeignDocument]) -> str | None:
    """Say which report is not next to requests; ``None`` if one takes them, or says why not."""
    reports = [one for one in folder if is_report(one)]
    if not reports:
        return "expected their report, profile_export_aiperf.json, next to them, found none"
    if any(_accounts_for(report, requests) for report in reports):
        return None
    names = ", ".join(report.path.name for report in reports)
    return f"expected the requests of {names}, found those of another run"


def read_report(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read a report, and the requests next to it unless they are of another run."""
    root = _flat(document.root)
    started, finished = root.at("start_time").date(_DATE), root.at("end_time").date(_DATE)
    workload = _workload(root.at("input_config"))
    version = root.value.get("aiperf_version")
    near = filter(is_requests, read_folder(document.path.parent))
    requests = next((file for file in near if _belongs(file, root)), None)
    yield ForeignRun(
        tool=f"aiperf {version or UNKNOWN}",
        scenario=f"aiperf/{workload['models'][0]}",
        workload=workload,
        started_at=started,
        finished_at=finished,
        trials=(_trial(root, started, requests),),
        # Local time, without a word on which.
        unknown=("started_at", "finished_at", *(() if version else ("harness.version",))),
    )


def _is_0_1(root: DocumentNode) -> bool:
    records = root.value.get("records") if isinstance(root.value, dict) else None
    names = ("request_latency", "Time to First Token", "Inter Token Latency")
    return "input_config" in root and any(name in DocumentNode(records) for name in names)


def _flat(root: DocumentNode) -> DocumentNode:
    """Bring a report of 0.1 into the form of 0.2."""
    if not _is_0_1(root):
        return root
    records = root.value["records"]
    if "request_count" not in records and "error_request_count" not in records:
        raise root.at("records").wrong(
            "request_count and benchmark_duration, as aiperf 0.1.1 and later write them; "
            "this report is of an aiperf before 0.1.1"
        )
    ttft = {"time_to_first_token": records["ttft"]} if "ttft" in records else {}
    return DocumentNode({**root.value, **records, **ttft})


def _workload(config: DocumentNode) -> dict[str, Any]:
    endpoint = config.at("endpoint")
    if "model_names" in endpoint:
        models = [model_name(name) for name in endpoint.at("model_names").each()]
        datasets, phases = config.value.get("input"), config.value.get("loadgen")
    else:
        models = [model_name(item.at("name")) for item in config.at("models", "items").each()]
        datasets, phases = config.at("datasets").value, config.at("phases").value
    if not models:
        raise config.wrong("at least one model")
    extra = {"extra": endpoint.value["extra"]} if endpoint.value.get("extra") else {}
    return {
        **extra,
        "models": models,
        "endpoint": endpoint.value.get("type"),
        "streaming": endpoint.value.get("streaming"),
        "datasets": datasets,
        "phases": phases,
    }


def _belongs(requests: ForeignDocument, root: DocumentNode) -> bool:
    """The same number of requests, and the slowest of them as slow as the report says."""
    if _STAMP_OF_0_1 in requests.nodes[0].at("metadata"):
        return False  # their metrics have other names; the report says as much
    measured = list(_measured(requests))
    try:
        slowest = max(node.at("metrics", "request_latency", "value").amount() for node in measured)
        count = root.at("request_count", "avg").amount()
        return len(measured) == count and slowest == root.at("request_latency", "max").amount()
    except (IngestError, ValueError):
        return False


def _accounts_for(report: ForeignDocument, requests: ForeignDocument) -> bool:
    """Whether a report takes requests, is of a failed run, or cannot be read and is named so."""
    if _STAMP_OF_0_1 in requests.nodes[0].at("metadata"):
        return True
    try:
        root = _flat(report.root)
        return _belongs(requests, root) or _failure(root) is not None
    except IngestError:
        return True


def _measured(requests: ForeignDocument) -> Iterator[DocumentNode]:
    for node in requests.nodes:
        metadata = node.at("metadata").value
        # The newer and the older name of it; one of the two is there since 0.2.
        phase = metadata.get("phase_kind") or metadata.get("benchmark_phase") or "profiling"
        if phase == "profiling":
            yield node


def _trial(root: DocumentNode, started: datetime, requests: ForeignDocument | None) -> Trial:
    reason = _failure(root)
    if reason is not None:
        seconds = (root.at("end_time").date(_DATE) - started).total_seconds()
        return build_trial(started, max(seconds, 0.0), Failure(reason, ""))
    seconds = _in_seconds(root.at("benchmark_duration"), "avg")
    samples = list(read_rates(root))
    samples += read_statistics(root) if requests is None else _raw(requests)
    return build_trial(started, seconds, samples)


def _failure(root: DocumentNode) -> str | None:
    """Say why there are no numbers; releases name failed requests in three ways."""
    if "request_error_rate" in root:
        share = root.at("request_error_rate", "avg").amount()
        if share:
            return f"{share:g} % of the requests failed"
    elif "error_request_count" in root:
        failed = root.at("error_request_count", "avg").amount()
        if failed:
            return f"{failed:g} requests failed"
    elif "error_summary" in root:
        failed = sum(one.at("count").amount() for one in root.at("error_summary").each())
        if failed:
            return f"{failed:g} requests failed"
    return "cancelled before its end" if root.value.get("was_cancelled") is True else None


def read_rates(root: DocumentNode) -> Iterator[Sample]:
    """Read the rates of a report."""
    for metric, (name, unit) in _RATES.items():
        if name not in root:
            continue  # no tokens come of embeddings
        entry = root.at(name)
        if entry.at("unit").value != unit:
            raise entry.at("unit").wrong(unit)
        yield Sample(metric, (entry.at("avg").amount(),))


def _raw(requests: ForeignDocument) -> list[Sample]:
    found = []
    for metric, name in _SERIES.items():
        values: list[float] = []
        for node in _measured(requests):
            if name in node.at("metrics"):
                entry = node.at("metrics", name)
                value, parts = entry.at("value"), _parts(entry)
                several = value.amounts() if isinstance(value.value, list) else (value.amount(),)
                values += [one / parts for one in several]
        if values:
            found.append(Sample(metric, tuple(values)))
    return found


def read_statistics(root: DocumentNode) -> list[Sample]:
    """Read what the requests of a report were reduced to."""
    return [
        Sample(metric, (_in_seconds(root.at(name), word),), statistic)
        for metric, name in _SERIES.items()
        if name in root
        for statistic, word in _PERCENTILES.items()
    ]


def _in_seconds(entry: DocumentNode, word: str) -> float:
    return entry.at(word).amount() / _parts(entry)


def _parts(entry: DocumentNode) -> float:
    unit = entry.at("unit")
    if unit.value not in _PARTS:
        raise unit.wrong(f"one of {', '.join(_PARTS)}")
    return _PARTS[unit.value]


_TOPICS: Final = {
    "endpoint": ("type", "streaming", "backend"),
    "perf_analyzer": ("stimulus", "measurement", "warmup_request_count"),
    "input": (
        *("batch_size", "extra", "file", "num_dataset_entries", "random_seed", "output_tokens"),
        *("synthetic_tokens", "prefix_prompt", "sessions"),
    ),
}
_FLAT: Final = (
    *("backend", "endpoint", "endpoint_type", "streaming", "concurrency", "request_rate"),
    *("request_count", "measurement_interval", "warmup_request_count", "batch_size_text"),
    *("extra_inputs", "input_file", "num_prompts", "num_dataset_entries", "random_seed"),
    *("synthetic_input_tokens_mean", "synthetic_input_tokens_stddev", "output_tokens_mean"),
    *("output_tokens_mean_deterministic", "output_tokens_stddev", "num_prefix_prompts"),
    *("prefix_prompt_length",),
)


def is_genai_part(document: ForeignDocument) -> bool:
    """Whether these are requests of genai-perf, as they were sent or as they came back."""
    root = document.root
    data = root.value["data"] if "data" in root else None
    first = DocumentNode(data[0] if isinstance(data, list) and data else None)
    return root.has("experiments", "service_kind") or "payload" in first


def why_genai_alone(_: ForeignDocument, folder: Sequence[ForeignDocument]) -> str | None:
    """Say that the report is not next to requests; ``None`` if it is."""
    if any(map(is_genai_report, folder)):
        return None
    return "expected profile_export_genai_perf.json next to it, found none"


def is_genai_report(document: ForeignDocument) -> bool:
    """Whether this is a report of genai-perf."""
    root = document.root
    if "input_config" not in root or "request_latency" not in root:
        return False
    return any(key in root.at("input_config") for key in ("model", "model_names"))


def read_genai_report(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read a report; the time it took is its requests over their rate."""
    root = document.root
    workload = _genai_workload(root.at("input_config"))
    rate = root.at("request_throughput", "avg").amount()
    seconds = root.at("request_count", "avg").amount() / rate if rate else 0.0
    samples = [*read_rates(root), *read_statistics(root)]
    yield build_untimed(document, "genai-perf", workload, [(seconds, samples)])


def _genai_workload(config: DocumentNode) -> dict[str, Any]:
    names = config.at("model_names" if "model_names" in config else "model")
    models = [short(name.text()) for name in names.each()]
    if not models:
        raise names.wrong("at least one model")
    if "model" in config:
        return {"model": ", ".join(models), **{key: config.value.get(key) for key in _FLAT}}
    topics = {
        topic: {key: config.at(topic).value.get(key) for key in keys}
        for topic, keys in _TOPICS.items()
    }
    return {"model": ", ".join(models), **topics}
