"""Summaries of LLMPerf, ``*_summary.json`` (``token_benchmark_ray.py`` at f1d6bed).

``*_individual_responses.json`` next to one has every request. Its ``inter_token_latency_s`` takes
the first token in and has no word of ours. Tokens are counted by one tokenizer, Llama's, for every
model: ``output_throughput`` compares runs of LLMPerf alone.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from hybridwatch.formats.read.document import DocumentNode, ForeignDocument, read_folder
from hybridwatch.formats.read.foreign import ForeignRun, build_trial, short
from hybridwatch.records.run import UNKNOWN, Failure, Sample

_LOAD: Final = (
    *("num_concurrent_requests", "mean_input_tokens", "stddev_input_tokens"),
    *("mean_output_tokens", "stddev_output_tokens"),
)
_TIMES: Final = {"ttft": "ttft_s", "e2el": "end_to_end_latency_s"}
_QUANTILES: Final = {"median": "p50", "p99": "p99"}
_THROUGHPUT: Final = "results_mean_output_throughput_token_per_s"
_PER_MINUTE: Final = "results_num_completed_requests_per_min"
_COMPLETED: Final = "results_num_completed_requests"


def is_summary(document: ForeignDocument) -> bool:
    """Whether this is a summary."""
    return document.root.has("num_concurrent_requests", _THROUGHPUT)


def is_responses(document: ForeignDocument) -> bool:
    """Whether these are the requests of a run."""
    return document.first.has("ttft_s", "end_to_end_latency_s")


def why_alone(responses: ForeignDocument, folder: Sequence[ForeignDocument]) -> str | None:
    """Say that the summary is not next to requests; ``None`` if it is."""
    if any(is_summary(one) and one.path.name == _summary_name(responses) for one in folder):
        return None
    return f"expected their summary, {_summary_name(responses)}, beside them, found none"


def _summary_name(responses: ForeignDocument) -> str:
    return responses.path.name.replace("_individual_responses", "_summary")


def read_summary(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read a summary, and its requests where they lie next to it."""
    root = document.root
    finished = root.at("timestamp").moment()
    per_second = root.at(_PER_MINUTE).amount() / 60 if _PER_MINUTE in root else 0.0
    seconds = root.at(_COMPLETED).amount() / per_second if per_second else 0.0
    started = finished - timedelta(seconds=seconds)
    workload = _workload(root)
    yield ForeignRun(
        tool="llmperf",
        scenario=f"llmperf/{workload['model']}",
        workload=workload,
        started_at=started,
        finished_at=finished,
        trials=(build_trial(started, seconds, _read_pass(document, per_second)),),
        unknown=("harness.version", *(() if seconds else ("started_at",))),
    )


def _read_pass(document: ForeignDocument, per_second: float) -> list[Sample] | Failure:
    root = document.root
    if share := root.at("results_error_rate").amount():
        return Failure(f"{100 * share:g} % of the requests failed", "")
    near = filter(is_responses, read_folder(document.path.parent))
    responses = next((one for one in near if _summary_name(one) == document.path.name), None)
    times = _reduced(root) if responses is None else _raw(responses)
    return [*_rates(root, per_second), *times]


def _workload(root: DocumentNode) -> dict[str, Any]:
    sampling = {
        key: part
        for key, part in root.value.items()
        if key.startswith("additional_sampling_params")
    }
    return {
        "model": short(str(root.value.get("model") or UNKNOWN)),
        **{key: root.value.get(key) for key in _LOAD},
        **sampling,
        "requests": root.value.get("results_num_requests_started"),
    }


def _rates(root: DocumentNode, per_second: float) -> Iterator[Sample]:
    yield Sample("output_throughput", (root.at(_THROUGHPUT).amount(),))
    if per_second:
        yield Sample("request_throughput", (per_second,))


def _raw(responses: ForeignDocument) -> list[Sample]:
    return [
        Sample(metric, tuple(row.at(name).amount() for row in responses.rows))
        for metric, name in _TIMES.items()
    ]


def _reduced(root: DocumentNode) -> list[Sample]:
    return [
        Sample(metric, (root.at(f"results_{name}_quantiles_{word}").amount(),), statistic)
        for metric, name in _TIMES.items()
        for statistic, word in _QUANTILES.items()
        if f"results_{name}_quantiles_{word}" in root
    ]
