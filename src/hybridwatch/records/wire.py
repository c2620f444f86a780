"""The file form of a run, schema versions 1 and 2, as pydantic models.

Field for field what ``results/README.md`` documents. The memory types (``identity``, ``run``) may
change their shape; these may not: a change here is a new schema version. ``codec`` is the only
user.
"""

from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    model_validator,
)

from hybridwatch.records.bounds import (
    MOST_SAMPLES,
    MOST_TRIALS,
    Bytes,
    Celsius,
    Client,
    Count,
    Digest,
    Duration,
    Hertz,
    Id,
    Log,
    Name,
    Number,
    Place,
    Seconds,
    Share,
    Text,
    Value,
    Watts,
    Whole,
)
from hybridwatch.records.completion import Completion
from hybridwatch.records.identity import (
    EngineBuild,
    Expected,
    FixState,
    Harness,
    ScenarioRef,
    Testbed,
)
from hybridwatch.records.run import (
    Answer,
    CallSite,
    Failure,
    GpuSurroundings,
    HostWork,
    Looks,
    Phase,
    Run,
    Sample,
    Source,
    StepPhase,
    Surroundings,
    Trial,
)
from hybridwatch.records.wire_parts import (
    FEW,
    Ascending,
    BuildLine,
    FileName,
    KnownMetric,
    WireCompletion,
    WireCurve,
    WireSample,
    WireTime,
    is_absent,
    is_empty,
    with_results,
)


class _Wire(BaseModel):
    # Strict: "1" is not 1. Not-a-number has no JSON form, so it is no value here either.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class _Harness(_Wire):
    version: Name
    revision: Name | None


class _Scenario(_Wire):
    id: Name
    version: Whole
    digest: Name
    fix: Name
    settings: Annotated[dict[Name, Name], FEW] = Field(default_factory=dict, exclude_if=is_empty)


class _Expected(_Wire):
    exactly: Annotated[dict[KnownMetric, Value], FEW]
    at_least: Annotated[dict[KnownMetric, Value], FEW]


class _Testbed(_Wire):
    id: Name
    cpu_model: Name
    cores: Whole
    memory_bytes: Bytes
    kernel: Name
    gpus: Annotated[tuple[Name, ...], FEW]
    driver: Name | None
    cuda: Name | None
    gpu_memory_bytes: Annotated[tuple[Bytes, ...], FEW] = Field(default=(), exclude_if=is_empty)
    gpu_power_limits_w: Annotated[tuple[Watts, ...], FEW] = Field(default=(), exclude_if=is_empty)


class _Build(_Wire):
    label: Name
    name: Name
    release: Name
    accelerator: Name
    distribution: Name
    lock_digest: Name
    wheel_digest: Name
    fixes: Annotated[dict[Name, FixState], FEW]
    flags: Annotated[dict[Name, Text], FEW]
    code_digest: Digest | None = Field(default=None, exclude_if=is_absent)
    changed_files: Annotated[tuple[Name, ...], FEW] | None = Field(
        default=None, exclude_if=is_absent
    )
    revision: Name | None = Field(default=None, exclude_if=is_absent)
    diff_digest: Digest | None = Field(default=None, exclude_if=is_absent)
    line: BuildLine | None = Field(default=None, exclude_if=is_absent)


class _Failure(_Wire):
    reason: Text
    log_tail: Log
    # Written only when it is so: records made before the field existed stay as they are.
    engine_died: bool = Field(default=False, exclude_if=lambda died: not died)


class _Gpu(_Wire):
    index: Whole
    readings: Count
    sm_clock_hz: Hertz | None
    memory_clock_hz: Hertz | None
    power_w: Watts | None
    temperature_c: Celsius | None
    utilisation: Share | None
    throttled: Annotated[dict[Name, Share], FEW] | None
    others_bytes: Bytes | None


class _Surroundings(_Wire):
    kernel_best_s: Seconds
    kernel_median_s: Seconds
    others: Share | None
    clock_hz: Hertz | None
    gpus: Annotated[tuple[_Gpu, ...], FEW] = Field(default=(), exclude_if=is_empty)

    def to_surroundings(self) -> Surroundings:
        plain = {**vars(self)}
        plain["gpus"] = tuple(GpuSurroundings(**vars(gpu)) for gpu in self.gpus)
        return Surroundings(**plain)


class _CallSite(_Wire):
    place: Name
    reads: Count
    seconds: Duration
    kind: Name | None = Field(default=None, exclude_if=is_absent)


class _StepPhase(_Wire):
    name: Name
    seconds: Duration


class _HostWork(_Wire):
    sites: Annotated[tuple[_CallSite, ...], FEW]
    phases: Annotated[tuple[_StepPhase, ...], FEW]

    def to_host_work(self) -> HostWork:
        return HostWork(
            sites=tuple(CallSite(**vars(site)) for site in self.sites),
            phases=tuple(StepPhase(**vars(phase)) for phase in self.phases),
        )


class _Looks(_Wire):
    planned: Annotated[Ascending, Field(min_length=1)]
    made: Ascending

    @model_validator(mode="after")
    def _agree(self) -> Self:
        due = self.planned[: len(self.made)]
        # Only the last look may come early, and none late.
        if self.made and (self.made[:-1] != due[:-1] or self.made[-1] > due[-1]):
            raise ValueError("expected looks made as planned, only the last one perhaps early")
        return self


class _Source(_Wire):
    format: Name
    file: FileName
    sha256: Digest
    unknown: Annotated[tuple[Name, ...], FEW]
    commit: Name | None
    committed_at: WireTime | None


