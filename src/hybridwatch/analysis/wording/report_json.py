"""A report as JSON: the stable form that ``--json`` prints, documented in ``docs/json.md``.

A type here says which fields a part of a report has, in which order, and where ``analysis`` keeps
them: it makes the JSON, reads it for the client, and its schema is that of the API. Numbers are in
base units, absent ones null. A field may be added within a schema version; none is renamed, removed
or given another meaning.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from operator import not_
from typing import Annotated, Any, Final, TypeAlias

from pydantic import (
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from hybridwatch.analysis.cause import Area, causes_in
from hybridwatch.analysis.policy import STRICT, Action, Policy
from hybridwatch.analysis.power import level_of
from hybridwatch.analysis.verdict import Family, Report, SideCurve, Stretch, TokenChange, Verdict
from hybridwatch.analysis.wording.cause_text import cause_sentence, find_death
from hybridwatch.metrics import Direction, Kind

REPORT_SCHEMA: Final = 1


def utc_text(moment: datetime) -> str:
    """Write a time to the second, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def kept_at(path: str, **more: Any) -> Any:
    """Say where a value is kept that JSON has under another name: attributes joined by dots."""
    return Field(validation_alias=AliasPath(*path.split(".")), **more)


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number: TypeAlias = FiniteFloat | Annotated[None, BeforeValidator(_finite)]
"""JSON has no word for NaN or infinity."""
Moment: TypeAlias = Annotated[datetime, PlainSerializer(utc_text, when_used="json")]
_TextOrNull: TypeAlias = Annotated[str | None, BeforeValidator(lambda text: text or None)]
_Text: TypeAlias = Annotated[str, BeforeValidator(lambda text: text or "")]
_Texts: TypeAlias = Annotated[list[str], BeforeValidator(lambda texts: texts or [])]
_Name: TypeAlias = Annotated[str, BeforeValidator(lambda factor: getattr(factor, "name", factor))]


def _in_order(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: getattr(found[name], "value", found[name]) for name in sorted(found)}


def _of_trial(found: Any) -> Any:
    names = ("side", "phase", "index", "reason", "engine_died", "log_tail")
    return found if isinstance(found, Mapping) else {name: getattr(found, name) for name in names}


_ByName: TypeAlias = Annotated[dict[str, str], BeforeValidator(_in_order)]


class Shape(BaseModel):
    """What every part is made by, from a value of ``analysis`` or from JSON."""

    model_config = ConfigDict(
        extra="forbid", from_attributes=True, validate_by_name=True, defer_build=True
    )


class ScenarioItem(Shape):
    """What was measured."""

    id: str
    version: int
    digest: str
    fix: str | None


class Build(Shape):
    """An engine."""

    # Left out where it is not known: verdicts stored before are to be had again to the letter.
    code_digest: _Text = Field("", exclude_if=not_)
    changed_files: _Texts = Field([], exclude_if=not_)
    revision: _Text = Field("", exclude_if=not_)
    diff_digest: _Text = Field("", exclude_if=not_)
    line: _Text = Field("", exclude_if=not_)
    label: str
    name: str
    release: str
    accelerator: str
    distribution: str
    lock_digest: str | None
    wheel_digest: str | None
    fixes: _ByName
    flags: _ByName


