"""Rows of InferenceX's agentic coding (``scenario_type``), where sessions of requests are replayed.

They differ from rows of a fixed length: no ``isl`` and ``osl``, counts of requests and a measured
time instead. Their ``itl`` is one value for each request, vLLM's ``tpot``. Four forms are known:

=============  ===================================================================
the first      ``users``, ``median_*`` and ``p99_*``, ``ttlt`` for ``e2el``
the second     ``conc``, ``mean_*`` and ``p75_*`` to ``p95_*``, neither of ours
the third      as the second, with ``p50_*``
the fourth     as the third, in tables (``request_metrics``); counts warm-up among the requests
=============  ===================================================================
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import DocumentNode
from hybridwatch.records.run import Failure, Phase, Sample, Trial

DURATION: Final = "duration_seconds"
_KEYS: Final = ("scenario_type", "num_requests_total", "num_requests_successful", "model")
_WORKLOAD: Final = (
    "scenario_type", "users", "offload_mode", "offloading", "kv_offloading", "kv_offload_backend",
)  # fmt: skip
_TABLES: Final = "request_metrics"
_SERIES: Final = {"ttft": ("ttft",), "tpot": ("tpot", "itl"), "e2el": ("e2el", "ttlt")}
_REDUCED: Final = {"median": ("median", "p50"), "p99": ("p99",)}
_OTHER_UNIT: Final = 30.0
"""Above this many times as many requests at once as were asked for, times are not in seconds.

Subagents add to what was asked for, a thousandfold is milliseconds.
"""


def is_sessions(row: DocumentNode) -> bool:
    """Whether this is a row of replayed sessions."""
    return all(key in row for key in _KEYS) and ("conc" in row or "users" in row)


def sessions_workload(row: DocumentNode) -> dict[str, Any]:
    """Give the part of the workload that other rows do not have."""
    return {key: row.value[key] for key in _WORKLOAD if key in row}


def sessions_trial(row: DocumentNode, started: datetime, gpus: float) -> Trial:
    """Read a row, whose rates were divided by ``gpus``.

    ``started`` is when it was measured, as far as is known.

    Raises:
        IngestError: Times are not in seconds.
    """
    row = _flat(row)
    total, done = (row.at(f"num_requests_{word}").amount() for word in ("total", "successful"))
    seconds = row.at(DURATION).amount() if DURATION in row else 0.0
    if done < total or not done:
        # Requests that were cut off at the end look like those that failed.
        reason = f"{total - done:g} of {total:g} requests not successful" if total else "no request"
        return Trial(0, 0, Phase.PERFORMANCE, started, seconds, failure=Failure(reason, ""))
    _check_seconds(row, done, seconds)
    return Trial(0, 0, Phase.PERFORMANCE, started, seconds, samples=tuple(_samples(row, gpus)))


def _flat(row: DocumentNode) -> DocumentNode:
    """Give a row of the fourth form in the keys of the third; others as they are."""
    if _TABLES not in row:
        return row
    latency, rates = row.at(_TABLES, "latency"), row.at(_TABLES, "throughput")
    flat = {
        f"{word}_{name}": value.value
        for name in ("ttft", "tpot", "e2el")
        for word, value in latency.at(name).items()
    }
    for key in ("total", "output"):
        part = "" if key == "total" else f"{key}_"
        flat[f"{part}tput_per_gpu"] = rates.at("per_gpu", f"{key}_tput_tps").amount()
    flat[DURATION] = rates.at(DURATION).amount()
    warm = row.at("request_accounting", "records_warmup_dropped").amount()
    flat["num_requests_total"] = row.at("num_requests_total").amount() - warm
    return DocumentNode({**row.value, **flat}, row.path)


def _check_seconds(row: DocumentNode, done: float, seconds: float) -> None:
    """Times have no unit of their own; the number of simultaneous requests shows it."""
    mean = next((row.at(key) for key in ("mean_e2el", "mean_ttlt") if key in row), None)
    if mean is None or seconds <= 0:
        raise IngestError(
            f"{row.path or 'row'}: expected mean_e2el and {DURATION}, which tell the unit of "
            "times, found no such pair"
        )
    wanted = row.at("conc" if "conc" in row else "users").amount()
    at_once = mean.amount() * done / seconds
    if at_once > _OTHER_UNIT * wanted:
        raise IngestError(
            f"{mean.path}: expected seconds, found {mean.amount():g}, which is {at_once:g} "
            f"requests at once where {wanted:g} were asked for"
        )


def _samples(row: DocumentNode, gpus: float) -> Iterator[Sample]:
    yield Sample("total_token_throughput", (row.at("tput_per_gpu").amount() * gpus,))
    yield Sample("output_throughput", (row.at("output_tput_per_gpu").amount() * gpus,))
    for metric, names in _SERIES.items():
        for statistic, words in _REDUCED.items():
            keys = [f"{word}_{name}" for name in names for word in words]
            node = next((row.at(key) for key in keys if key in row), None)
            if node is not None:
                yield Sample(metric, (node.amount(),), statistic)
