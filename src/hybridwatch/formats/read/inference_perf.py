"""Reports of inference-perf, 0.1.1 to 0.7.0 (``inference_perf/reportgen/base.py``).

``stage_N_lifecycle_metrics.json`` has a stage of the load, all times in seconds. Model and dataset
stand in ``config.yaml`` next to it, which newer ones write; no file has a date. Medians are called
``p50`` before ``median``. ``per_request_lifecycle_metrics.json`` has every request where that was
switched on, with its latencies (``computed_metrics``) from 0.7 on.

The summary says the same of all stages together, and reports of adapters of some requests: next to
a stage they are not read again. Metrics of the server and of sessions are not read at all.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import DocumentNode, ForeignDocument, read_folder
from hybridwatch.formats.read.foreign import ForeignRun, build_untimed, short
from hybridwatch.records.run import UNKNOWN, Failure, Sample

_TIMES: Final = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
    "e2el": "request_latency",
}
_RATES: Final = {
    "output_throughput": "output_tokens_per_sec",
    "total_token_throughput": "total_tokens_per_sec",
    "request_throughput": "requests_per_sec",
}
_PERCENTILES: Final = {"median": ("median", "p50"), "p99": ("p99",)}
_STAGE: Final = "requested_rate"


def is_report(document: ForeignDocument) -> bool:
    """Whether this is the report of a stage, or of all of them."""
    root = document.root
    has_parts = root.has("load_summary", "successes", "failures")
    return has_parts and "count" in root.at("load_summary")


def is_part(document: ForeignDocument) -> bool:
    """Whether this says nothing that the report next to it does not."""
    root, folder = document.root, document.path.parent
    if is_report(document):
        is_stage = _STAGE in root.at("load_summary") and not document.path.name.startswith(
            "adapter"
        )
        return not is_stage and any(folder.glob("stage_*_lifecycle_metrics.json"))
    keys = set(root.value) if isinstance(root.value, dict) else set()
    of_server = "successes" in keys and root.value.get("load_summary") == {}
    is_check = keys == {"global", "reports"}  # validation.json
    return _is_requests(document) or of_server or is_check or "num_sessions_succeeded" in keys


def why_alone(_: ForeignDocument, folder: Sequence[ForeignDocument]) -> str | None:
    """Say that the report is not next to a part; ``None`` if it is."""
    if any(is_report(one) and not is_part(one) for one in folder):
        return None
    return "expected stage_0_lifecycle_metrics.json or the summary next to it, found none"


def _is_requests(document: ForeignDocument) -> bool:
    first = document.first.value
    return isinstance(first, dict) and {"start_time", "end_time", "error"} <= first.keys()


def read_report(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read a report; a file next to it may have its requests."""
    workload = _workload(document.root.at("load_summary"), _read_config(document))
    passes = [_read_pass(document.root, read_folder(document.path.parent))]
    yield build_untimed(document, "inference-perf", workload, passes)


def _read_config(document: ForeignDocument) -> DocumentNode:
    """Read ``config.yaml`` next to a report; empty where there is none."""
    path = document.path.with_name("config.yaml")
    if not path.is_file():
        return DocumentNode({}, path.name)
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise IngestError(f"{path.name}: needs pyyaml: pip install pyyaml") from error
    try:
        config = DocumentNode(yaml.safe_load(path.read_text(encoding="utf-8")), path.name)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise IngestError(f"{path.name}: expected YAML: {error}") from error
    if not isinstance(config.value, dict):
        raise config.wrong("a table of keys")
    return config


def _workload(load: DocumentNode, config: DocumentNode) -> dict[str, Any]:
    server, data, api, timing = (
        config.value.get(key) or {} for key in ("server", "data", "api", "load")
    )
    return {
        "model": short(str(server.get("model_name") or UNKNOWN)),
        "endpoint": api.get("type"),
        "streaming": api.get("streaming"),
        "data": {key: short(one) if isinstance(one, str) else one for key, one in data.items()},
        "load": timing.get("type"),
        "stages": None if _STAGE in load else timing.get("stages"),
        "requested_rate": load.value.get(_STAGE),
        "concurrency": load.value.get("concurrency"),
        "requests": load.at("count").count(),
    }


def _read_pass(
    root: DocumentNode, beside: Iterable[ForeignDocument]
) -> tuple[float, list[Sample] | Failure]:
    count, failed = (root.at(*way, "count").count() for way in (("load_summary",), ("failures",)))
    done = root.at("successes")
    throughput = done.at("throughput")
    rates = {metric: throughput.at(name).amount() for metric, name in _RATES.items()}
    # Both are counted over the same time, which older reports do not name.
    rate = rates["request_throughput"]
    seconds = done.at("count").count() / rate if rate else 0.0
    if failed or not done.at("count").count():
        return seconds, Failure(f"{failed} of {count} requests failed", "")
    found = [Sample(metric, (value,)) for metric, value in rates.items()]
    requests = next((one for one in beside if _belongs(one, root)), None)
    return seconds, [*found, *(_reduced(root) if requests is None else _raw(requests))]


def _belongs(requests: ForeignDocument, root: DocumentNode) -> bool:
    """Whether as many requests have latencies, and the slowest took as long as the report says."""
    rows = list(requests.rows) if _is_requests(requests) else []
    done = root.at("successes")
    if len(rows) != done.at("count").count() or not all("computed_metrics" in one for one in rows):
        return False
    slowest = max(one.at("computed_metrics", "request_latency").amount() for one in rows)
    return slowest == done.at("latency", "request_latency", "max").amount()


def _raw(requests: ForeignDocument) -> Iterator[Sample]:
    rows = [row.at("computed_metrics") for row in requests.rows]
    for metric, name in _TIMES.items():
        if metric == "itl":
            gaps = [row.at("inter_token_latencies").amounts() for row in rows]
            values = [one for several in gaps for one in several]
        else:
            values = [row.at(name).amount() for row in rows if name in row]
        if values:
            yield Sample(metric, tuple(values))


def _reduced(root: DocumentNode) -> Iterator[Sample]:
    latency = root.at("successes", "latency")
    for metric, name in _TIMES.items():
        if name not in latency:
            continue  # such as the first token where nothing is streamed
        for statistic, words in _PERCENTILES.items():
            word = next((word for word in words if word in latency.at(name)), None)
            if word is not None:
                yield Sample(metric, (latency.at(name, word).amount(),), statistic)
