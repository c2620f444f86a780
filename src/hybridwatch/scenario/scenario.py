"""The type of a scenario file, field by field, and the rules that hold between fields.

Bounds are there to catch slips (a swapped number, a unit), not to say what is wise. Types are
strict: ``"7"`` is not a number and ``true`` is not 1.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from hybridwatch.metric import Direction, Kind, Metric, metric_of
from hybridwatch.scenario.explain import quoted

FixId = Literal[
    "padded-rows-prefilling",
    "single-token-extend",
    "draft-max-seq-len",
    "all-cache-spec-decode",
    "stale-block-table",
]
FIXES: Final[tuple[str, ...]] = get_args(FixId)
"""Ids of the fixes that can be applied or reverted; each is some scenario's known-bad control."""

MIN_PERFORMANCE_TRIALS: Final = 7
"""Per side. An exact rank test of 7 against 7 can reach p = 2/3432, so a verdict survives the
false-discovery control over a whole report."""

ACCURACY: Final = "accuracy"
"""Family of the metrics that an lm-eval task gives: ``accuracy.<task>``."""


def _known_metric(metric_id: str) -> str:
    try:
        metric_of(metric_id)
    except KeyError:
        raise PydanticCustomError("metric", "no metric has this id") from None
    return metric_id


MetricId = Annotated[str, AfterValidator(_known_metric)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Tokens = Annotated[int, Field(ge=1, le=1_048_576)]
Concurrency = Annotated[int, Field(ge=1, le=8192)]
Trials = Annotated[int, Field(ge=1, le=1000)]
TaskName = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$", description="lower-case words joined by underscores"
    ),
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class EngineArgs(_Part):
    """How the engine is started, in vLLM's own words.

    Attributes:
        dtype: Type of weights and activations.
        max_model_len: Longest prompt and answer together, in tokens.
        max_num_seqs: Most requests in one batch.
        cudagraph_mode: Which batches replay a graph (``vllm.config.CUDAGraphMode``).
        cudagraph_capture_sizes: Batch sizes with a graph, ascending; empty with mode ``NONE``.
    """

    dtype: Literal["float32", "bfloat16", "float16"]
    max_model_len: Tokens
    max_num_seqs: Concurrency
    cudagraph_mode: Literal["NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"]
    # Not strict outside: TOML has lists where we want a tuple. The numbers inside stay strict.
    cudagraph_capture_sizes: tuple[Concurrency, ...] = Field(strict=False)


class Scoring(_Part):
    """Requests for one token each, which end with their prompt and leave their batch row behind.

    Attributes:
        requests: How many before each trial; 0 for none.
        prompt_tokens: Length of each prompt.
    """

    requests: Annotated[int, Field(ge=0, le=1_000_000)]
    prompt_tokens: Tokens


class Generation(_Part):
    """The load under which everything is timed.

    Attributes:
        prompts: Requests of one trial.
        input_tokens: Length of each prompt.
        output_tokens: Length of each answer; the end-of-text token is ignored.
        max_concurrency: Requests in flight at once.
        seed: Of the prompts; the same seed gives the same prompts.
    """

    prompts: Count
    input_tokens: Tokens
    output_tokens: Tokens
    max_concurrency: Concurrency
    seed: Annotated[int, Field(ge=0)]


class Workload(_Part):
    """What is asked of the engine: first scoring, then generation."""

    scoring: Scoring
    generation: Generation


class Accuracy(_Part):
    """Which tasks are answered.

    Attributes:
        tasks: Names of tasks, each giving the metric ``accuracy.<task>``.
        documents: Questions of each task.
        max_concurrency: Requests in flight at once.
    """

    tasks: tuple[TaskName, ...] = Field(strict=False, min_length=1)
    documents: Count
    max_concurrency: Concurrency


class TrialCounts(_Part):
    """Trials of each phase and side; accuracy needs none, its documents are its samples.

    Attributes:
        contract: Passes that count broken contracts.
        performance: Timed passes.
        host_sync: Passes with the host-read probe on, which slows the engine.
    """

    contract: Trials
    performance: Annotated[int, Field(ge=MIN_PERFORMANCE_TRIALS, le=1000)]
    host_sync: Trials


class Expect(_Part):
    """What a healthy engine gives; a run that differs has failed, however fast it was.

    Attributes:
        exactly: Metrics without noise (exact and count) with their only right value.
        at_least: Metrics that are better when higher, with their lower bound.
    """

    exactly: Mapping[MetricId, float] = Field(default_factory=dict)
    at_least: Mapping[MetricId, float] = Field(default_factory=dict)


