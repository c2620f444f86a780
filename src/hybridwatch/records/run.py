"""A run: every trial of one session, in order, with raw values and what the host did.

``results/README.md`` says what each key holds.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, TypeAlias

from pydantic import Field, GetCoreSchemaHandler, GetPydanticSchema, model_validator
from pydantic_core import CoreSchema, core_schema

from hybridwatch.records.fields import (
    MOST_SAMPLES,
    MOST_TRIALS,
    MOST_VALUES,
    Ascending,
    Bytes,
    Celsius,
    Count,
    Digest,
    Duration,
    FileName,
    Hertz,
    Id,
    IfAny,
    IfKnown,
    Items,
    KnownMetric,
    Log,
    Name,
    NotInRecord,
    Number,
    PerSecond,
    Place,
    RecordPart,
    Seconds,
    Share,
    Table,
    Text,
    Time,
    Value,
    Values,
    Watts,
    Whole,
    one_of,
)
from hybridwatch.records.identity import EngineBuild, Expected, Harness, ScenarioRef, Testbed

CLOSE: Final = 0.5
"""Nats within which a token that was not chosen is kept with the chosen one."""
NEAR_TIE_FLOAT32: Final = 0.001
"""Nats that a token may lie behind the chosen one for the choice to be rounding. Float32 logarithms
of one model differ by about 1e-5 between two ways to compute them."""
NEAR_TIE_HALF: Final = 0.25
"""The same of half precision: a logit of 16 to 32 is rounded to 0.125 in bfloat16."""
NEAR_TIE_ONE_ARITHMETIC: Final = 0.0001
"""The same where only who shares a step differs: trials of one engine are 1e-5 apart by it."""
DIGITS: Final = 5
"""Digits of a logarithm: a hundredth of the smallest gap of interest."""


class CloseCall(NamedTuple):
    """A token that was nearly chosen, and how far behind its logarithm lies, in nats."""

    position: int
    token: int
    gap: float


_Logarithm: TypeAlias = Annotated[float, Field(ge=-1e30, le=0)]
_Gap: TypeAlias = Annotated[float, Field(ge=0, le=CLOSE)]
_MANY: Final = Field(max_length=MOST_VALUES, fail_fast=True)


def _of_three(_: type, handler: GetCoreSchemaHandler) -> CoreSchema:
    """Read a close call from a list of three; pydantic would take an object of them as well."""
    three = handler(tuple[Whole, Whole, _Gap])
    return core_schema.no_info_after_validator_function(CloseCall._make, three)


_CloseCall: TypeAlias = Annotated[CloseCall, GetPydanticSchema(_of_three)]


@dataclass(frozen=True, slots=True)
class Completion(RecordPart):
    """A greedy answer.

    ``tokens`` is empty where the engine's logarithms are no numbers, so that its server refused to
    send them. ``is_wrong`` is whether they differ by more than a near tie.
    """

    prompt: Id
    tokens: Annotated[tuple[Whole, ...], _MANY]
    logprobs: IfAny[Annotated[tuple[_Logarithm, ...], _MANY]] = ()
    close_calls: IfAny[Annotated[tuple[_CloseCall, ...], _MANY]] = ()
    is_wrong: IfKnown[bool] = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.logprobs and len(self.logprobs) != len(self.tokens):
            raise ValueError(
                f"expected as many logprobs as tokens, {len(self.tokens)}, "
                f"found {len(self.logprobs)}"
            )
        return self

    def gap(self, position: int, token: int) -> float | None:
        """How far a token lies behind the chosen one; ``None`` if it is not known to be near."""
        found = (one.gap for one in self.close_calls if one[:2] == (position, token))
        return next(found, None)


def near_tie_within(types: Collection[str | None]) -> float:
    """Give the bound of near ties between engines whose weights are of these types."""
    return NEAR_TIE_FLOAT32 if set(types) == {"float32"} else NEAR_TIE_HALF


def position_of_parting(one: Completion, other: Completion) -> int | None:
    """Find the first position at which two answers differ; ``None`` when they are equal."""
    if one.tokens == other.tokens:
        return None
    pairs = enumerate(zip(one.tokens, other.tokens, strict=False))
    shorter = min(len(one.tokens), len(other.tokens))
    return next((at for at, (left, right) in pairs if left != right), shorter)


@dataclass(frozen=True, slots=True)
class CallSite(RecordPart):
    """A place in the engine's code that read values of tensors while steps were made."""

    place: Name
    reads: Count
    seconds: Duration
    kind: IfKnown[Name] = None


@dataclass(frozen=True, slots=True)
class StepPhase(RecordPart):
    """A part of an engine step; seconds of the host without other phases inside it."""

    name: Name
    seconds: Duration


