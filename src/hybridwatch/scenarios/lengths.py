"""How long things are: one length, lengths to draw from, or one for each request of a wave."""

import math
from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator
from pydantic_core import PydanticCustomError

from hybridwatch.scenarios.part import Part, Tokens, refuse

MAX_TOKENS: Final = 1_048_576


class Span(Part):
    """How long something is: one of the lengths ``k * multiple_of + plus`` from low to high.

    Attributes:
        low: The smallest length; ``from`` in a file.
        high: The largest length; ``to`` in a file.
        multiple_of: Lengths are so many apart, such as a block of the cache.
        plus: How far beyond a multiple.
    """

    low: Tokens = Field(alias="from")
    high: Tokens = Field(alias="to")
    multiple_of: Tokens = 1
    plus: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.lengths:
            wanted = f"a length {self.multiple_of}k + {self.plus}"
            refuse(("", f"expected {wanted} from {self.low} to {self.high}, found none"))
        return self

    @property
    def lengths(self) -> range:
        """Every length that can be drawn, ascending."""
        steps = max(0, math.ceil((self.low - self.plus) / self.multiple_of))
        return range(self.plus + steps * self.multiple_of, self.high + 1, self.multiple_of)

    def at(self, unit: float) -> int:
        """The length at a place from 0 (the shortest) to just below 1 (the longest)."""
        return self.lengths[int(unit * len(self.lengths))]

    def of(self, _request: int, unit: float) -> int:
        """The length of a request, by its number in the wave and what it has drawn."""
        return self.at(unit)

    def bounds(self, _request: int) -> tuple[int, int]:
        """The shortest and the longest that a request can get."""
        return self.lengths[0], self.lengths[-1]


class LengthsRow(Span):
    """One length for each request, in the order of the requests; nothing is drawn.

    Attributes:
        each: The lengths.
    """

    each: tuple[Tokens, ...] = Field(strict=False, min_length=1)

    def of(self, request: int, _unit: float) -> int:
        """The length of a request."""
        return self.each[request]

    def bounds(self, request: int) -> tuple[int, int]:
        """The length of a request, twice."""
        return self.each[request], self.each[request]


def _read_length(value: object) -> object:
    """Read the short forms: a number alone is a span of that one length, a list is a row."""
    if type(value) is int:
        return {"from": _checked(value, 1), "to": value}
    if isinstance(value, list):
        each = tuple(_checked(item, 1) for item in value)
        return LengthsRow.model_validate({"from": min(each), "to": max(each), "each": each})
    return value


def _checked(value: object, least: int, most: int = MAX_TOKENS) -> int:
    if type(value) is not int or not least <= value <= most:
        raise PydanticCustomError("length", "not a length")
    return value


def one_or_each(least: int, most: int) -> Any:
    """Make the validator of a number for all requests of a wave, or a list with one for each."""

    def read(value: object) -> int | tuple[int, ...]:
        if isinstance(value, (list, tuple)) and value:
            return tuple(_checked(item, least, most) for item in value)
        return _checked(value, least, most)

    number = Annotated[int, Field(ge=least, le=most)]
    return BeforeValidator(read, json_schema_input_type=number | list[number])


def for_each(value: int | tuple[int, ...], request: int) -> int:
    """The number of one request, where there is one for all or one for each."""
    return value if isinstance(value, int) else value[request]


Length = Annotated[
    SerializeAsAny[Span],
    BeforeValidator(_read_length, json_schema_input_type=Tokens | Span | list[Tokens]),
]
"""A length in a file: an integer, a table with ``from`` and ``to``, or a list of integers."""

SharedTokens = Annotated[int | tuple[int, ...], one_or_each(0, MAX_TOKENS)]
Priority = Annotated[int | tuple[int, ...], one_or_each(-1000, 1000)]
