"""Rows of InferenceX (once InferenceMAX), ``agg_*.json`` (``utils/process_result.py``).

A row is what its serving benchmark reduced one load to: times without ``_ms`` are seconds, rates
are divided by the GPUs. A row does not say for how long it was measured, and only those of vLLM's
nightly evaluation, which have the same form, say when. Each row is kept whole next to the record,
with what has no place in it: the recipe's fingerprint, power, the mean and other percentiles.

Rows of agentic coding (``scenario_type``), where sessions of requests are replayed, differ: no
``isl`` and ``osl``, counts of requests and a measured time instead. Their ``itl`` is one value for
each request, vLLM's ``tpot``. Four forms are known:

=============  ===================================================================
the first      ``users``, ``median_*`` and ``p99_*``, ``ttlt`` for ``e2el``
the second     ``conc``, ``mean_*`` and ``p75_*`` to ``p95_*``, neither of ours
the third      as the second, with ``p50_*``
the fourth     as the third, in tables (``request_metrics``); counts warm-up among the requests
=============  ===================================================================
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import DocumentNode, ForeignDocument
from hybridwatch.formats.read.foreign import ForeignRun, bare_testbed, build_trial, model_name
from hybridwatch.records.run import UNKNOWN, Failure, Sample, Trial

_KEYS: Final = ("tput_per_gpu", "conc", "isl", "osl", "model", "framework")
_WORKLOAD: Final = (
    "conc", "isl", "osl", "framework", "precision", "spec_decoding", "disagg", "is_multinode",
    "tp", "pp", "ep", "dp_attention", "num_prefill_gpu", "num_decode_gpu", "prefill_tp",
    "prefill_ep", "prefill_dp_attention", "decode_tp", "decode_ep", "decode_dp_attention",
)  # fmt: skip
_WORKLOAD_OF_SOME: Final = (
    "dcp_size", "pcp_size", "prefill_pp", "prefill_dcp_size", "prefill_pcp_size", "decode_pp",
    "decode_dcp_size", "decode_pcp_size",
    "prefill_hw", "decode_hw", "kv_p2p_transfer",
)  # fmt: skip
"""Newer keys. A size of 1 is what rows mean that say nothing, and both are one load."""
_REDUCED: Final = ("median", "p99")
_STATED: Final = ("median", "mean", "p99")
_UNKNOWN: Final = (
    "harness.version", "started_at", "finished_at", "trials[0].started_at", "trials[0].duration_s",
)  # fmt: skip
_DURATION: Final = "duration_seconds"
_SESSION_KEYS: Final = ("scenario_type", "num_requests_total", "num_requests_successful", "model")
_SESSION_WORKLOAD: Final = (
    "scenario_type", "users", "offload_mode", "offloading", "kv_offloading", "kv_offload_backend",
)  # fmt: skip
_TABLES: Final = "request_metrics"
_SERIES: Final = {"ttft": ("ttft",), "tpot": ("tpot", "itl"), "e2el": ("e2el", "ttlt")}
_SESSION_REDUCED: Final = {"median": ("median", "p50"), "p99": ("p99",)}
_OTHER_UNIT: Final = 30.0
"""Above this many times as many requests at once as were requested, times are not in seconds.

Subagents add to the requested load, a thousandfold is milliseconds.
"""


def is_rows(document: ForeignDocument) -> bool:
    """Whether this is a row, or a list of them."""
    return document.first.has(*_KEYS) or _is_sessions(document.first)


def read_rows(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read every row; those of one load on one machine and build are trials of one run."""
    loads: dict[str, list[DocumentNode]] = {}
    for row in document.rows:
        load = (_workload(row), _hardware(row), row.value.get("image"))
        loads.setdefault(repr(load), []).append(row)
    for rows in loads.values():
        yield _run(document, rows)


def _run(document: ForeignDocument, rows: list[DocumentNode]) -> ForeignRun:
    workload = _workload(rows[0])
    trials = [_trial(document, row) for row in rows]
    return ForeignRun(
        tool="InferenceX",
        scenario=f"inferencex/{workload['model']}",
        workload=workload,
        started_at=min(trial.started_at for trial in trials),
        finished_at=max(trial.started_at for trial in trials),
        trials=trials,
        build=str(rows[0].value.get("image") or workload["framework"] or UNKNOWN),
        testbed=bare_testbed(_hardware(rows[0])),
        unknown=_UNKNOWN[:-1] if all(_DURATION in row for row in rows) else _UNKNOWN,
    )


def _trial(document: ForeignDocument, row: DocumentNode) -> Trial:
    started = row.at("date").date("2026-11-21 09:15:00") if "date" in row else document.written_at
    if _is_sessions(row):
        trial = _session_trial(row, started, _gpus(row)[0])
    else:
        trial = build_trial(started, 0.0, _samples(row))
    return replace(trial, client_result=row.value)


def _hardware(row: DocumentNode) -> str:
    return str(row.value.get("hw") or row.value.get("device") or UNKNOWN)