@dataclass(frozen=True, slots=True)
class HostWork(RecordPart):
    """Where the reads and the time of a host-sync trial's steps lie, in the order of a step."""

    sites: Items[CallSite]
    phases: Items[StepPhase]


class Phase(Enum):
    """What a trial was for."""

    CONTRACT = "contract"
    ACCURACY = "accuracy"
    PERFORMANCE = "performance"
    HOST_SYNC = "host-sync"
    DUET = "duet"
    """Both sides are loaded at the same time, on the same processors."""


KEPT_CONFIDENCE: Final = 0.99
"""Of the interval that a tool kept in place of its samples."""


@dataclass(frozen=True, slots=True)
class Sample(RecordPart):
    """Every value of one metric seen in one trial, in base units, in order of arrival.

    For ``accuracy.<task>`` a value is 1.0 or 0.0, one per document in document order. Of a tool
    that reduced the trial to one ``statistic`` no other is known.
    """

    metric: KnownMetric
    values: Values
    statistic: IfKnown[Name] = None
    interval: IfKnown[tuple[Value, Value]] = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.statistic is not None and len(self.values) != 1:
            raise ValueError("expected one value next to statistic")
        if self.interval is None:
            return self
        if len(self.values) != 1 or self.interval[0] > self.interval[1]:
            raise ValueError("expected one value next to interval, whose lower limit comes first")
        return self


_Samples: TypeAlias = Annotated[tuple[Sample, ...], Field(max_length=MOST_SAMPLES, fail_fast=True)]


@dataclass(frozen=True, slots=True)
class Answer(RecordPart):
    """One document of an accuracy task and the engine's answer, from lm-eval's sample log.

    Attributes:
        task_version: lm-eval's ``metadata.version``; answers compare only within one version.
        response: Text received, after the task's filter.
        correct: Whether the task's metric counted it as right.
    """

    task: Name
    task_version: Name
    doc_id: Number
    doc_hash: Name
    prompt_hash: Name
    target_hash: Name
    prompt: str
    target: str
    response: str
    correct: bool


STOPPED: Final = "not measured: the run was stopped before"
"""Why a trial failed that was not made any more."""


@dataclass(frozen=True, slots=True)
class Failure(RecordPart):
    """Why a trial gave no values, in one line, and the engine's log behind its first exception."""

    reason: Text
    log_tail: Log
    engine_died: IfAny[bool] = False

    @property
    def was_stopped(self) -> bool:
        """Whether the trial was not made, since the run was stopped before."""
        return self.reason == STOPPED


@dataclass(frozen=True, slots=True)
class GpuState(RecordPart):
    """A GPU that a timed trial ran on, read at a steady pace while it ran.

    Every fact is ``None`` where the driver does not say.
    """

    index: Whole
    readings: Count
    sm_clock_hz: Hertz | None = None
    memory_clock_hz: Hertz | None = None
    power_w: Watts | None = None
    temperature_c: Celsius | None = None
    utilisation: Share | None = None
    throttled: Table[Name, Share] | None = None
    others_bytes: Bytes | None = None


@dataclass(frozen=True, slots=True)
class MachineState(RecordPart):
    """The machine around one timed trial: what could have slowed any engine.

    ``others`` is the share of its processor time that others used, guests of its host included.
    """

    kernel_best_s: Seconds
    kernel_median_s: Seconds
    others: Share | None = None
    clock_hz: Hertz | None = None
    gpus: IfAny[Items[GpuState]] = ()


Clock: TypeAlias = Literal["wall", "processor"]
"""Which seconds are counted: all, or those that the engine's processes worked."""


@dataclass(frozen=True, slots=True)
class Point(RecordPart):
    """What an engine gave under one of the loads of a sweep.

    ``load`` is requests in flight at once, or requests that arrive per second (``Curve.knob``).
    """

    load: PerSecond
    samples: _Samples
    joules_per_token: IfKnown[PerSecond] = None
    client_result: NotInRecord[Mapping[str, Any] | None] = None


@dataclass(frozen=True, slots=True)
class Curve(RecordPart):
    """The loads that one trial went through, and what the engine gave under each."""

    knob: Annotated[str, one_of("max_concurrency", "request_rate")]
    points: Annotated[Items[Point], Field(min_length=1)]
    gpus: Whole = 0
    slo: Mapping[Annotated[str, one_of("ttft", "tpot")], Seconds] = field(default_factory=dict)
    clock: Annotated[Clock, Field(exclude_if=lambda clock: clock == "wall")] = "wall"

    @model_validator(mode="after")
    def _agree(self) -> Self:
        loads = [point.load for point in self.points]
        if len(set(loads)) < len(loads):
            raise ValueError("expected each load once")
        return self


