"""What all tables of a scenario file have in common."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Tokens = Annotated[int, Field(ge=1, le=1_048_576)]
Concurrency = Annotated[int, Field(ge=1, le=8192)]
Rate = Annotated[float, Field(ge=0.001, le=100_000)]
"""Per second."""
Seed = Annotated[int, Field(ge=0)]
Contradiction = tuple[str, str]
"""The key at fault, as seen from the table that has the rule, and what is wrong with it."""


@dataclass(frozen=True)
class Choice:
    """Annotates a text: what else it is than one of these is refused, and these are named.

    Attributes:
        known: Those that are always there.
        more: Gives the others; called when a text is none of the first, or for a message.
    """

    known: Sequence[str]
    more: Callable[[], Iterable[str]]

    def __get_pydantic_core_schema__(
        self, _source: object, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Check a text against what is known now."""
        text = core_schema.str_schema(strict=True)
        return core_schema.no_info_after_validator_function(self._checked, text)

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Name what is known now."""
        return {"enum": [*self.known, *self.more()], "type": "string"}

    def _checked(self, text: str) -> str:
        if text not in self.known and text not in set(self.more()):
            raise PydanticCustomError("choice", "none of those that are known")
        return text


class Part(BaseModel):
    """A table: strict, frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def refuse(*wrong: Contradiction) -> None:
    """Refuse a table of which rules between the fields are broken, with a line for each."""
    if wrong:
        raise PydanticCustomError("contradictions", "fields disagree", {"wrong": wrong})