def _workload(row: DocumentNode) -> dict[str, Any]:
    workload = {key: row.value.get(key) for key in _WORKLOAD}
    workload |= {key: row.value[key] for key in _WORKLOAD_OF_SOME if row.value.get(key, 1) != 1}
    workload |= {key: row.value[key] for key in _SESSION_WORKLOAD if key in row}
    return {**workload, "model": model_name(row.at("model"))}


def _samples(row: DocumentNode) -> Iterator[Sample]:
    _check_seconds(row)
    total, decoding = _gpus(row)
    # A rate or a time of 0 stands for one that was not measured.
    if row.value.get("input_tput_per_gpu") != 0:
        rate = row.at("tput_per_gpu").amount() * total
        yield Sample("total_token_throughput", (rate,))
    if "output_tput_per_gpu" in row:
        rate = row.at("output_tput_per_gpu").amount() * decoding
        yield Sample("output_throughput", (rate,))
    for metric in ("ttft", "tpot", "itl", "e2el"):
        for statistic in _REDUCED:
            if f"{statistic}_{metric}" in row:
                seconds = row.at(f"{statistic}_{metric}").amount()
                if seconds:
                    yield Sample(metric, (seconds,), statistic)


def _check_seconds(row: DocumentNode) -> None:
    """Times have no unit of their own; the interactivity in the same row, 1/s, shows it."""
    beside = [word for word in _STATED if f"{word}_tpot" in row and f"{word}_intvty" in row]
    if not beside:
        raise IngestError(
            f"{row.path or 'row'}: expected median_tpot and median_intvty, which show the unit of "
            "times, found no such pair"
        )
    time, rate = row.at(f"{beside[0]}_tpot"), row.at(f"{beside[0]}_intvty")
    if not math.isclose(time.amount() * rate.amount(), 1, rel_tol=0.01):
        raise IngestError(
            f"{time.path}: expected seconds, 1 / {beside[0]}_intvty ({rate.amount():g}), "
            f"found {time.amount():g}"
        )


def _gpus(row: DocumentNode) -> tuple[float, float]:
    """Give the GPUs that all tokens, and that the tokens put out, were divided by."""
    if "num_gpus" in row:
        gpus = row.at("num_gpus").amount()
        return gpus, gpus
    if str(row.value.get("is_multinode")).lower() == "true":
        prefill, decode = (row.at(f"num_{part}_gpu").amount() for part in ("prefill", "decode"))
        return prefill + decode, decode or prefill + decode
    parts = [row.at(key).amount() for key in ("tp", "pp", "pcp_size") if key in row]
    if not parts:
        raise row.at("tp").wrong("a number of GPUs")
    return math.prod(parts), math.prod(parts)


def _is_sessions(row: DocumentNode) -> bool:
    return row.has(*_SESSION_KEYS) and ("conc" in row or "users" in row)


def _session_trial(row: DocumentNode, started: datetime, gpus: float) -> Trial:
    row = _flat(row)
    total, done = (row.at(f"num_requests_{word}").amount() for word in ("total", "successful"))
    seconds = row.at(_DURATION).amount() if _DURATION in row else 0.0
    if done < total or not done:
        # Requests that were cut off at the end look like those that failed.
        reason = f"{total - done:g} of {total:g} requests not successful" if total else "no request"
        return build_trial(started, seconds, Failure(reason, ""))
    _check_session_seconds(row, done, seconds)
    return build_trial(started, seconds, _session_samples(row, gpus))


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
    flat[_DURATION] = rates.at(_DURATION).amount()
    warm = row.at("request_accounting", "records_warmup_dropped").amount()
    flat["num_requests_total"] = row.at("num_requests_total").amount() - warm
    return DocumentNode({**row.value, **flat}, row.path)


def _check_session_seconds(row: DocumentNode, done: float, seconds: float) -> None:
    """Times have no unit of their own; the number of simultaneous requests shows it."""
    mean = next((row.at(key) for key in ("mean_e2el", "mean_ttlt") if key in row), None)
    if mean is None or seconds <= 0:
        raise IngestError(
            f"{row.path or 'row'}: expected mean_e2el and {_DURATION}, which show the unit of "
            "times, found no such pair"
        )
    wanted = row.at("conc" if "conc" in row else "users").amount()
    at_once = mean.amount() * done / seconds
    if at_once > _OTHER_UNIT * wanted:
        raise IngestError(
            f"{mean.path}: expected seconds, found {mean.amount():g}, which is {at_once:g} "
            f"requests at once where {wanted:g} were requested"
        )


def _session_samples(row: DocumentNode, gpus: float) -> Iterator[Sample]:
    yield Sample("total_token_throughput", (row.at("tput_per_gpu").amount() * gpus,))
    yield Sample("output_throughput", (row.at("output_tput_per_gpu").amount() * gpus,))
    for metric, names in _SERIES.items():
        for statistic, words in _SESSION_REDUCED.items():
            keys = [f"{word}_{name}" for name in names for word in words]
            node = next((row.at(key) for key in keys if key in row), None)
            if node is not None:
                yield Sample(metric, (node.amount(),), statistic)