@dataclass(frozen=True, slots=True)
class Trial(RecordPart):
    """One pass of one phase on one side, on freshly reset engine state.

    Attributes:
        index: Position in the run, from 0; the order in which things happened.
        side: Index into ``Run.builds``: 0 is the baseline, 1 the contender.
        duration_s: Wall-clock seconds, reset and client start left out.
        start: Which start of the engines it was made on, where trials were spread over several;
            trials of both sides with one number alternated.
    """

    index: Place
    side: Annotated[int, Field(ge=0, le=1)]
    phase: Phase
    started_at: Time
    duration_s: Duration
    warmup: bool = False
    samples: _Samples = ()
    failure: Failure | None = None
    answers: NotInRecord[tuple[Answer, ...]] = ()
    client_result: NotInRecord[Mapping[str, Any] | None] = None
    surroundings: IfKnown[MachineState] = None
    host_work: IfKnown[HostWork] = None
    unsupported: IfAny[Table[KnownMetric, Text]] = field(default_factory=dict)
    completions: NotInRecord[tuple[Completion, ...]] = ()
    curve: IfKnown[Curve] = None
    start: IfKnown[Whole] = None


@dataclass(frozen=True, slots=True)
class InterimAnalyses(RecordPart):
    """When a run was judged that went on until it was decided; a look is such a judgement.

    Both are timed trials a side, ascending: as fixed before the first trial, and as made. The last
    look is earlier than planned when the time was spent; there is none when no timed trial fitted
    in.
    """

    planned: Annotated[Ascending, Field(min_length=1)]
    made: Ascending

    @model_validator(mode="after")
    def _agree(self) -> Self:
        due = self.planned[: len(self.made)]
        # Only the last look may come early, and none late.
        if self.made and (self.made[:-1] != due[:-1] or self.made[-1] > due[-1]):
            raise ValueError("expected looks made as planned, only the last one perhaps early")
        return self


UNKNOWN: Final = "unknown"
"""Stands where the file that a run was ingested from has no such text; 0 stands for a number,
the day of ingestion's own time for none: ``Source.unknown`` names every such place."""


@dataclass(frozen=True, slots=True)
class Source(RecordPart):
    """Where an ingested run comes from: its file, of several the first, and that one's digest.

    ``committed_at`` is its place in a history of commits, which may be measured in any order.
    """

    format: Name
    file: FileName
    sha256: Digest
    unknown: Items[Name] = ()
    commit: Name | None = None
    committed_at: Time | None = None
    left_out: IfAny[Table[KnownMetric, Text]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run(RecordPart):
    """Every trial of one session on one testbed.

    Of two builds, measured interleaved, the baseline comes first; equal labels make an A/A run. Two
    runs that say the same are equal whatever their ``sha256``, which was checked.
    """

    id: Id
    started_at: Time
    finished_at: Time
    harness: Harness
    scenario: ScenarioRef
    testbed: Testbed
    builds: Annotated[tuple[EngineBuild, ...], Field(min_length=1, max_length=2)]
    trials: Annotated[tuple[Trial, ...], Field(max_length=MOST_TRIALS, fail_fast=True)]
    looks: IfKnown[InterimAnalyses] = None
    second_look: IfKnown[Count] = None
    source: IfKnown[Source] = None
    known_bad: IfKnown[bool] = None
    expected: IfKnown[Expected] = None
    sha256: IfKnown[Digest] = field(default=None, compare=False)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        again = self.second_look
        if again and (again >= len(self.trials) or len(self.builds) < 2 or self.looks):
            raise ValueError("expected second_look to be a trial of two builds, without looks")
        return self

    @property
    def has_own_load(self) -> bool:
        """Whether its file names no model, so that no other file's run can be of the same load."""
        return self.source is not None and self.scenario.settings.get("file") == self.source.sha256

    def so_far(self) -> "Run":
        """The run as far as it was made: without the trials that a stop has kept from it."""
        made = tuple(t for t in self.trials if t.failure is None or not t.failure.was_stopped)
        return replace(self, trials=made)

    def measured(self, side: int) -> Iterator[Trial]:
        """Yield the trials of one side that count: warm-ups and failures left out."""
        return (
            trial
            for trial in self.trials
            if trial.side == side and not trial.warmup and trial.failure is None
        )

    def failed(self, side: int) -> Iterator[Trial]:
        """Yield the trials of one side that gave no measurement."""
        return (trial for trial in self.trials if trial.side == side and trial.failure is not None)
