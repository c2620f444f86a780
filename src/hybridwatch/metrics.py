"""What is measured: metrics with unit, direction, kind and margin, and the one list of them.

Names are vLLM's (``vllm/benchmarks/serve.py``). ``accuracy.<task>`` and ``contract.<name>`` are
families: any member is a metric with the family's properties. Statistics (``p99``) come later.
"""

from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, lru_cache
from typing import Final

from hybridwatch.system.home import loaded


class Unit(Enum):
    """Base units; nothing inside hybridwatch is stored in anything else."""

    SECONDS = "s"
    TOKENS_PER_SECOND = "tok/s"
    REQUESTS_PER_SECOND = "req/s"
    STEPS_PER_SECOND = "step/s"
    BYTES = "bytes"
    COUNT = "count"
    RATIO = "1"


class Direction(Enum):
    """Which way is better."""

    LOWER = "lower"
    HIGHER = "higher"

    def is_worse(self, change: float) -> bool:
        """Whether a change goes the bad way, given new minus old, or their ratio less 1."""
        return (change > 0) is (self is Direction.LOWER)

    @property
    def worse(self) -> float:
        """The sign of a change that goes the bad way: 1 or -1."""
        return 1.0 if self is Direction.LOWER else -1.0


class Kind(Enum):
    """What is assumed about the values, and so which test compares them.

    The idea that the unit's nature chooses the test is benchstat's (golang/perf, ``benchmath``).
    """

    EXACT = "exact"
    """Free of noise: one trial a side is enough and any difference counts."""
    COUNT = "count"
    """A whole number of events per unit of work; repeatable, but the work itself may vary."""
    TIME = "time"
    RATE = "rate"
    PROPORTION = "proportion"
    """Right answers out of all questions; compared question by question."""

    @property
    def has_noise(self) -> bool:
        """Whether the machine and the moment move the values, so that a change is a ratio."""
        return self not in {Kind.EXACT, Kind.PROPORTION}

    @property
    def can_be_expected(self) -> bool:
        """Whether equal work gives an equal value, so that a scenario can name it beforehand."""
        return self in {Kind.EXACT, Kind.COUNT}

    @property
    def rank(self) -> int:
        """Place in a report: what must hold, then right answers, then how fast they come."""
        return (Kind.EXACT, Kind.PROPORTION, Kind.RATE, Kind.TIME, Kind.COUNT).index(self)

    @property
    def statistic(self) -> str:
        """By what the values of one trial become one number; a time may have a tail besides."""
        if self is Kind.EXACT:
            return "value"
        return "mean" if self in {Kind.PROPORTION, Kind.COUNT} else "median"

    @property
    def sample(self) -> str:
        """Of what more would settle a question: put again, it would be answered as before."""
        return "document" if self is Kind.PROPORTION else "trial"

    @property
    def change_unit(self) -> str:
        """In what the size of a change is written, of a hundredth each."""
        return "points" if self is Kind.PROPORTION else "%"


