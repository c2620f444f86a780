"""Parts of a record's file form: times and names, samples, answers of contract trials, curves."""

import re
from collections.abc import Mapping, Sized
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    model_validator,
)

from hybridwatch.metrics import metric_of
from hybridwatch.records.bounds import (
    MOST_ITEMS,
    MOST_SAMPLES,
    MOST_VALUES,
    Count,
    Name,
    PerSecond,
    Seconds,
    Values,
    Whole,
    in_years,
)
from hybridwatch.records.completion import CLOSE, CloseCall, Completion
from hybridwatch.records.line import checked_line
from hybridwatch.records.run import Clock, Curve, Point, Sample


def _known_metric(value: str) -> str:
    try:
        metric_of(value)
    except KeyError:
        raise ValueError("expected the id of a metric this hybridwatch knows") from None
    return value


KnownMetric: TypeAlias = Annotated[Name, AfterValidator(_known_metric)]


class WireSample(BaseModel):
    """Fields as ``record.run.Sample``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    metric: KnownMetric
    values: Values
    statistic: Name | None = Field(default=None, exclude_if=lambda value: value is None)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.statistic is not None and len(self.values) != 1:
            raise ValueError("expected one value beside statistic")
        return self


_Slo = Literal["ttft", "tpot"]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class _Point(_Wire):
    load: PerSecond
    samples: Annotated[tuple[WireSample, ...], Field(max_length=MOST_SAMPLES)]
    joules_per_token: PerSecond | None = Field(default=None, exclude_if=lambda value: value is None)

    def to_point(self) -> Point:
        samples = tuple(Sample(**vars(sample)) for sample in self.samples)
        return Point(self.load, samples, self.joules_per_token)


class WireCurve(_Wire):
    """Fields as ``record.run.Curve``; the client's JSON of each point is kept beside."""

    knob: Literal["max_concurrency", "request_rate"]
    points: Annotated[tuple[_Point, ...], Field(min_length=1, max_length=MOST_ITEMS)]
    gpus: Whole
    slo: dict[_Slo, Seconds]
    clock: Clock = Field(default="wall", exclude_if=lambda value: value == "wall")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        loads = [point.load for point in self.points]
        if len(set(loads)) < len(loads):
            raise ValueError("expected each load once")
        return self

    def to_curve(self) -> Curve:
        """Give the memory form, without what lies beside the record."""
        points = tuple(point.to_point() for point in self.points)
        slo = {str(metric): bound for metric, bound in self.slo.items()}
        return Curve(self.knob, points, self.gpus, slo, self.clock)


def with_results(curve: Curve, results: Mapping[int, Mapping[str, JsonValue]]) -> Curve:
    """Give the points of a curve what lies beside the record, by their place."""
    points = (replace(one, client_result=results.get(at)) for at, one in enumerate(curve.points))
    return replace(curve, points=tuple(points))


_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")


def _in_utc(value: object) -> datetime:
    """Accept an aware time, or its text as this file form writes it."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        return in_years(datetime.fromisoformat(value))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return in_years(in_years(value).astimezone(UTC))
    raise ValueError("expected a time in UTC such as 2026-11-21T09:15:00Z")


def _as_text(value: datetime) -> str:
    return value.isoformat().removesuffix("+00:00") + "Z"


def _plain_file_name(value: str) -> str:
    # A record is data from outside: it must not make us open ../../anything.
    plain = value.isprintable() and not value.startswith(".")
    if not value or not plain or "/" in value or "\\" in value:
        raise ValueError("expected the plain name of a file beside the record")
    return value


WireTime: TypeAlias = Annotated[
    datetime, BeforeValidator(_in_utc), PlainSerializer(_as_text, return_type=str)
]


def is_absent(value: object) -> bool:
    """Keep a key out of the file: records made before it existed stay as they are."""
    return value is None


def is_empty(value: Sized) -> bool:
    """Keep a key out of the file, as above."""
    return not value


def _ascending(value: tuple[int, ...]) -> tuple[int, ...]:
    if any(later <= earlier for earlier, later in pairwise((0, *value))):
        raise ValueError("expected rising numbers from 1 on")
    return value


Ascending: TypeAlias = Annotated[
    tuple[Count, ...], Field(max_length=MOST_ITEMS), AfterValidator(_ascending)
]
BuildLine: TypeAlias = Annotated[Name, AfterValidator(checked_line)]
FileName: TypeAlias = Annotated[Name, AfterValidator(_plain_file_name)]
FEW: Final = Field(max_length=MOST_ITEMS)


_Many = Field(max_length=MOST_VALUES)
_Logarithm = Annotated[float, Field(ge=-1e30, le=0)]
_Gap = Annotated[float, Field(ge=0, le=CLOSE)]


class WireCompletion(BaseModel):
    """One answer; fields as ``record.completion.Completion``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    prompt: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    tokens: Annotated[tuple[Whole, ...], _Many]
    logprobs: Annotated[tuple[_Logarithm, ...], _Many] = ()
    close_calls: Annotated[tuple[tuple[Whole, Whole, _Gap], ...], _Many] = ()
    is_wrong: bool | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.logprobs and len(self.logprobs) != len(self.tokens):
            raise ValueError(
                f"expected as many logprobs as tokens, {len(self.tokens)}, "
                f"found {len(self.logprobs)}"
            )
        return self

    def to_completion(self) -> Completion:
        """Give the memory form."""
        calls = tuple(CloseCall(*call) for call in self.close_calls)
        return Completion(self.prompt, self.tokens, self.logprobs, calls, self.is_wrong)
