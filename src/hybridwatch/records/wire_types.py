"""Values of a record as the file form writes them: times, names of files, rising numbers."""

import re
from collections.abc import Sized
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from hybridwatch.records.bounds import MOST_ITEMS, Count, Name, in_years
from hybridwatch.records.line import checked_line

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