class _Trial(_Wire):
    index: Place
    side: Annotated[int, Field(ge=0, le=1)]
    phase: Phase
    started_at: WireTime
    duration_s: Duration
    warmup: bool
    samples: Annotated[tuple[WireSample, ...], Field(max_length=MOST_SAMPLES)]
    failure: _Failure | None
    surroundings: _Surroundings | None = Field(default=None, exclude_if=is_absent)
    host_work: _HostWork | None = Field(default=None, exclude_if=is_absent)
    unsupported: Annotated[dict[KnownMetric, Text], FEW] = Field(
        default_factory=dict, exclude_if=is_empty
    )
    curve: WireCurve | None = Field(default=None, exclude_if=is_absent)

    def to_trial(self) -> Trial:
        plain = {**vars(self)}
        plain["samples"] = tuple(Sample(**vars(sample)) for sample in self.samples)
        plain["failure"] = Failure(**vars(self.failure)) if self.failure else None
        around = self.surroundings
        plain["surroundings"] = around.to_surroundings() if around else None
        plain["host_work"] = self.host_work.to_host_work() if self.host_work else None
        plain["curve"] = self.curve.to_curve() if self.curve else None
        return Trial(**plain)


class WireBulk(_Wire):
    """The reference from a record to the file beside it."""

    file: FileName
    sha256: Digest
    lines: Count


class WireAnswer(_Wire):
    """One document of an accuracy task; fields as ``record.run.Answer``."""

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


class WireLine(_Wire):
    """One line of the bulk file: an answer, the completions or a client result of one trial.

    A client result that names a ``point`` is of that point of a curve.
    """

    trial: Place
    point: Whole | None = None
    answer: WireAnswer | None = None
    client_result: Client | None = None
    completions: Annotated[tuple[WireCompletion, ...], Field(min_length=1)] | None = None


class BulkOfTrial:
    """The lines of one trial, gathered."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.client_result: dict[str, JsonValue] | None = None
        self.completions: tuple[Completion, ...] = ()
        self.of_points: dict[int, dict[str, JsonValue]] = {}

    def add(self, line: WireLine) -> None:
        """Take one line in.

        Raises:
            ValueError: The line holds none or several of its kinds, or a second client result or
                list of completions.
        """
        kinds = (line.answer, line.client_result, line.completions)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("expected one of answer, client_result, completions")
        if line.point is not None:
            self._add_point(line.point, line)
            return
        if line.answer is not None:
            self.answers.append(Answer(**vars(line.answer)))
        elif line.completions is not None:
            if self.completions:
                raise ValueError(f"completions: a second list for trial {line.trial}")
            self.completions = tuple(one.to_completion() for one in line.completions)
        elif self.client_result is not None:
            raise ValueError(f"client_result: a second one for trial {line.trial}")
        else:
            self.client_result = line.client_result

    def _add_point(self, point: int, line: WireLine) -> None:
        if line.client_result is None:
            raise ValueError("expected client_result beside point")
        if point in self.of_points:
            raise ValueError(f"client_result: a second one for point {point} of trial {line.trial}")
        self.of_points[point] = line.client_result

    def beside(self, trial: Trial) -> Trial:
        """Give a trial of the record with its lines.

        Raises:
            ValueError: A line is of a point that the trial does not have.
        """
        points = len(trial.curve.points) if trial.curve else 0
        if stray := [point for point in self.of_points if point >= points]:
            raise ValueError(
                f"client_result: expected a point less than {points} of trial {trial.index}, "
                f"found {stray[0]}"
            )
        return replace(
            trial,
            curve=with_results(trial.curve, self.of_points) if trial.curve else None,
            answers=tuple(self.answers),
            client_result=self.client_result,
            completions=self.completions,
        )


class WireRecord(_Wire):
    """A whole record."""

    schema_version: Literal[1, 2] = 2
    # ``codec`` checks it: from version 2 on it must be there.
    sha256: Digest | None = Field(default=None, exclude_if=is_absent)
    id: Id
    started_at: WireTime
    finished_at: WireTime
    harness: _Harness
    scenario: _Scenario
    testbed: _Testbed
    builds: Annotated[tuple[_Build, ...], Field(min_length=1, max_length=2)]
    trials: Annotated[tuple[_Trial, ...], Field(max_length=MOST_TRIALS)]
    looks: _Looks | None = Field(default=None, exclude_if=is_absent)
    source: _Source | None = Field(default=None, exclude_if=is_absent)
    known_bad: bool | None = Field(default=None, exclude_if=is_absent)
    expected: _Expected | None = Field(default=None, exclude_if=is_absent)
    bulk: WireBulk | None = None

    def to_run(self) -> Run:
        """Give the memory form, without what lies beside the record."""
        return Run(
            id=self.id,
            started_at=self.started_at,
            finished_at=self.finished_at,
            harness=Harness(**vars(self.harness)),
            scenario=ScenarioRef(**vars(self.scenario)),
            testbed=Testbed(**vars(self.testbed)),
            builds=tuple(EngineBuild(**vars(build)) for build in self.builds),
            trials=tuple(t.to_trial() for t in self.trials),
            looks=Looks(**vars(self.looks)) if self.looks else None,
            source=Source(**vars(self.source)) if self.source else None,
            known_bad=self.known_bad,
            expected=Expected(**vars(self.expected)) if self.expected else None,
            sha256=self.sha256,
        )
