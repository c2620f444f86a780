"""The one list of metrics.

Names are vLLM's (``vllm/benchmarks/serve.py``). ``accuracy.<task>`` and ``contract.<name>`` are
families: any member is a metric with the family's properties.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from hybridwatch.metrics.metric import Direction, Kind, Metric, Unit

_TIME_MARGIN: Final = 0.03
_RATE_MARGIN: Final = 0.03
_ACCURACY_MARGIN: Final = 0.02
_ACCURACY_RELEVANCE: Final = 0.01
"""A loss of answers that is beyond chance matters from one point on. That nothing was lost can be
shown within the margin of two points only: one point would take thousands of questions."""

DUET_CPU_TIME: Final = "duet_cpu_time"
"""What engines work that are loaded at the same time."""

CURVE_AREA: Final = "curve_area"
"""What a whole sweep of loads is judged by."""

DUET_CURVE_AREA: Final = "duet_curve_area"
"""The same of engines that go through the loads at the same time."""

METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        "output_throughput",
        Unit.TOKENS_PER_SECOND,
        Direction.HIGHER,
        Kind.RATE,
        _RATE_MARGIN,
        "Generated tokens per second of one trial, all requests together.",
    ),
    Metric(
        CURVE_AREA,
        Unit.TOKENS_PER_SECOND,
        Direction.HIGHER,
        Kind.RATE,
        _RATE_MARGIN,
        "Square root of the area under the curve of throughput per GPU over interactivity, from "
        "idle to saturation: all steps 6 % longer take 6 % off it.",
    ),
    Metric(
        DUET_CURVE_AREA,
        Unit.TOKENS_PER_SECOND,
        Direction.HIGHER,
        Kind.RATE,
        _RATE_MARGIN,
        "The same area where both sides go through the loads at the same time, on the same "
        "processors, and seconds are those that the engine worked: neighbours lower both alike.",
    ),
    Metric(
        "total_token_throughput",
        Unit.TOKENS_PER_SECOND,
        Direction.HIGHER,
        Kind.RATE,
        _RATE_MARGIN,
        "Prompt and generated tokens per second of one trial, all requests together.",
    ),
    Metric(
        "request_throughput",
        Unit.REQUESTS_PER_SECOND,
        Direction.HIGHER,
        Kind.RATE,
        _RATE_MARGIN,
        "Finished requests per second of one trial.",
    ),
    Metric(
        "ttft",
        Unit.SECONDS,
        Direction.LOWER,
        Kind.TIME,
        _TIME_MARGIN,
        "Time to first token of each request.",
    ),
    Metric(
        "tpot",
        Unit.SECONDS,
        Direction.LOWER,
        Kind.TIME,
        _TIME_MARGIN,
        "Time per output token of each request, the first token left out.",
    ),
    Metric(
        "itl",
        Unit.SECONDS,
        Direction.LOWER,
        Kind.TIME,
        _TIME_MARGIN,
        "Inter-token latency: time between two tokens of one request.",
    ),
    Metric(
        "e2el",
        Unit.SECONDS,
        Direction.LOWER,
        Kind.TIME,
        _TIME_MARGIN,
        "End-to-end latency of each request.",
    ),
    Metric(
        "engine_cpu_time",
        Unit.SECONDS,
        Direction.LOWER,
        Kind.TIME,
        _TIME_MARGIN,
        "Processor time of the engine, all its processes and threads together, per engine step "
        "that gave tokens. Waiting for a processor is no part of it.",
    ),
    Metric(
        DUET_CPU_TIME,
        Unit.SECONDS,
        Direction.LOWER,
        Kind.TIME,
        _TIME_MARGIN,
        "Processor time of the engine per engine step that gave tokens, while the other side's "
        "engine has the same load on the same processors: neighbours stretch both alike.",
    ),
    Metric(
        "metadata_build_time",
        Unit.SECONDS,
        Direction.LOWER,
        Kind.TIME,
        _TIME_MARGIN,
        "Host time spent building attention metadata, per engine step.",
    ),
    Metric(
        "host_syncs_per_step",
        Unit.COUNT,
        Direction.LOWER,
        Kind.COUNT,
        0.0,
        "Host synchronisations per engine step: on CUDA calls that wait for the device; on a CPU "
        "host reads of tensors (.item(), .tolist(), nonzero, ...), each of which would wait for "
        "the device on a GPU. A rate: steps that begin requests read more than those that decode.",
    ),
    Metric(
        "host_sync_time",
        Unit.SECONDS,
        Direction.LOWER,
        Kind.TIME,
        _TIME_MARGIN,
        "Time that the host waits for the device in an engine step; on CUDA only.",
    ),
    Metric(
        "host_sync_share",
        Unit.RATIO,
        Direction.LOWER,
        Kind.TIME,
        _TIME_MARGIN,
        "Share of an engine step's time in which the host waits for the device; on CUDA only.",
    ),
    Metric(
        "acceptance_length",
        Unit.COUNT,
        Direction.HIGHER,
        Kind.RATE,
        _RATE_MARGIN,
        "Tokens that a step of speculation gives, its own and the accepted drafts: 1 when every "
        "draft is rejected.",
    ),
    Metric(
        "engine_step_rate",
        Unit.STEPS_PER_SECOND,
        Direction.HIGHER,
        Kind.RATE,
        _RATE_MARGIN,
        "Engine steps that gave tokens, per second of one trial.",
    ),
    Metric(
        "batch_occupancy",
        Unit.COUNT,
        Direction.HIGHER,
        Kind.RATE,
        _RATE_MARGIN,
        "Requests that got tokens, per engine step that gave any.",
    ),
    Metric(
        "preemptions",
        Unit.COUNT,
        Direction.LOWER,
        Kind.COUNT,
        0.0,
        "Times in one trial that a running request lost its cache blocks to others, to compute all "
        "of its tokens again later.",
    ),
)

FAMILIES: Final[dict[str, Metric]] = {
    "accuracy": Metric(
        "accuracy",
        Unit.RATIO,
        Direction.HIGHER,
        Kind.PROPORTION,
        _ACCURACY_MARGIN,
        "Share of an lm-eval task's documents answered right.",
        _ACCURACY_RELEVANCE,
    ),
    "acceptance_rate": Metric(
        "acceptance_rate",
        Unit.RATIO,
        Direction.HIGHER,
        Kind.RATE,
        _RATE_MARGIN,
        "Share of the drafts at a position, position_1 the first, that the target accepts.",
    ),
    "contract": Metric(
        "contract",
        Unit.COUNT,
        Direction.LOWER,
        Kind.EXACT,
        0.0,
        "Times an engine's state broke a rule that must always hold; 0 is expected.",
    ),
    "prefix_tokens": Metric(
        "prefix_tokens",
        Unit.COUNT,
        Direction.HIGHER,
        Kind.COUNT,
        0.0,
        "Prompt tokens of a contract trial that were asked of the prefix cache (asked), that need "
        "not be computed (hit), and those that the attention layers by themselves have (attention) "
        "or up to which a Mamba state is kept (mamba).",
    ),
    "asv_time": Metric(
        "asv_time",
        Unit.SECONDS,
        Direction.LOWER,
        Kind.TIME,
        _TIME_MARGIN,
        "Seconds of a benchmark that asv timed, as ingested.",
    ),
    "asv_memory": Metric(
        "asv_memory",
        Unit.BYTES,
        Direction.LOWER,
        Kind.COUNT,
        _TIME_MARGIN,
        "Bytes of a benchmark of memory, as ingested from asv.",
    ),
    "asv_number": Metric(
        "asv_number",
        Unit.COUNT,
        Direction.LOWER,
        Kind.COUNT,
        _TIME_MARGIN,
        "Whatever else asv tracked, in the unit of its benchmark; asv takes lower for better.",
    ),
}

EXPLAINING: Final = frozenset({"engine_step_rate", "batch_occupancy", "preemptions"})
"""Metrics that say why ``output_throughput`` changed (``analysis/attribution.py``). They get no
verdict: to ask the same thing again in other words would only make more false alarms."""

INVERSES: Final[Mapping[str, str]] = {
    "output_throughput": "seconds_per_token",
    "total_token_throughput": "seconds_per_token_read_or_written",
    "request_throughput": "seconds_per_request",
    "acceptance_length": "steps_per_token",
    "engine_step_rate": "seconds_per_step",
    "batch_occupancy": "steps_per_request",
}
"""What one over a metric is called, for tools that know only that lower is better."""

WRONG_TOKENS: Final = "contract.wrong_tokens"
"""Requests whose greedy tokens differ from those of the same engine without graphs and drafts, by
more than a near tie."""

WRONG_ANSWERS: Final = "contract.wrong_answers"
"""Requests whose greedy tokens, or their probabilities, differ from those of an oracle outside the
engine."""

UNREPEATED_TOKENS: Final = "contract.unrepeated_tokens"
"""Requests that were asked twice in one trial, and whose tokens differ from the first time."""

CHANGED_TOKENS: Final = "contract.changed_tokens"
"""Requests whose greedy tokens differ between baseline and contender. No trial has a sample of it:
it is counted when two sides are compared (``analysis.changed_tokens``)."""

_BY_ID: Final = {metric.id: metric for metric in METRICS}


@lru_cache(maxsize=4096)  # every sample of a record asks
def find_metric(metric_id: str) -> Metric:
    """Find a metric by its id, which is one of ``METRICS`` or ``family.member``.

    Raises:
        KeyError: No metric and no family has this name.
    """
    if metric_id in _BY_ID:
        return _BY_ID[metric_id]
    family, dot, member = metric_id.partition(".")
    if dot and member and family in FAMILIES:
        return replace(FAMILIES[family], id=metric_id)
    raise KeyError(metric_id)
