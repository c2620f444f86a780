"""Results of SGLang's ``bench_serving``, JSON lines (0.5.23, ``sglang/benchmark/serving.py``).

Each call of it appends a line; neighbours of one load are trials of one run. Its words are vLLM's,
whose client it came from. No line has a date. The model is in what the server says of itself,
``server_info``, which only SGLang's own server does.

Left out: ``accept_length``, the server's mean since it started and not the trial's; a latency of 0,
which means that nothing was streamed. A line does not count requests that failed: only what
``--output-details`` keeps shows them.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from hybridwatch.formats.read.document import DocumentNode, ForeignDocument
from hybridwatch.formats.read.foreign import ForeignRun, build_untimed, short
from hybridwatch.formats.read.vllm_bench import read_requests
from hybridwatch.records.run import UNKNOWN, Failure, Sample

_LOAD: Final = (
    "backend", "dataset_name", "max_concurrency", "sharegpt_output_len", "random_input_len",
    "random_output_len", "random_range_ratio", "total_input_tokens",
)  # fmt: skip
_RATES: Final = {
    "output_throughput": "output_throughput",
    "total_token_throughput": "total_throughput",
    "request_throughput": "request_throughput",
}
_TIMES: Final = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e_latency"}


def is_results(document: ForeignDocument) -> bool:
    """Whether these are results of ``bench_serving``."""
    first = document.first
    return first.has("completed", "duration", "median_e2e_latency_ms") and "model_id" not in first


def read_results(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read every line; neighbours of one load are trials of one run."""
    for _, group in groupby(
        document.rows, key=lambda one: (str(_workload(one)), str(one.value.get("tag")))
    ):
        results = list(group)
        workload = _workload(results[0])
        version = _server(results[0]).get("version")
        passes = [_read_pass(result) for result in results]
        run = build_untimed(document, "sglang", workload, passes)
        yield replace(run, release=None if version is None else str(version))


def _server(result: DocumentNode) -> dict[str, Any]:
    """Give what the server says of itself; a router gives what its servers say, by their part."""
    info = result.value.get("server_info")
    decode = info.get("decode") if isinstance(info, dict) else None
    info = decode[0] if isinstance(decode, list) and decode else info
    return info if isinstance(info, dict) else {}


def _workload(result: DocumentNode) -> dict[str, Any]:
    rate = result.value.get("request_rate")
    return {
        **{key: result.value.get(key) for key in _LOAD},
        "request_rate": "inf" if rate is None else rate,  # Infinity, which no record knows
        "requests": len(result.value.get("errors") or ()) or result.at("completed").count(),
        "model": short(str(_server(result).get("model_path") or UNKNOWN)),
    }


def _read_pass(result: DocumentNode) -> tuple[float, list[Sample] | Failure]:
    seconds = result.at("duration").amount()
    errors = list(result.at("errors").each()) if "errors" in result else []
    failed = sum(bool(error.value) for error in errors)
    completed = result.at("completed").count()
    if failed:
        return seconds, Failure(f"{failed} of {len(errors)} requests failed", "")
    if not completed:
        return seconds, Failure("no request was completed", "")
    rates = [
        Sample(metric, (result.at(name).amount(),))
        for metric, name in _RATES.items()
        if name in result
    ]
    is_whole = bool(result.value.get("ttfts")) and any(result.value["ttfts"])
    return seconds, rates + (read_requests(result) if is_whole else list(_reduced(result)))


def _reduced(result: DocumentNode) -> Iterator[Sample]:
    for metric, name in _TIMES.items():
        for statistic in ("median", "p99"):
            key = f"{statistic}_{name}_ms"
            if key in result and result.at(key).amount():
                yield Sample(metric, (result.at(key).amount() / 1000,), statistic)
