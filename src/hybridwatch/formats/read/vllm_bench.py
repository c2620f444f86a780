"""JSON of ``vllm bench serve``, ``throughput`` and ``latency`` (``vllm/benchmarks/*.py``).

``serve --append-result`` writes several results into one file; those of one load become trials of
one run. What ``--save-detailed`` keeps is read as raw values. Without it only what the client
reduced a trial to is there, and is kept as that. The results of ``benchmark_serving.py``, its
predecessor since vLLM 0.4, and of its descendants in InferenceX are read too.

Lists for PyTorch's HUD, version 3, of vLLM alone (0.27.1, ``vllm/benchmarks/lib/utils.py``): vLLM
writes one, ``*.pytorch.json``, next to a result: a record for each metric, each with all else that
the result says in ``extra_info``. Put together they are that result again, but its requests. Where
``extra_info`` was taken out, the times are left. Next to the result a list is not read again.

Results of SGLang's ``bench_serving`` (0.5.23, ``sglang/benchmark/serving.py``) are JSON lines in
vLLM's words, whose client it came from; each call appends one, and neighbours of one load are
trials of one run. No line has a date. The model is in what the server says of itself,
``server_info``, which only SGLang's own server does. Left out: ``accept_length``, the server's mean
since it started and not the trial's; a latency of 0, which means that nothing was streamed. A line
does not count requests that failed: only what ``--output-details`` keeps shows them.
"""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.formats.read.document import DocumentNode, ForeignDocument
from hybridwatch.formats.read.foreign import (
    ForeignRun,
    build_trial,
    build_untimed,
    model_name,
    short,
)
from hybridwatch.records.readings import accepted_drafts, latencies
from hybridwatch.records.run import UNKNOWN, Failure, Sample, Trial

_WORKLOAD: Final = (
    "backend", "endpoint_type", "num_prompts", "request_rate", "burstiness", "max_concurrency",
    "total_input_tokens",
)  # fmt: skip
_WORKLOAD_OF_SOME: Final = (
    "ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps",
    "dataset_name", "seed", "random_input_len", "random_output_len", "goodput",  # by --metadata
    "best_of", "use_beam_search",  # benchmark_serving.py until vLLM 0.7
    "mode", "workload", "num_conversations", "turns_per_conversation",
    "multi_turn_concurrency", "inter_turn_delay_ms",  # vllm-bench
)  # fmt: skip
_REDUCED: Final = ("median", "p99")
_NAMES: Final = ("ttft", "tpot", "itl", "e2el")
_LATENCY: Final = re.compile(r"(?<![a-z])(ttft|tpot|itl|e2el|latency)(?![a-z])", re.IGNORECASE)
_REQUEST_RATES: Final = ("request_throughput", "request_inthroughput")
"""Requests a second; the second by a slip of the pen in ``benchmark_serving.py`` of early 2024."""
_IN_SECONDS: Final = "good_completed"
"""A key of InferenceX's ``benchmark_serving_random.py``: its names without ``_ms`` are seconds."""
_START: Final = "benchmark_start_time_unix"
_REPEATS: Final = "individual_result_files"
_SWEPT: Final = "run_number"
"""Last key of a result before those that ``vllm bench sweep`` varied, of engine and client."""


def is_serve(document: ForeignDocument) -> bool:
    """Whether these are results of ``serve``."""
    first = document.first
    return "completed" in first and any(key in first for key in _REQUEST_RATES)


def is_throughput(document: ForeignDocument) -> bool:
    """Whether this is a result of ``throughput``."""
    return document.root.has("elapsed_time", "tokens_per_second")


def is_latency(document: ForeignDocument) -> bool:
    """Whether this is a result of ``latency``."""
    return document.root.has("avg_latency", "latencies")


def is_median(document: ForeignDocument) -> bool:
    """Whether this is perf-eval's median of results that lie next to it, and would count twice."""
    root = document.root
    names = root.value.get(_REPEATS) if "completed" in root else None
    if not isinstance(names, list) or not names:
        return False
    return all((document.path.parent / str(name)).is_file() for name in names)


def is_summary(document: ForeignDocument) -> bool:
    """Whether this is a sweep's list of results, each of which lies next to it once more."""
    rows = list(document.rows)
    return bool(rows) and all(_lies_beside(row, document) for row in rows)


def _lies_beside(result: DocumentNode, document: ForeignDocument) -> bool:
    """Whether a sweep's result has a file of its own next to this one."""
    if _SWEPT not in result:
        return False
    path = document.path.with_name(f"run={result.at(_SWEPT).count()}.json")
    return path != document.path and path.is_file()