REQUEST_BLOCKS: Final = "request_blocks"
CAPACITY_METRICS: Final = {
    "cache_blocks": "blocks",
    "kv_cache_tokens": "tokens",
    "state_bytes": "state_bytes",
}
"""What the cache of an engine at rest holds, with the plugin's name of each."""
START_TIME: Final = "start_time"
FIRST_REQUEST_TIME: Final = "first_request_time"
START_METRICS: Final = (
    START_TIME,
    "weights_time",
    "compile_time",
    "capture_time",
    FIRST_REQUEST_TIME,
)
"""One value for each start of an engine, whatever trials were made on it."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured quantity.

    Attributes:
        id: vLLM's own word where there is one (``ttft``); families as ``family.member``.
        margin: Half-width of the equivalence band as a fraction of the baseline (``0.05`` is 5 %);
            for proportions an absolute difference; 0 for exact metrics.
        relevance: What a change must exceed to matter; ``None`` where that is the margin.
    """

    id: str
    unit: Unit
    better: Direction
    kind: Kind
    margin: float
    doc: str
    relevance: float | None = None

    @property
    def bound(self) -> float:
        """What a change must exceed to matter."""
        return self.margin if self.relevance is None else self.relevance

    @property
    def hangs_on_the_clock(self) -> bool:
        """Whether a noisy machine makes it uncertain: a time, or a rate per time."""
        # Rates per step or per draft have no clock in them.
        is_of_tokens = self.id.partition(".")[0] in {"acceptance_length", "acceptance_rate"}
        return self.kind in {Kind.TIME, Kind.RATE} and not is_of_tokens

    @property
    def is_of_start(self) -> bool:
        """Whether an engine has one value for each of its starts, and none for each trial."""
        return self.id in START_METRICS

    def label(self, statistic: str) -> str:
        """Name the metric as compared by a statistic, which only a time can have several of."""
        return f"{self.id} {statistic}" if self.kind is Kind.TIME else self.id


_MARGIN: Final = 0.03
_MEMORY_MARGIN: Final = 0.05
_ACCURACY_RELEVANCE: Final = 0.01
"""A loss of answers that is beyond chance matters from one point on. That nothing was lost can be
shown within the margin of two points only: one point would take thousands of questions."""


def _time(metric_id: str, doc: str, unit: Unit = Unit.SECONDS) -> Metric:
    return Metric(metric_id, unit, Direction.LOWER, Kind.TIME, _MARGIN, doc)


def _of_start(metric_id: str, doc: str) -> Metric:
    return replace(_time(metric_id, doc), margin=0.1)


def _less(metric_id: str, doc: str, unit: Unit = Unit.COUNT, margin: float = 0.0) -> Metric:
    return Metric(metric_id, unit, Direction.LOWER, Kind.COUNT, margin, doc)


def _more(metric_id: str, doc: str, unit: Unit = Unit.COUNT, margin: float = 0.0) -> Metric:
    return Metric(metric_id, unit, Direction.HIGHER, Kind.COUNT, margin, doc)


def _rate(metric_id: str, unit: Unit, doc: str) -> Metric:
    return Metric(metric_id, unit, Direction.HIGHER, Kind.RATE, _MARGIN, doc)


SEND_LATENESS: Final = "send_lateness"
SLO_REQUEST_RATE: Final = "slo_request_rate"
CURVE_AREA: Final = "curve_area"
DUET_CPU_TIME: Final = "duet_cpu_time"
DUET_CURVE_AREA: Final = "duet_curve_area"

