"""How types of a record map to keys of its file, and the bounds of their values.

The fields of a ``RecordPart`` are the keys. The bounds are far above whatever was measured, and low
enough that no reader is brought down. ``results/README.md`` documents both for people.
"""

import math
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
    JsonValue,
    PlainSerializer,
    TypeAdapter,
)
from pydantic_core import CoreSchema, core_schema

from hybridwatch.metrics import find_metric

MOST_RECORD_BYTES: Final = 32 * 2**20
"""Of a record. The largest of ours has 2.7 MB."""
MOST_BULK_BYTES: Final = 64 * 2**20
"""Of the file next to it as it lies on the disk. The largest of ours has 1.5 MB."""
MOST_UNZIPPED_BYTES: Final = 256 * 2**20
"""Of the same, uncompressed. The largest of ours has 4.4 MB."""
MOST_LINE_BYTES: Final = 32 * 2**20
"""Of one of its lines. The longest of ours has 0.1 MB."""
MOST_LINES: Final = 1_000_000
"""Of it; the largest of ours has 822."""

LONGEST_NAME: Final = 1_000
"""Characters of an id, a label, a version, a place in the code; the longest of ours has 103."""
LONGEST_TEXT: Final = 100_000
"""Characters of a sentence, such as the reason of a failure."""
LONGEST_LOG: Final = 2**20
"""Characters of the end of a log."""

MOST_TRIALS: Final = 10_000
"""Of a record, failed ones included: one of asv's has one for each benchmark that failed."""
MOST_MEASURED: Final = 2_000
"""Of them those that did not fail; ours have 42."""
MOST_SAMPLES: Final = 4_000
"""Of one trial, and different metrics of one record; ours have 15, the largest class of benchmarks
that we know of 3,000."""
MOST_VALUES: Final = 1_000_000
"""Of one sample; ours have 1,128."""
MOST_ITEMS: Final = 1_000
"""Of every other list and table."""

MOST_JSON_VALUES: Final = 2_000_000
"""Of a whole record, or of one line next to it: numbers, texts, lists and objects, however deep.
The largest of ours has 177,038."""
MOST_JSON_PARTS: Final = 200_000
"""Lists, objects and keys of the same, each of which takes hundreds of bytes while it is read."""

_WHOLE: Final = 2**31 - 1
"""Counts are kept in 32 bits (``index.tables``)."""
_BYTES: Final = 2**60
_SECONDS: Final = 1e9
_PER_SECOND: Final = 1e15
_WATTS: Final = 1e6
_CELSIUS: Final = 1e4
_ABSOLUTE_ZERO: Final = -273.15

LARGEST: Final = 1e30
SMALLEST: Final = 1e-30
"""Of a value that is not 0: sums, squares and ratios of values in between are numbers."""

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2199
"""Times in between can be moved to any zone, counted in nanoseconds, and written by any tool."""

_LARGEST_WHOLE: Final = 2**63 - 1


def _not_tiny(values: tuple[float, ...]) -> tuple[float, ...]:
    # All at once: a call for each value would take as long as decoding it.
    if min(values, default=SMALLEST) >= SMALLEST:
        return values
    if min(filter(None, map(abs, values)), default=SMALLEST) < SMALLEST:
        raise ValueError(f"expected each to be 0, or at least {SMALLEST:g} in size")
    return values


def in_years(value: datetime) -> datetime:
    """Check that a time, which is in UTC, can be handled by everything that shows it."""
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise ValueError(f"expected a time of the years {FIRST_YEAR} to {LAST_YEAR}")
    return value


def _check_json(value: JsonValue, path: str) -> None:
    if isinstance(value, list):
        if not _is_plain(value):
            for at, item in enumerate(value):
                _check_json(item, f"{path}[{at}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_json(item, f"{path}.{key[:LONGEST_NAME]}")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{path}: expected a finite number")
    elif isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        raise ValueError(f"{path}: expected a number of at most 64 bits")


def _is_plain(values: list[JsonValue]) -> bool:
    """Whether these are numbers that are all in order; long lists are nothing else."""
    try:
        total = math.fsum(map(abs, values))  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False
    return total <= _LARGEST_WHOLE


def check_client(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Check that every number in the JSON of a load client is one, of at most 64 bits."""
    for key, item in value.items():
        _check_json(item, key[:LONGEST_NAME])
    return value


Name: TypeAlias = Annotated[str, Field(max_length=LONGEST_NAME)]
Text: TypeAlias = Annotated[str, Field(max_length=LONGEST_TEXT)]
Log: TypeAlias = Annotated[str, Field(max_length=LONGEST_LOG)]
Id: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
Digest: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

Place: TypeAlias = Annotated[int, Field(ge=0, lt=MOST_TRIALS)]
Whole: TypeAlias = Annotated[int, Field(ge=0, le=_WHOLE)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=_WHOLE)]
Number: TypeAlias = Annotated[int, Field(ge=-_LARGEST_WHOLE, le=_LARGEST_WHOLE)]
Bytes: TypeAlias = Annotated[int, Field(ge=0, le=_BYTES)]
Duration: TypeAlias = Annotated[float, Field(ge=0, le=_SECONDS)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=_SECONDS)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Hertz: TypeAlias = Annotated[float, Field(gt=0, le=_PER_SECOND)]
PerSecond: TypeAlias = Annotated[float, Field(gt=0, le=_PER_SECOND)]
Watts: TypeAlias = Annotated[float, Field(ge=0, le=_WATTS)]
Celsius: TypeAlias = Annotated[float, Field(ge=_ABSOLUTE_ZERO, le=_CELSIUS)]
Value: TypeAlias = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Values: TypeAlias = Annotated[
    tuple[Value, ...], Field(max_length=MOST_VALUES, fail_fast=True), AfterValidator(_not_tiny)
]
Client: TypeAlias = Annotated[dict[str, JsonValue], AfterValidator(check_client)]


T = TypeVar("T")
_Key = TypeVar("_Key")


class RecordPart:
    """A frozen dataclass that is a JSON object in a record.

    Only a key that is left out when there is nothing to say (``IfKnown``, ``IfAny``) may be
    missing.
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


IfKnown: TypeAlias = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A key that is left out where there is none: records made before it existed stay as they are."""
IfAny: TypeAlias = Annotated[T, Field(exclude_if=not_)]
"""A key that is left out where it is empty or false, likewise."""
NotInRecord: TypeAlias = Annotated[T, Field(exclude=True)]
"""What lies in the file next to the record."""
Items: TypeAlias = Annotated[tuple[T, ...], Field(max_length=MOST_ITEMS, fail_fast=True)]
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
        raise ValueError("expected the plain name of a file next to the record")
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
Ascending: TypeAlias = Annotated[Items[Count], AfterValidator(_ascending)]
