"""Reports of genai-perf, ``*_genai_perf.json`` (0.0.16, ``export_data/json_exporter.py``).

It came before aiperf and has the same words; what was asked is what a user typed, flat or, in newer
ones, by topic. No file has a date, nor a count of failed requests.
"""

from collections.abc import Sequence
from typing import Any, Final

from hybridwatch.formats.read.aiperf import read_rates, read_statistics
from hybridwatch.formats.read.foreign import DocumentNode, ForeignDocument, ForeignRun, short
from hybridwatch.formats.read.untimed import build_untimed

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


def is_part(document: ForeignDocument) -> bool:
    """Whether these are requests, as they were sent or as they came back."""
    root = document.root
    data = root.value["data"] if "data" in root else None
    first = DocumentNode(data[0] if isinstance(data, list) and data else None)
    return all(key in root for key in ("experiments", "service_kind")) or "payload" in first


def why_alone(_: ForeignDocument, folder: Sequence[ForeignDocument]) -> str | None:
    """Say that the report is not beside requests; ``None`` if it is."""
    if any(map(is_report, folder)):
        return None
    return "expected profile_export_genai_perf.json beside it, found none"


def is_report(document: ForeignDocument) -> bool:
    """Whether this is a report."""
    root = document.root
    if "input_config" not in root or "request_latency" not in root:
        return False
    return any(key in root.at("input_config") for key in ("model", "model_names"))


def read_report(document: ForeignDocument) -> ForeignRun:
    """Read a report; the time it took is its requests over their rate."""
    root = document.root
    workload = _workload(root.at("input_config"))
    rate = root.at("request_throughput", "avg").amount()
    seconds = root.at("request_count", "avg").amount() / rate if rate else 0.0
    samples = [*read_rates(root), *read_statistics(root)]
    return build_untimed(document, "genai-perf", workload, [(seconds, samples)])


def _workload(config: DocumentNode) -> dict[str, Any]:
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
