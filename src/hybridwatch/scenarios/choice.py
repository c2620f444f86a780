"""A text of a file that is one of some, of which not all are known when the type is made."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema


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
