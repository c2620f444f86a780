"""The file form of a sample."""

from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from hybridwatch.metrics import metric_of
from hybridwatch.records.bounds import Name, Values


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