class Scenario(_Part):
    """One declared experiment.

    Attributes:
        id: Path below the scenario folder without suffix; given by the loader, not by the file.
        why: What goes wrong in the world that this scenario looks for.
        version: Raised by hand when numbers stop being comparable.
        fix: The fix whose removal is the known-bad control.
        model: A folder of ``models/`` or the name of a model on the hub.
        engine: How the engine is started.
        workload: What is asked of it.
        accuracy: Which tasks are answered.
        trials: How often.
        expect: What must hold.
    """

    id: str
    why: Annotated[str, Field(pattern=r"\S", description="a text")]
    version: Annotated[int, Field(ge=1)]
    fix: FixId
    model: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$",
            description="a folder of models/ or owner/name",
        ),
    ]
    engine: EngineArgs
    workload: Workload
    accuracy: Accuracy
    trials: TrialCounts
    expect: Expect

    @model_validator(mode="after")
    def _agree(self) -> Self:
        wrong = tuple(_contradictions(self))
        if wrong:
            raise PydanticCustomError("contradictions", "fields disagree", {"wrong": wrong})
        return self

    def padded_rows(self, concurrency: int) -> range:
        """Rows that pad a decode batch of this many requests up to its graph's size."""
        sizes = (size for size in self.engine.cudagraph_capture_sizes if size >= concurrency)
        return range(concurrency, next(sizes, concurrency))

    @property
    def summary(self) -> str:
        """The first sentence of ``why``, on one line."""
        text = " ".join(self.why.split())
        for mark in (". ", "! ", "? "):
            text = text.split(mark, maxsplit=1)[0] + (mark.strip() if mark in text else "")
        return text


def _contradictions(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield each broken rule as the key at fault and what is wrong with it."""
    yield from _contradictions_of_lengths(scenario)
    yield from _contradictions_of_batches(scenario)
    yield from _contradictions_of_expectations(scenario)


def _contradictions_of_lengths(scenario: Scenario) -> Iterator[tuple[str, str]]:
    room = scenario.engine.max_model_len
    load, scoring = scenario.workload.generation, scenario.workload.scoring
    if (total := load.input_tokens + load.output_tokens) > room:
        yield (
            "workload.generation",
            (
                "expected input_tokens + output_tokens at most engine.max_model_len "
                f"({room}), found {total}"
            ),
        )
    if scoring.prompt_tokens + 1 > room:
        yield (
            "workload.scoring.prompt_tokens",
            f"expected less than engine.max_model_len ({room}), found {scoring.prompt_tokens}",
        )


def _contradictions_of_batches(scenario: Scenario) -> Iterator[tuple[str, str]]:
    engine, load = scenario.engine, scenario.workload.generation
    sizes = engine.cudagraph_capture_sizes
    if any(first >= second for first, second in pairwise(sizes)):
        yield (
            "engine.cudagraph_capture_sizes",
            f"expected ascending sizes, each once, found {quoted(sizes)}",
        )
    if bool(sizes) == (engine.cudagraph_mode == "NONE"):
        expected = "no size" if sizes else "at least one size"
        yield (
            "engine.cudagraph_capture_sizes",
            (
                f"expected {expected} with cudagraph_mode {engine.cudagraph_mode}, "
                f"found {quoted(sizes)}"
            ),
        )
    for key, value in (
        ("workload.generation", load.max_concurrency),
        ("accuracy", scenario.accuracy.max_concurrency),
    ):
        if value > engine.max_num_seqs:
            yield (
                f"{key}.max_concurrency",
                f"expected at most engine.max_num_seqs ({engine.max_num_seqs}), found {value}",
            )
    if load.prompts < load.max_concurrency:
        yield (
            "workload.generation.prompts",
            f"expected at least max_concurrency ({load.max_concurrency}), found {load.prompts}",
        )


def _contradictions_of_expectations(scenario: Scenario) -> Iterator[tuple[str, str]]:
    tasks, expect = scenario.accuracy.tasks, scenario.expect
    if len(set(tasks)) < len(tasks):
        yield "accuracy.tasks", f"expected each task once, found {quoted(tasks)}"
    if not expect.exactly and not expect.at_least:
        yield "expect", "expected at least one metric under exactly or at_least, found none"
    for metric_id in (*expect.exactly, *expect.at_least):
        family, _, task = metric_id.partition(".")
        if family == ACCURACY and task not in tasks:
            yield f'expect."{metric_id}"', f'"{task}" is not in accuracy.tasks {quoted(tasks)}'
    for metric_id in expect.exactly:
        if metric_of(metric_id).kind not in (Kind.EXACT, Kind.COUNT):
            yield (
                f'expect.exactly."{metric_id}"',
                "this metric is noisy; only exact metrics and counts can be expected exactly",
            )
    for metric_id, bound in expect.at_least.items():
        yield from _contradictions_of_bound(metric_of(metric_id), bound)


def _contradictions_of_bound(metric: Metric, bound: float) -> Iterator[tuple[str, str]]:
    key = f'expect.at_least."{metric.id}"'
    if metric.better is not Direction.HIGHER:
        yield key, "lower is better for this metric, so it has no lower bound"
    elif metric.kind is Kind.PROPORTION and not 0 <= bound <= 1:
        yield key, f"expected a number from 0 to 1, found {bound:g}"
