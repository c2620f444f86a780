"""How the types of a record are the keys of its file, which ``results/README.md`` documents.

A type that is a ``RecordPart`` is read from JSON and written to it as it stands: its fields are the
keys, with the bounds that they are annotated with. What the file has otherwise is said here too.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from operator import not_
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    PlainSerializer,
    TypeAdapter,
)
from pydantic_core import CoreSchema, core_schema

from hybridwatch.metrics import find_metric
from hybridwatch.records.bounds import MOST_ITEMS, Count, Name, in_years
from hybridwatch.records.line import checked_line

T = TypeVar("T")
_Key = TypeVar("_Key")


class RecordPart:
    """A frozen dataclass that is a JSON object in a record.

    A key may be missing there only where it is left out when there is nothing to say (``IfKnown``,
    ``IfAny``), whatever the default of the field in memory is.
    """

    __slots__ = ()

    # Strict: "1" is not 1. Not-a-number has no JSON form, so it is no value here either. A value in
    # memory is checked as well, before it is written.
    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, revalidate_instances="always"
    )

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Give what pydantic makes of the dataclass, with the keys that must be there."""
        whole = handler(source)
        part: Any = whole
        while part["type"] != "dataclass":
            part = part["schema"]  # of a check of the whole (``model_validator``)
        for field in part["schema"]["fields"]:
            if field.get("serialization_exclude"):
                field["init"] = False  # no key of the file, and not looked at when it is written
                part["fields"].remove(field["name"])
            elif "serialization_exclude_if" not in field and field["schema"]["type"] == "default":
                field["schema"] = field["schema"]["schema"]
        return whole


_forms: Final[dict[type, TypeAdapter[Any]]] = {}


def build_adapter(part: type[T]) -> TypeAdapter[T]:
    """Give what reads and writes a part; made when it is first needed, since that takes long."""
    if part not in _forms:
        _forms[part] = TypeAdapter(part)
    return _forms[part]


def _is_none(value: object) -> bool:
    return value is None


IfKnown: TypeAlias = Annotated[T | None, Field(exclude_if=_is_none)]
"""A key that is left out where there is none: records made before it existed stay as they are."""
IfAny: TypeAlias = Annotated[T, Field(exclude_if=not_)]
"""A key that is left out where it is empty or false, likewise."""
Beside: TypeAlias = Annotated[T, Field(exclude=True)]
"""What lies in the file next to the record."""
Items: TypeAlias = Annotated[tuple[T, ...], Field(max_length=MOST_ITEMS)]
Table: TypeAlias = Annotated[Mapping[_Key, T], Field(max_length=MOST_ITEMS)]


def one_of(*texts: str) -> GetPydanticSchema:
    """Say which texts alone a key may have."""
    return GetPydanticSchema(lambda *_: core_schema.literal_schema(list(texts)))


def _known_metric(value: str) -> str:
    try:
        find_metric(value)
    except KeyError:
        raise ValueError("expected the id of a metric this hybridwatch knows") from None
    return value


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


def _ascending(value: tuple[int, ...]) -> tuple[int, ...]:
    if any(later <= earlier for earlier, later in pairwise((0, *value))):
        raise ValueError("expected rising numbers from 1 on")
    return value


KnownMetric: TypeAlias = Annotated[Name, AfterValidator(_known_metric)]
Time: TypeAlias = Annotated[
    datetime, BeforeValidator(_in_utc), PlainSerializer(_as_text, return_type=str)
]
FileName: TypeAlias = Annotated[Name, AfterValidator(_plain_file_name)]
BuildLine: TypeAlias = Annotated[Name, AfterValidator(checked_line)]
Ascending: TypeAlias = Annotated[Items[Count], AfterValidator(_ascending)]
