"""How large the numbers, texts and lists of a record may be.

Far above whatever was measured, and low enough that nothing that reads a record is brought down by
it. ``results/README.md`` names them for people. A run outside them is not written either.
"""

import math
from datetime import datetime
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field, JsonValue

MOST_RECORD_BYTES: Final = 64 * 2**20
"""Of a record. The largest of ours has 0.6 MB."""
MOST_BULK_BYTES: Final = 64 * 2**20
"""Of the file next to it as it lies on the disk. The largest of ours has 0.4 MB."""
MOST_UNZIPPED_BYTES: Final = 256 * 2**20
"""Of the same, uncompressed."""

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


def _is_sound(value: JsonValue) -> bool:
    """Whether every number is in order; if not, the slower ``_check_json`` says where."""
    if isinstance(value, str) or value is None:
        return True
    if isinstance(value, list):
        return _is_plain(value) or all(map(_is_sound, value))
    if isinstance(value, dict):
        return all(map(_is_sound, value.values()))
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= _LARGEST_WHOLE


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
    if not _is_sound(value):
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
    tuple[Value, ...],
    Field(max_length=MOST_VALUES),
    AfterValidator(_not_tiny),
]
Client: TypeAlias = Annotated[dict[str, JsonValue], AfterValidator(check_client)]
