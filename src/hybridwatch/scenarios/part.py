"""What all tables of a scenario file have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Tokens = Annotated[int, Field(ge=1, le=1_048_576)]
Concurrency = Annotated[int, Field(ge=1, le=8192)]
Rate = Annotated[float, Field(ge=0.001, le=100_000)]
"""Per second."""
Seed = Annotated[int, Field(ge=0)]

Contradiction = tuple[str, str]
"""The key at fault, as seen from the table that has the rule, and what is wrong with it."""


class Part(BaseModel):
    """A table: strict, frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def refuse(*wrong: Contradiction) -> None:
    """Say which rules between the fields of a table are broken; nothing when none is.

    Raises:
        PydanticCustomError: ``explain`` makes one line of each rule.
    """
    if wrong:
        raise PydanticCustomError("contradictions", "fields disagree", {"wrong": wrong})
