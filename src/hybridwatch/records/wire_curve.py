"""The file form of a sweep's curve, and of what lies beside the record of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from hybridwatch.records.bounds import MOST_ITEMS, MOST_SAMPLES, PerSecond, Seconds, Whole
from hybridwatch.records.run import Clock, Curve, Point, Sample
from hybridwatch.records.wire_sample import WireSample

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
