"""What a foreign file says, read in the plainest way: the other opinion on what ingest reads.

Nothing here is checked or named; it is the test of mutated files that holds both against each
other. A reading is every trial without a failed request that a file could give: its samples by
metric and statistic.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Samples = Mapping[tuple[str, str | None], list[float]]
TIMES = ("ttft", "tpot", "itl", "e2el")
STATISTICS = {"median": ("median", "p50"), "p99": ("p99",)}


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _over(value: Any, part: float) -> list[float]:
    return [value / part] if isinstance(value, int | float) else []


def values_of(path: Path) -> list[Any]:
    """Read JSON or JSON lines, without NaN and infinity."""
    text = path.read_bytes().decode("utf-8-sig")
    lines = [text] if path.suffix == ".json" else text.splitlines()
    try:
        told = [json.loads(line, parse_constant=lambda _: None) for line in lines if line.strip()]
    except ValueError:
        return [] if path.suffix == ".jsonl" else [json.loads(text)]
    return [one for item in told for one in (item if isinstance(item, list) else [item])]


def serve(path: Path) -> Iterator[Samples]:
    """Read results of ``vllm bench serve``."""
    for told in values_of(path):
        failed = told.get("failed")
        if (
            failed
            or not told["completed"]
            or (failed is None and told["completed"] < told["num_prompts"])
        ):
            continue
        found = {("output_throughput", None): [told.get("output_throughput")]}
        rate = told.get("request_throughput") or told.get("request_inthroughput")
        found["request_throughput", None] = [rate]
        firsts, gaps, lengths = (told.get(key) for key in ("ttfts", "itls", "output_lens"))
        if firsts:
            pairs = list(zip(gaps, lengths, strict=True))
            found["ttft", None] = firsts
            found["tpot", None] = [sum(gap) / (length - 1) for gap, length in pairs if length > 1]
            found["itl", None] = [one for gap in gaps for one in gap]
            found["e2el", None] = [a + sum(gap) for a, gap in zip(firsts, gaps, strict=True)]
        for time in TIMES:
            for statistic in STATISTICS:
                key = f"{statistic}_{time}"
                told_ms = told.get(f"{key}_ms")
                found[time, statistic] = _over(
                    told.get(key) if told_ms is None else told_ms, 1 if told_ms is None else 1000
                )
        yield found


def latency(path: Path) -> Iterator[Samples]:
    """Read a result of ``vllm bench latency``."""
    (told,) = values_of(path)
    for one in told["latencies"]:
        yield {("e2el", None): [one]}


def throughput(path: Path) -> Iterator[Samples]:
    """Read a result of ``vllm bench throughput``."""
    (told,) = values_of(path)
    yield {
        ("total_token_throughput", None): [told["tokens_per_second"]],
        ("request_throughput", None): [told["requests_per_second"]],
    }


def guidellm(path: Path) -> Iterator[Samples]:
    """Read a report of guidellm."""
    (told,) = values_of(path)
    names = {"ttft": "time_to_first_token_ms", "tpot": "inter_token_latency_ms"}
    for one in told["benchmarks"]:
        metrics, done = one["metrics"], one["requests"]["successful"]
        totals = metrics.get("request_totals") or one.get("request_totals")
        if totals["errored"] or not totals["successful"]:
            continue
        tokens = metrics["output_token_count"]["successful"]["total_sum"]
        found = {
            ("output_throughput", None): [tokens / one["duration"]],
            ("request_throughput", None): [totals["successful"] / one["duration"]],
        }
        for time, name in {**names, "e2el": "request_latency"}.items():
            part = 1000 if name.endswith("_ms") else 1
            each = [request.get(name) for request in done]
            found[time, None] = [value / part for value in each if value is not None]
            spread = _at(metrics, name, "successful")
            whole = (_at(spread, "median"), _at(spread, "percentiles", "p99"))
            for statistic, value in zip(STATISTICS, whole, strict=True):
                found[time, statistic] = _over(value, part)
        yield found


def aiperf(path: Path) -> Iterator[Samples]:
    """Read a report of aiperf, and the requests beside it."""
    (told,) = values_of(path)
    failed = [_at(told, key, "avg") for key in ("request_error_rate", "error_request_count")]
    if any(failed) or told.get("was_cancelled"):
        return
    names = {
        "ttft": "time_to_first_token",
        "tpot": "inter_token_latency",
        "itl": "inter_chunk_latency",
        "e2el": "request_latency",
    }
    parts = {"ms": 1000, "sec": 1, "s": 1, "us": 1e6, "ns": 1e9}
    found: dict[tuple[str, str | None], list[float]] = {}
    for rate, name in (
        ("output_throughput", "output_token_throughput"),
        ("request_throughput", "request_throughput"),
    ):
        found[rate, None] = [_at(told, name, "avg")]
    for time, name in names.items():
        for statistic, words in STATISTICS.items():
            value = _at(told, name, words[-1])
            found[time, statistic] = _over(value, parts.get(_at(told, name, "unit"), math.nan))
    yield found
    requests = path.with_name("profile_export.jsonl")
    for one in values_of(requests) if requests.is_file() else ():
        data = one["metadata"]
        if (data.get("phase_kind") or data.get("benchmark_phase")) in {"profiling", None}:
            for time, name in names.items():
                metric = one["metrics"].get(name) or {"value": []}
                value = metric["value"] if isinstance(metric["value"], list) else [metric["value"]]
                part = parts[metric["unit"]] if value else 1
                found.setdefault((time, None), []).extend(each / part for each in value)
    yield found


def lm_eval(path: Path) -> Iterator[Samples]:
    """Read an evaluation of lm-eval: its scores, and each document's."""
    (told,) = values_of(path)
    found: dict[tuple[str, str | None], list[float]] = {}
    date = path.stem.partition("_")[2]
    for task, scores in told["results"].items():
        metric = "accuracy." + task.removeprefix("hybridwatch_")
        found[metric, "mean"] = [score for score in scores.values() if not isinstance(score, str)]
        samples = path.with_name(f"samples_{task}_{date}.jsonl")
        if samples.is_file():
            rows = values_of(samples)
            strict = [row for row in rows if "strict" in row["filter"]] or rows
            found[metric, None] = [
                row[row["metrics"][0]] for row in strict if row["filter"] == strict[0]["filter"]
            ]
    yield found