METRICS: Final[tuple[Metric, ...]] = (
    _rate(
        "output_throughput",
        Unit.TOKENS_PER_SECOND,
        "Generated tokens per second of one trial, all requests together.",
    ),
    _rate(
        CURVE_AREA,
        Unit.TOKENS_PER_SECOND,
        "Square root of the area under the curve of throughput per GPU over interactivity, from "
        "idle to saturation: all steps 6 % longer take 6 % off it.",
    ),
    _rate(
        DUET_CURVE_AREA,
        Unit.TOKENS_PER_SECOND,
        "The same area where both sides go through the loads at the same time, on the same "
        "processors, and seconds are those that the engine worked: neighbours lower both alike.",
    ),
    _rate(
        "total_token_throughput",
        Unit.TOKENS_PER_SECOND,
        "Prompt and generated tokens per second of one trial, all requests together.",
    ),
    _rate(
        "request_throughput", Unit.REQUESTS_PER_SECOND, "Finished requests per second of one trial."
    ),
    _rate(
        "request_goodput",
        Unit.REQUESTS_PER_SECOND,
        "Requests per second of one trial that met every goal of latency given to the load client.",
    ),
    _rate(
        SLO_REQUEST_RATE,
        Unit.REQUESTS_PER_SECOND,
        "Highest rate of arriving requests at which nine in ten keep the objective, found by a "
        "binary search in each trial; 0 if none of the rates keeps it.",
    ),
    _time("ttft", "Time to first token of each request."),
    _time("tpot", "Time per output token of each request, the first token left out."),
    _time("itl", "Inter-token latency: time between two tokens of one request."),
    _time("e2el", "End-to-end latency of each request."),
    _time(SEND_LATENESS, "How much later than its trace says the load client sent each request."),
    _time(
        "engine_cpu_time",
        "Processor time of the engine, all its processes and threads together, per engine step "
        "that gave tokens. Waiting for a processor is no part of it.",
    ),
    _time(
        DUET_CPU_TIME,
        "Processor time of the engine per engine step that gave tokens, while the other side's "
        "engine has the same load on the same processors: neighbours stretch both alike.",
    ),
    _of_start(
        START_TIME, "From the call that starts the engine until it answers its health check."
    ),
    _of_start("weights_time", "Of that, loading the model, its weights included."),
    _of_start("compile_time", "Of that, torch.compile, as vLLM counts it."),
    _of_start("capture_time", "Of that, capturing graphs; a CPU's are the replay's."),
    _of_start(
        FIRST_REQUEST_TIME,
        "The first request that the engine serves, of two tokens: what is compiled, tuned or "
        "allocated at first use. Known where timed trials come first on a start.",
    ),
    _time("metadata_build_time", "Host time spent building attention metadata, per engine step."),
    _less(
        "host_syncs_per_step",
        "Host synchronisations per engine step: on CUDA calls that wait for the device; on a CPU "
        "host reads of tensors (.item(), .tolist(), nonzero, ...), each of which would wait for "
        "the device on a GPU. A rate: steps that begin requests read more than those that decode.",
    ),
    _time(
        "host_sync_time", "Time that the host waits for the device in an engine step; on CUDA only."
    ),
    _time(
        "host_sync_share",
        "Share of an engine step's time in which the host waits for the device; on CUDA only.",
        Unit.RATIO,
    ),
    _rate(
        "acceptance_length",
        Unit.COUNT,
        "Tokens that a step of speculation gives, its own and the accepted drafts: 1 when every "
        "draft is rejected.",
    ),
    _rate(
        "engine_step_rate",
        Unit.STEPS_PER_SECOND,
        "Engine steps that gave tokens, per second of one trial.",
    ),
    _rate(
        "batch_occupancy", Unit.COUNT, "Requests that got tokens, per engine step that gave any."
    ),
    _less(
        "preemptions",
        "Times in one trial that a running request lost its cache blocks to others, to compute all "
        "of its tokens again later.",
    ),
    _less(
        "memory_growth",
        "Bytes by which each request makes the processes of an engine at rest hold more, the less "
        "of a timed trial's and of 16 requests after it; at least 4 KiB.",
        Unit.BYTES,
        margin=0.25,
    ),
    _less(
        "resident_memory",
        "Bytes that the processes of an engine at rest hold after the load of one trial: anonymous "
        "and shared memory, each page once, without pages of files.",
        Unit.BYTES,
        margin=_MEMORY_MARGIN,
    ),
    _less(
        "peak_memory",
        "The same, and by how much each process held more at some time during the load.",
        Unit.BYTES,
        margin=_MEMORY_MARGIN,
    ),
    _more("cache_blocks", "Blocks of the cache that an engine at rest has for requests."),
    _more(
        "kv_cache_tokens",
        "Tokens that fit into the cache in requests as long as the model allows, attention and "
        "recurrent states together, by vLLM's own rule.",
    ),
    _less(
        "state_bytes",
        "Bytes of the cache that the recurrent state of one request takes, padding and places for "
        "drafts included; 0 without recurrent layers.",
        Unit.BYTES,
    ),
    _less(
        REQUEST_BLOCKS,
        "Blocks of the cache that one request holds at most, alone and step by step, with a prompt "
        "as long as those of the timed load.",
    ),
)