def read_serve(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read every result; neighbours of one load are trials of one run."""
    rows = (row for row in document.rows if not _lies_beside(row, document))
    for (_, build, _), group in groupby(rows, key=_read_load):
        results = list(group)
        trials = [_trial(result) for result in results]
        workload = _workload(results[0])
        yield ForeignRun(
            tool="vllm bench serve",
            scenario=f"vllm-bench-serve/{workload['model']}",
            workload=workload,
            started_at=trials[0].started_at,
            finished_at=trials[-1].started_at + timedelta(seconds=trials[-1].duration_s),
            trials=trials,
            build=build,
            unknown=tuple(_list_unknown(results)),
        )


def read_throughput(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read the one trial; its file has neither time nor model."""
    root = document.root
    seconds, tokens = root.at("elapsed_time").amount(), root.at("total_num_tokens").amount()
    workload = {"requests": root.at("num_requests").amount(), "tokens": tokens}
    samples = (
        Sample("total_token_throughput", (root.at("tokens_per_second").amount(),)),
        Sample("request_throughput", (root.at("requests_per_second").amount(),)),
    )
    passes = [(seconds, samples)]
    yield build_untimed(
        document, "vllm bench throughput", workload, passes, "vllm-bench-throughput"
    )


def read_latency(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read every pass as a trial: a batch of requests that start and end together."""
    root = document.root
    passes = [
        (seconds, (Sample("e2el", (seconds,)),)) for seconds in root.at("latencies").amounts()
    ]
    if not passes:
        raise root.at("latencies").wrong("at least one number")
    yield build_untimed(document, "vllm bench latency", None, passes, "vllm-bench-latency")


def _workload(result: DocumentNode) -> dict[str, Any]:
    workload = {key: result.value.get(key) for key in _WORKLOAD}
    workload |= {key: result.at(key).value for key in _WORKLOAD_OF_SOME if key in result}
    if _SWEPT in result:
        workload |= dict(list(result.value.items())[list(result.value).index(_SWEPT) + 1 :])
    return {**workload, "model": model_name(result.at("model_id"))}


def _list_unknown(results: Sequence[DocumentNode]) -> Iterator[str]:
    yield "harness.version"
    if _START not in results[0] and not results[0].at("date").text().endswith("Z"):
        yield from ("started_at", "finished_at")  # local time of an unknown zone
    if any("request_goodput" in one and "goodput" not in one for one in results):
        yield "scenario.settings.goodput"


def _read_load(result: DocumentNode) -> tuple[str, str | None, str]:
    """What makes results repeats of each other; ``--metadata build=`` names the build."""
    build = result.at("build").text() if "build" in result else None
    return str(_workload(result)), build, str(result.value.get("label"))


def _trial(result: DocumentNode) -> Trial:
    started = _started(result)
    seconds = result.at("duration").amount()
    lost = _lost(result)
    found = _samples(result) if lost is None else Failure(lost, "")
    return replace(build_trial(started, seconds, found), client_result=result.value)


def _samples(result: DocumentNode) -> Iterator[Sample]:
    yield from _rates(result)
    yield from read_requests(result) if result.value.get("ttfts") else read_statistics(result)
    if result.value.get("spec_decode_num_drafts"):
        yield from accepted_drafts(
            result.at("spec_decode_acceptance_length").amount(),
            result.at("spec_decode_per_position_acceptance_rates").amounts(),
        )


def _lost(result: DocumentNode) -> str | None:
    completed = result.at("completed").count()
    if "failed" in result:
        failed = result.at("failed").count()
        wanted = result.at("num_prompts").count() if "num_prompts" in result else completed + failed
        if failed:
            return f"{failed} of {wanted} requests failed"
    else:
        # A data set may have held fewer than were requested. That looks like requests that
        # were lost: a client may list only those that were answered.
        wanted = result.at("num_prompts").count()
        if completed < wanted:
            return f"{completed} of {wanted} requests completed"
    return None if completed else f"0 of {wanted} requests completed"


def _rates(result: DocumentNode) -> Iterator[Sample]:
    # Nothing is generated where prompts are only embedded, and goodput needs goals.
    for name in ("output_throughput", "total_token_throughput", "request_goodput"):
        if name in result:
            yield Sample(name, (result.at(name).amount(),))
    key = next((key for key in _REQUEST_RATES if key in result), _REQUEST_RATES[0])
    yield Sample("request_throughput", (result.at(key).amount(),))


def _started(result: DocumentNode) -> datetime:
    if _START in result:
        return result.at(_START).moment()
    date = result.at("date")
    try:
        if date.text().endswith("Z"):
            return datetime.fromisoformat(date.text())
        return datetime.strptime(date.text(), "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise date.wrong("a date such as 20261121-091500") from None


def read_requests(result: DocumentNode) -> list[Sample]:
    """Read every request of a result."""
    firsts = result.at("ttfts").amounts()
    gaps = [gap.amounts() for gap in result.at("itls").each()]
    lengths = result.at("output_lens").amounts()
    if not len(firsts) == len(gaps) == len(lengths):
        found = f"{len(firsts)}, {len(gaps)} and {len(lengths)}"
        raise IngestError(f"ttfts, itls, output_lens: expected lists of one length, found {found}")
    completed = result.at("completed").count()
    if len(firsts) != completed:
        raise IngestError(f"ttfts: expected {completed}, one a request, found {len(firsts)}")
    return [sample for sample in latencies(firsts, gaps, lengths) if sample.values]


def read_statistics(result: DocumentNode) -> list[Sample]:
    """Read what the requests of a result were reduced to."""
    found = []
    for name in _NAMES:
        for statistic in _REDUCED:
            node = _in_seconds(result, f"{statistic}_{name}")
            if node is not None:
                found.append(Sample(name, (node,), statistic))
    _check_read(result, {sample.metric for sample in found})
    return found


def _check_read(result: DocumentNode, read: Set[str]) -> None:
    """Refuse a result whose latencies have names that are not read: they would be lost."""
    for key, node in result.items():
        named = _LATENCY.search(key)
        is_given = isinstance(node.value, dict) or (
            isinstance(node.value, int | float) and not isinstance(node.value, bool)
        )
        if named is None or not is_given or named[1] in read or (read and named[1] not in _NAMES):
            continue
        wanted = f"{named[1]}_ms" if named[1] in _NAMES else "ttft_ms"
        raise node.wrong(f"names that are read, such as median_{wanted} and p99_{wanted}")


def _in_seconds(result: DocumentNode, name: str) -> float | None:
    """Read a time; one without a unit in its name only from a writer whose unit is known."""
    if f"{name}_ms" in result:
        return result.at(f"{name}_ms").amount() / 1000
    if name not in result:
        return None
    if _IN_SECONDS not in result.value:
        raise result.at(name).wrong(f"the name {name}_ms, since nothing else names its unit")
    return result.at(name).amount()


_SUFFIX: Final = ".pytorch"
_READERS: Final = (
    (is_serve, read_serve),
    (is_throughput, read_throughput),
    (is_latency, read_latency),
)
_PASSES: Final = "latency"
"""The metric of ``vllm bench latency``, which its result calls ``latencies``."""
_OUTPUTS: Final = {"result_dir", "result_filename", "output_json", "label", "metadata"}
"""Arguments of vLLM's clients that say where a result goes and what it is called."""


def is_hud(document: ForeignDocument) -> bool:
    """Whether this is a list for PyTorch's HUD."""
    return document.first.has("benchmark", "model", "metric")


def is_repeated(document: ForeignDocument) -> bool:
    """Whether the result that such a list repeats lies next to it."""
    name = document.path.stem.removesuffix(_SUFFIX)
    names = {f"{name}.json", f"{name}.jsonl"} - {document.path.name}
    folder = document.path.parent
    return is_hud(document) and any((folder / one).is_file() for one in names)


def read_hud(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read the result that the records of one model and one call make together."""
    for _, group in groupby(document.rows, key=_call):
        records = list(group)
        whole = ForeignDocument(document.path, document.raw, (_join(records),))
        workload = _hud_workload(records[0])
        read = next((read for fits, read in _READERS if fits(whole)), None)
        if read is None:
            yield _read_times(whole, workload)
        elif read is read_serve:
            yield from read(whole)
        else:  # these results have no model
            for run in read(whole):
                asked = {**workload, "requests": run.workload}
                yield replace(run, scenario=f"{run.scenario}/{workload['model']}", workload=asked)


def _hud_workload(record: DocumentNode) -> dict[str, Any]:
    info = record.at("benchmark").value.get("extra_info") or {}
    args = {key: one for key, one in (info.get("args") or {}).items() if key not in _OUTPUTS}
    return {"model": short(record.at("model", "name").text()), "args": args}


def _call(record: DocumentNode) -> str:
    return f"{record.at('model').value} {record.at('benchmark').value}"


def _join(records: list[DocumentNode]) -> DocumentNode:
    result: dict[str, Any] = {}
    for record in records:
        metric = record.at("metric")
        name, values = metric.at("name").text(), metric.at("benchmark_values")
        result |= metric.value.get("extra_info") or {}
        is_latency = name == _PASSES
        result |= {"latencies": values.value} if is_latency else {name: values.first("value").value}
    return DocumentNode(result)


def _read_times(document: ForeignDocument, workload: dict[str, Any]) -> ForeignRun:
    samples = read_statistics(document.root)
    if not samples:
        wanted = "metrics that vLLM writes, such as median_ttft_ms, and extra_info with the rest"
        raise IngestError(f"metric.name: expected {wanted}, found {', '.join(document.root.value)}")
    return build_untimed(document, "hud", workload, [(0.0, samples)])


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


def is_sglang(document: ForeignDocument) -> bool:
    """Whether these are results of ``bench_serving``."""
    first = document.first
    return first.has("completed", "duration", "median_e2e_latency_ms") and "model_id" not in first


def read_sglang(document: ForeignDocument) -> Iterator[ForeignRun]:
    """Read every line; neighbours of one load are trials of one run."""
    for _, group in groupby(
        document.rows, key=lambda one: (str(_sglang_workload(one)), str(one.value.get("tag")))
    ):
        results = list(group)
        workload = _sglang_workload(results[0])
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


def _sglang_workload(result: DocumentNode) -> dict[str, Any]:
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
