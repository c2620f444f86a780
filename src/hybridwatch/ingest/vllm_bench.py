"""JSON of ``vllm bench serve``, ``throughput`` and ``latency`` (``vllm/benchmarks/*.py``).

``serve --append-result`` writes several results into one file; those of one load become trials of
one run. What ``--save-detailed`` keeps is read as raw values. Without it only what the client
reduced a trial to is there, and is kept as that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.ingest.document import Document, Node
from hybridwatch.ingest.foreign import Given, Told, after, run_of, short
from hybridwatch.record.client import accepted_drafts, latencies
from hybridwatch.record.run import Failure, Phase, Run, Sample, Trial

_ASKED: Final = (
    "backend", "endpoint_type", "num_prompts", "request_rate", "burstiness", "max_concurrency",
    "total_input_tokens",
)  # fmt: skip
_REDUCED: Final = ("median", "p99")


def is_serve(document: Document) -> bool:
    """Whether these are results of ``serve``."""
    first = Node(document.lines[0])
    return all(key in first for key in ("request_throughput", "output_throughput", "completed"))


def is_throughput(document: Document) -> bool:
    """Whether this is a result of ``throughput``."""
    return all(key in Node(document.root) for key in ("elapsed_time", "tokens_per_second"))


def is_latency(document: Document) -> bool:
    """Whether this is a result of ``latency``."""
    return all(key in Node(document.root) for key in ("avg_latency", "latencies"))


def is_for_hud(document: Document) -> bool:
    """Whether this is what vLLM writes beside a result for PyTorch's HUD: the same once more."""
    root = document.root
    first = Node(root[0]) if isinstance(root, list) and root else Node(None)
    return all(key in first for key in ("benchmark", "model", "metric"))


def read_serve(document: Document, given: Given) -> Iterator[Run]:
    """Read every result; neighbours of one load are trials of one run."""
    for (_, build, _), group in groupby(document.nodes, key=_load_of):
        results = list(group)
        trials = [_trial(result) for result in results]
        asked = _asked(results[0])
        told = Told(
            format="vllm-bench-serve",
            tool="vllm bench serve",
            scenario=f"vllm-bench-serve/{asked['model']}",
            asked=asked,
            started_at=trials[0].started_at,
            finished_at=after(trials[-1].started_at, trials[-1].duration_s),
            trials=trials,
            build=build,
            # The client writes local time and does not say of which zone.
            unknown=("harness.version", "started_at", "finished_at"),
        )
        yield run_of(document, told, given)


def read_throughput(document: Document, given: Given) -> Iterator[Run]:
    """Read the one trial; its file has neither time nor model."""
    root = Node(document.root)
    seconds, tokens = root.at("elapsed_time").number(), root.at("total_num_tokens").number()
    asked = {"requests": root.at("num_requests").number(), "tokens": tokens}
    samples = (
        Sample("total_token_throughput", (root.at("tokens_per_second").number(),)),
        Sample("request_throughput", (root.at("requests_per_second").number(),)),
    )
    yield _offline(document, given, "throughput", asked, [(seconds, samples)])


def read_latency(document: Document, given: Given) -> Iterator[Run]:
    """Read every pass as a trial: a batch of requests that start and end together."""
    root = Node(document.root)
    passes = [
        (seconds, (Sample("e2el", (seconds,)),)) for seconds in root.at("latencies").numbers()
    ]
    if not passes:
        raise root.at("latencies").wrong("at least one number")
    yield _offline(document, given, "latency", None, passes)


def _offline(
    document: Document,
    given: Given,
    what: str,
    asked: Any,
    passes: Sequence[tuple[float, tuple[Sample, ...]]],
) -> Run:
    finished = document.written_at
    at = finished - timedelta(seconds=sum(seconds for seconds, _ in passes))
    started, trials = at, []
    for seconds, samples in passes:
        trials.append(Trial(0, 0, Phase.PERFORMANCE, at, seconds, samples=samples))
        at = after(at, seconds)
    told = Told(
        format=f"vllm-bench-{what}",
        tool=f"vllm bench {what}",
        scenario=f"vllm-bench-{what}",
        asked=asked,
        started_at=started,
        finished_at=finished,
        trials=trials,
        unknown=("harness.version", "started_at", "finished_at", "scenario.digest"),
    )
    return run_of(document, told, given)


def _asked(result: Node) -> dict[str, Any]:
    asked = {key: result.value.get(key) for key in _ASKED}
    return {**asked, "model": short(result.at("model_id").text())}


def _load_of(result: Node) -> tuple[str, str | None, str]:
    """What makes results repeats of each other; ``--metadata build=`` names the build."""
    build = result.at("build").text() if "build" in result else None
    return str(_asked(result)), build, str(result.value.get("label"))


def _trial(result: Node) -> Trial:
    started = _moment(result.at("date"))
    seconds = result.at("duration").number()
    failed = int(result.at("failed").number()) if "failed" in result else 0
    blank = Trial(0, 0, Phase.PERFORMANCE, started, seconds, client_result=result.value)
    if failed:
        asked = int(result.at("num_prompts").number())
        return replace(blank, failure=Failure(f"{failed} of {asked} requests failed", ""))
    samples = [
        Sample(name, (result.at(name).number(),))
        for name in ("output_throughput", "request_throughput")
    ]
    samples += _raw(result) if "ttfts" in result else _reduced(result)
    samples += _acceptance(result)
    return replace(blank, samples=tuple(samples))


def _moment(node: Node) -> datetime:
    try:
        return datetime.strptime(node.text(), "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise node.wrong("a date such as 20261121-091500") from None


def _raw(result: Node) -> list[Sample]:
    firsts = result.at("ttfts").numbers()
    gaps = [gap.numbers() for gap in result.at("itls").each()]
    lengths = result.at("output_lens").numbers()
    if not len(firsts) == len(gaps) == len(lengths):
        found = f"{len(firsts)}, {len(gaps)} and {len(lengths)}"
        raise IngestError(f"ttfts, itls, output_lens: expected lists of one length, found {found}")
    return [sample for sample in latencies(firsts, gaps, lengths) if sample.values]


def _reduced(result: Node) -> list[Sample]:
    return [
        Sample(name, (result.at(f"{statistic}_{name}_ms").number() / 1000,), statistic)
        for name in ("ttft", "tpot", "itl", "e2el")
        for statistic in _REDUCED
        if f"{statistic}_{name}_ms" in result
    ]


def _acceptance(result: Node) -> Iterator[Sample]:
    if not result.value.get("spec_decode_num_drafts"):
        return
    yield from accepted_drafts(
        result.at("spec_decode_acceptance_length").number(),
        result.at("spec_decode_per_position_acceptance_rates").numbers(),
    )
