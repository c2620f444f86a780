"""What a record is about, without its trials: enough to know that a newer one takes its place.

Nothing is checked but that it is there; what uses more of a record reads it whole.
"""

from pydantic import AwareDatetime, BaseModel, Field, ValidationError
from pydantic_core import from_json


class _Build(BaseModel):
    label: str
    line: str | None = None


class _Scenario(BaseModel):
    id: str
    version: int
    digest: str


class _Testbed(BaseModel):
    id: str


class Head(BaseModel):
    """What a record is about; the names are those of the record's keys."""

    id: str
    started_at: AwareDatetime
    scenario: _Scenario
    testbed: _Testbed
    builds: list[_Build] = Field(min_length=1, max_length=2)


def read_head(record: bytes) -> Head | None:
    """Read a record's head, also of one that was cut short; ``None`` where there is none."""
    try:
        return Head.model_validate_json(record)
    except ValidationError:
        pass
    try:
        return Head.model_validate(from_json(record, allow_partial=True))
    except ValueError:
        return None
