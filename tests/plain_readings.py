"""What a foreign file says, read in the plainest way: the other opinion on what ingest reads.

Nothing here is checked or named; it is the test of mutated files that holds both against each
other. A reading is every trial without a failed request that a file could give: its samples by
metric and statistic.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

Samples = dict[tuple[str, str | None], list[Any]]
TIMES = ("ttft", "tpot", "itl", "e2el")
_LONGEST_NAME = 100
_ODDITIES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
STATISTICS = {"median": ("median", "p50"), "p99": ("p99",)}


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _over(value: Any, part: float) -> list[float]:
    try:
        return [value / part]
    except (OverflowError, TypeError):
        return []


def values_of(path: Path) -> list[Any]:
    """Read JSON or JSON lines, without NaN and infinity."""
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
    lines = [text] if path.suffix == ".json" else text.splitlines()
    try:
        told = [json.loads(line, parse_constant=lambda _: None) for line in lines if line.strip()]
    except ValueError:  # requests that cannot be read are left out
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
        rates = ("output_throughput", "total_token_throughput", "request_goodput")
        found: Samples = {(name, None): [told.get(name)] for name in rates}
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
        both = _at(metrics, "total_token_count", "successful", "total_sum")
        found: Samples = {
            ("output_throughput", None): [tokens / one["duration"]],
            ("total_token_throughput", None): _over(both, one["duration"]),
            ("request_throughput", None): [totals["successful"] / one["duration"]],
        }
        for time, name in {**names, "e2el": "request_latency"}.items():
            part = 1000 if name.endswith("_ms") else 1
            each = [_at(request, name) for request in done]
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
    found: Samples = {}
    for rate, name in (
        ("output_throughput", "output_token_throughput"),
        ("total_token_throughput", "total_token_throughput"),
        ("request_throughput", "request_throughput"),
    ):
        found[rate, None] = [_at(told, name, "avg")]
    for time, name in names.items():
        for statistic, words in STATISTICS.items():
            value = _at(told, name, words[-1])
            found[time, statistic] = _over(value, _part(_at(told, name)))
    yield found
    with suppress(*_ODDITIES):  # requests that cannot be read are left out
        found |= _requests(path.with_name("profile_export.jsonl"), names)
    yield found


def _requests(path: Path, names: Mapping[str, str]) -> Samples:
    found: Samples = {}
    for one in values_of(path) if path.is_file() else ():
        data = one["metadata"]
        if (data.get("phase_kind") or data.get("benchmark_phase")) in {"profiling", None}:
            for time, name in names.items():
                metric = one["metrics"].get(name) or {"value": []}
                value = metric["value"] if isinstance(metric["value"], list) else [metric["value"]]
                part = _part(metric)
                found.setdefault((time, None), []).extend(each / part for each in value)
    return found


def _part(metric: Any) -> float:
    parts = {"ms": 1000, "sec": 1, "s": 1, "us": 1e6, "ns": 1e9}
    return parts.get(str(_at(metric, "unit")), math.nan)


def lm_eval(path: Path) -> Iterator[Samples]:
    """Read an evaluation of lm-eval: its scores, and each document's."""
    (told,) = values_of(path)
    found: Samples = {}
    date = path.stem.partition("_")[2]
    for task, scores in told["results"].items():
        metric = "accuracy." + task.removeprefix("hybridwatch_")
        numbers = scores.values() if isinstance(scores, dict) else ()  # a group's are not read
        found[metric, "mean"] = [score for score in numbers if not isinstance(score, str)]
        samples = path.with_name(f"samples_{task}_{date}.jsonl")
        if len(task) < _LONGEST_NAME and samples.is_file():
            with suppress(*_ODDITIES):  # documents that cannot be read are left out
                rows = values_of(samples)
                strict = [row for row in rows if "strict" in row["filter"]] or rows
                found[metric, None] = [
                    row[strict[0]["metrics"][0]]
                    for row in strict
                    if row["filter"] == strict[0]["filter"]
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
        found: Samples = {("total_token_throughput", None): [row["tput_per_gpu"] * total]}
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


def sglang(path: Path) -> Iterator[Samples]:
    """Read results of SGLang's ``bench_serving``."""
    for told in values_of(path):
        found: Samples = {
            ("output_throughput", None): [told.get("output_throughput")],
            ("total_token_throughput", None): [told.get("total_throughput")],
            ("request_throughput", None): [told.get("request_throughput")],
        }
        firsts, gaps, lengths = (told.get(key) for key in ("ttfts", "itls", "output_lens"))
        if firsts:
            pairs = list(zip(gaps, lengths, strict=True))
            found["ttft", None] = firsts
            found["tpot", None] = [sum(gap) / (length - 1) for gap, length in pairs if length > 1]
            found["itl", None] = [one for gap in gaps for one in gap]
            found["e2el", None] = [a + sum(gap) for a, gap in zip(firsts, gaps, strict=True)]
        for time in TIMES:
            name = "e2e_latency" if time == "e2el" else time
            for statistic in STATISTICS:
                found[time, statistic] = _over(told.get(f"{statistic}_{name}_ms"), 1000)
        yield found


def inference_perf(path: Path) -> Iterator[Samples]:
    """Read a report of inference-perf, and the requests beside it."""
    (told,) = values_of(path)
    done = told["successes"]
    names = {
        "ttft": "time_to_first_token",
        "tpot": "time_per_output_token",
        "itl": "inter_token_latency",
        "e2el": "request_latency",
    }
    found: Samples = {
        ("output_throughput", None): [done["throughput"]["output_tokens_per_sec"]],
        ("total_token_throughput", None): [done["throughput"]["total_tokens_per_sec"]],
        ("request_throughput", None): [done["throughput"]["requests_per_sec"]],
    }
    for time, name in names.items():
        for statistic, words in STATISTICS.items():
            values = [_at(done, "latency", name, word) for word in words]
            found[time, statistic] = [one for one in values if one is not None][:1]
    yield found
    with suppress(*_ODDITIES):  # requests that cannot be read are left out
        for one in values_of(path.with_name("per_request_lifecycle_metrics.json")):
            for time, name in names.items():
                key = "inter_token_latencies" if time == "itl" else name
                value = one["computed_metrics"].get(key)
                several = value if isinstance(value, list) else [value]
                found.setdefault((time, None), []).extend(v for v in several if v is not None)
    yield found


def llmperf(path: Path) -> Iterator[Samples]:
    """Read a summary of LLMPerf, and the requests beside it."""
    (told,) = values_of(path)
    names = {"ttft": "ttft_s", "e2el": "end_to_end_latency_s"}
    per_minute = told.get("results_num_completed_requests_per_min")
    found: Samples = {
        ("output_throughput", None): [told["results_mean_output_throughput_token_per_s"]],
        ("request_throughput", None): _over(per_minute, 60),
    }
    for time, name in names.items():
        for statistic, words in STATISTICS.items():
            found[time, statistic] = [told.get(f"results_{name}_quantiles_{words[-1]}")]
    yield found
    with suppress(*_ODDITIES):
        beside = path.with_name(path.name.replace("_summary", "_individual_responses"))
        for time, name in names.items():
            found[time, None] = [one[name] for one in values_of(beside)]
    yield found


def hud(path: Path) -> Iterator[Samples]:
    """Read records for PyTorch's HUD, any part of which may be of one result."""
    found: Samples = {}
    for told in values_of(path):
        metric = told["metric"]
        values, extra = metric["benchmark_values"], metric.get("extra_info") or {}
        statistic, _, name = metric["name"].removesuffix("_ms").partition("_")
        found[name, statistic] = _over(values[0], 1000)
        for rate in ("output_throughput", "request_throughput"):
            found[rate, None] = [extra.get(rate)]
        yield found
        for one in values:
            yield {("e2el", None): [one]}


def names_with_values(path: Path) -> Iterator[Samples]:
    """Read a file of benchmarks: a trial may hold any number of it, in a unit of its own."""
    numbers = [one for told in values_of(path) for one in _numbers(told)]
    yield {("asv", None): [part for one in numbers for size in _SIZES for part in _over(one, size)]}


_SIZES = (1, 1e3, 1e6, 1e9)


PLAIN: Mapping[str, Callable[[Path], Iterator[Samples]]] = {
    "vllm-bench-serve": serve,
    "vllm-bench-latency": latency,
    "vllm-bench-throughput": throughput,
    "guidellm": guidellm,
    "aiperf": aiperf,
    "lm-eval": lm_eval,
    "inferencex": inferencex,
    "asv": asv,
    "sglang": sglang,
    "inference-perf": inference_perf,
    "genai-perf": aiperf,
    "llmperf": llmperf,
    "hud": hud,
    "pytest-benchmark": names_with_values,
    "google-benchmark": names_with_values,
    "github-action-benchmark": names_with_values,
    "bencher": names_with_values,
}
"""By the format that ingest says a file is in."""


def explains(reading: Samples, metric: str, statistic: str | None, values: Sequence[float]) -> bool:
    """Whether a reading of a file has these very values."""
    numbers = reading.get(("asv", None))
    if numbers is not None:
        return all(
            any(_same(one, value, 1 / value) for one in numbers) for value in values if value
        )
    told = reading.get((metric, statistic), [])
    if statistic == "mean":  # a score among others
        return any(_same(one, value) for one in told for value in values)
    return len(told) == len(values) and all(map(_same, told, values))


def _same(told: float | None, *values: float) -> bool:
    try:
        return told is not None and any(
            math.isclose(told, value, rel_tol=1e-9, abs_tol=1e-9) for value in values
        )
    except (OverflowError, TypeError):
        return False