class TestbedItem(Shape):
    """A machine."""

    id: str
    cpu_model: str
    cores: int
    memory_bytes: int
    kernel: str
    gpus: list[str]
    driver: str | None
    cuda: str | None
    gpu_memory_bytes: list[int] = []
    gpu_power_limits_w: list[float] = []

    @model_serializer(mode="wrap")
    def _without_gpus(self, dumped: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what only GPUs have: verdicts stored before it was known are without it."""
        found: dict[str, Any] = dumped(self)
        return {name: found[name] for name in found if self.gpus or not name.startswith("gpu_")}


class SideItem(Shape):
    """One side of a report."""

    run_id: str
    build: Build
    testbed: TestbedItem
    started_at: Moment | None


class InterimAnalysesItem(Shape):
    """When a run was judged that went on until it was decided."""

    planned: list[int]
    made: list[int]
    level: float

    @model_validator(mode="before")
    @classmethod
    def _with_level(cls, found: Any) -> Any:
        if isinstance(found, Mapping):
            return found
        return {"planned": found.planned, "made": found.made, "level": level_of(found)}


class SummaryItem(Shape):
    """The values of a side."""

    center: Number
    n: int
    values: list[Number]


class IntervalItem(Shape):
    """Where an effect lies."""

    low: Number
    high: Number
    confidence: float


class GivenAnswer(Shape):
    """What an engine answered."""

    response: str
    correct: bool


class FlipItem(Shape):
    """A document that one side alone got right."""

    task: str = kept_at("baseline.task")
    task_version: str = kept_at("baseline.task_version")
    doc_id: int = kept_at("baseline.doc_id")
    doc_hash: str = kept_at("baseline.doc_hash")
    prompt: str = kept_at("baseline.prompt")
    target: str = kept_at("baseline.target")
    baseline: GivenAnswer
    contender: GivenAnswer


class ComparisonItem(Shape):
    """A metric of both sides, and the verdict."""

    metric: str = kept_at("metric.id")
    statistic: str
    unit: str = kept_at("metric.unit.value")
    better: Direction = kept_at("metric.better")
    kind: Kind = kept_at("metric.kind")
    margin: float = kept_at("metric.margin")
    verdict: Verdict
    bad_news: bool = kept_at("verdict.is_bad_news")
    test: str
    design: str = kept_at("design.value")
    assumption: str
    baseline: SummaryItem | None
    contender: SummaryItem | None
    effect: Number
    interval: IntervalItem | None
    pairs: int | None
    relevance: float
    noise: Number
    churn: Number
    p_value: Number
    p_adjusted: Number
    p_holm: Number
    equivalence_p: Number
    minimum_detectable_effect: Number
    trials_needed: int | None
    doubts: list[str]
    flips: list[FlipItem]
    changes: list[TokenChange] = Field([], exclude_if=not_)
    family: _TextOrNull


class FactorItem(Shape):
    """A part of a change."""

    name: str
    effect: Number
    interval: IntervalItem | None
    share: Number
    moved: bool


class AttributionItem(Shape):
    """Why throughput changed."""

    metric: str
    effect: Number
    factors: list[FactorItem]
    movers: list[_Name]


class TradeoffItem(Shape):
    """Both curves of a sweep, where one is better, and where they cross."""

    baseline: SideCurve
    contender: SideCurve
    common: tuple[float, float] | None
    stretches: list[Stretch]
    crossings: list[tuple[float, float]]


class _Versioned(Shape):
    schema_version: int


class _Verdicts(Shape):
    """A report as it is stored: without words that a later hybridwatch may choose better."""

    scenario: ScenarioItem
    baseline: SideItem
    contender: SideItem
    bad_news: Annotated[bool, BeforeValidator(bool)]
    tests: int
    families: list[Family]
    false_discovery_rate: float
    looks: InterimAnalysesItem | None
    comparisons: list[ComparisonItem]
    differences: list[str]
    failures: list[str]
    attribution: AttributionItem | None
    # Left out of a report without one: verdicts stored before are to be had to the letter.
    tradeoff: TradeoffItem | None = Field(None, exclude_if=not_)


class FailureItem(Shape):
    """Why an engine failed."""

    reason: str
    sides: list[str]
    trials: int
    first: Annotated[dict[str, Any], BeforeValidator(_of_trial)] = kept_at("trial")


class PartItem(Shape):
    """A metric that shows a cause."""

    metric: str
    statistic: str
    verdict: Verdict
    effect: Number
    action: Action


class CauseItem(Shape):
    """One thing that changed."""

    area: Area
    better: bool
    action: Action
    sentence: str
    parts: list[PartItem]
    failure: FailureItem | None


class ReportAnswer(_Verdicts, _Versioned):
    """Every verdict of a run of two builds, as ``hybridwatch compare RUN --json`` prints it."""

    causes: list[CauseItem]


def to_json(report: Report) -> dict[str, Any]:
    """Turn a report into plain dictionaries, lists, numbers and texts."""
    verdicts = _Verdicts.model_validate(report).model_dump(mode="json")
    return {"schema_version": REPORT_SCHEMA, **verdicts}


def comparison_to_json(report: Report, policy: Policy = STRICT) -> dict[str, Any]:
    """Turn a report and its causes, which are words and so not stored, into plain values."""
    causes = [
        CauseItem.model_validate(
            {
                "area": cause.area,
                "better": cause.is_better,
                "action": cause.action,
                "sentence": cause_sentence(cause, report),
                "parts": cause.parts,
                "failure": find_death(report, cause),
            }
        )
        for cause in causes_in(report, policy)
    ]
    return {**to_json(report), "causes": [one.model_dump(mode="json") for one in causes]}