FAMILIES: Final[dict[str, Metric]] = {
    "accuracy": Metric(
        "accuracy",
        Unit.RATIO,
        Direction.HIGHER,
        Kind.PROPORTION,
        0.02,
        "Share of an lm-eval task's documents answered right.",
        _ACCURACY_RELEVANCE,
    ),
    "acceptance_rate": _rate(
        "acceptance_rate",
        Unit.RATIO,
        "Share of the drafts at a position, position_1 the first, that the target accepts.",
    ),
    "contract": replace(
        _less(
            "contract", "Times an engine's state broke a rule that must always hold; 0 is expected."
        ),
        kind=Kind.EXACT,
    ),
    "prefix_tokens": _more(
        "prefix_tokens",
        "Prompt tokens of a contract trial: looked up in the prefix cache (asked), not computed "
        "(hit), had by attention layers alone (attention), up to a kept Mamba state (mamba).",
    ),
    "asv_time": _time(
        "asv_time", "Seconds of a benchmark that asv or its like timed, as ingested."
    ),
    "asv_memory": _less(
        "asv_memory",
        "Bytes of a benchmark of memory, as ingested from asv or its like.",
        Unit.BYTES,
        margin=_MARGIN,
    ),
    "asv_ratio": _less(
        "asv_ratio",
        "What asv tracked in per cent or as a share, as ingested; asv takes lower for better.",
        Unit.RATIO,
        margin=_MARGIN,
    ),
    "asv_number": _less(
        "asv_number",
        "Whatever else asv tracked, in the unit of its benchmark; asv takes lower for better.",
        margin=_MARGIN,
    ),
    "benchmark_score": _more(
        "benchmark_score",
        "A number of a benchmark of which more is better, in the unit of the file it came from.",
        margin=_MARGIN,
    ),
}

EXPLAINING: Final = frozenset({"engine_step_rate", "batch_occupancy", "preemptions", SEND_LATENESS})
"""Metrics that say why ``output_throughput`` changed (``analysis/attribution.py``). They get no
verdict: to test the same thing again under other names would only make more false alarms."""

WRONG_TOKENS: Final = "contract.wrong_tokens"
"""Requests whose greedy tokens differ, beyond near ties, without graphs and drafts."""
WRONG_ANSWERS: Final = "contract.wrong_answers"
"""Requests whose greedy tokens, or their probabilities, differ from an outside oracle's."""
UNREPEATED_TOKENS: Final = "contract.unrepeated_tokens"
"""Requests that were sent twice in one trial, and whose tokens differ from the first time."""
WRONG_STREAMS: Final = "contract.wrong_streams"
"""Requests whose text, joined from a stream's chunks, is not that of an answer of one piece."""
GRAMMAR_BREAKS: Final = "contract.grammar_breaks"
"""Requests whose answer is no word of the grammar that they name; cut by length, no prefix."""
CHANGED_TOKENS: Final = "contract.changed_tokens"
"""Requests whose greedy tokens differ between the sides, counted in ``analysis.changed_tokens``."""

_BY_ID: Final = {metric.id: metric for metric in METRICS}


@cache
def list_metrics() -> tuple[Metric, ...]:
    """List ours, and behind them what entry points of the group ``hybridwatch.metrics`` name."""
    return (*METRICS, *loaded("hybridwatch.metrics").values())


@lru_cache(maxsize=4096)  # looked up for every sample of a record
def find_metric(metric_id: str) -> Metric:
    """Find a metric by its id, which is one of ``list_metrics`` or ``family.member``."""
    if metric_id in _BY_ID:
        return _BY_ID[metric_id]
    family, dot, member = metric_id.partition(".")
    if dot and member and family in FAMILIES:
        return replace(FAMILIES[family], id=metric_id)
    return {one.id: one for one in reversed(list_metrics()[len(METRICS) :])}[metric_id]