def inferencex(path: Path) -> Iterator[Samples]:
    """Read rows of InferenceX, of either form."""
    for row in values_of(path):
        parts = [row.get(key) for key in ("tp", "pp", "pcp_size")]
        total = decode = row.get("num_gpus") or math.prod(one for one in parts if one is not None)
        if str(row.get("is_multinode")).lower() == "true" and not row.get("num_gpus"):
            decode = row["num_decode_gpu"]
            total = row["num_prefill_gpu"] + decode
            decode = decode or total
        found = {("total_token_throughput", None): [row["tput_per_gpu"] * total]}
        found["output_throughput", None] = [(row.get("output_tput_per_gpu") or 0) * decode]
        is_agentic = "scenario_type" in row
        if is_agentic and row["num_requests_successful"] < row["num_requests_total"]:
            continue
        for time in TIMES:
            names = {"tpot": ("tpot", "itl"), "e2el": ("e2el", "ttlt")}.get(time, (time,))
            for statistic, words in STATISTICS.items():
                keys = [
                    f"{word}_{name}"
                    for name in (names if is_agentic else (time,))
                    for word in (words if is_agentic else (statistic,))
                ]
                value = next((row[key] for key in keys if row.get(key) is not None), None)
                found[time, statistic] = [value]
        yield found


def asv(path: Path) -> Iterator[Samples]:
    """Read a result file of asv: a trial may hold any number of it, or the inverse of one."""
    (told,) = values_of(path)
    yield {("asv", None): list(_numbers(told["results"]))}


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield value


PLAIN: Mapping[str, Callable[[Path], Iterator[Samples]]] = {
    "vllm-bench-serve": serve,
    "vllm-bench-latency": latency,
    "vllm-bench-throughput": throughput,
    "guidellm": guidellm,
    "aiperf": aiperf,
    "lm-eval": lm_eval,
    "inferencex": inferencex,
    "asv": asv,
}
"""By the format that ingest says a file is in."""


def explains(reading: Samples, metric: str, statistic: str | None, values: Sequence[float]) -> bool:
    """Whether a reading of a file has these very values."""
    told = reading.get(("asv", None))
    if told is not None:
        return all(
            any(_same(one, value) or _same(1, value * one) for one in told) for value in values
        )
    told = reading.get((metric, statistic), [])
    if statistic == "mean":  # a score among others
        return any(_same(one, value) for one in told for value in values)
    return len(told) == len(values) and all(map(_same, told, values))


def _same(told: float | None, value: float) -> bool:
    return told is not None and math.isclose(told, value, rel_tol=1e-9, abs_tol=1e-9)
