"""What is wrong with JSON from outside, in a line that names the key, what it has and should have.

The line is short, and takes little memory to make, however much is wrong.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from hybridwatch.errors import RecordError
from hybridwatch.records.fields import MOST_JSON_PARTS, MOST_JSON_VALUES
from hybridwatch.records.json_size import check_json_size

_SHOWN: Final = 60
"""How much of a wrong value an error message repeats."""
_WRITTEN_BITS: Final = 256
"""Of a longer number a message gives the length only."""
_MOST_FINDINGS: Final = 1_000
"""Of a file with more wrong places their number is said: to list them takes a kilobyte for each."""


def check_json(what: str, raw: bytes) -> None:
    """Check that JSON can be read in little memory; ``what`` it is, for a message."""
    try:
        check_json_size(raw, MOST_JSON_VALUES, MOST_JSON_PARTS)
    except ValueError as error:
        raise RecordError(f"{what}: {error}") from error


def describe_first_in(raw: bytes, error: ValueError) -> str:
    """Describe the first finding in JSON.

    What was found is looked up in it: for each finding pydantic would make all of the values again.
    """
    if not isinstance(error, ValidationError):
        return _printable(str(error))
    if error.error_count() > _MOST_FINDINGS:
        return f"expected at most {_MOST_FINDINGS} wrong values, found {error.error_count()}"
    content = _parse(raw)
    findings = error.errors(include_url=False, include_input=False)
    for finding in findings:
        value = content
        for step in finding["loc"]:
            try:
                value = value[step]
            except (LookupError, TypeError):
                break  # a missing key, or that a key itself is wrong
        finding["input"] = value
    return _first_line(findings)


def describe_first(error: ValidationError) -> str:
    """Describe the first finding in values of Python."""
    return _first_line(error.errors(include_url=False))


def _parse(raw: bytes) -> Any:
    try:
        return from_json(raw)
    except ValueError:
        return raw


def _first_line(found: Sequence[ErrorDetails]) -> str:
    """Tell the first of pydantic's findings in one line; the others usually follow from it."""
    # What the other keys have to be hangs on the version.
    text = _describe(min(found, key=lambda one: one["loc"] != ("schema_version",)))
    return _printable(text)


def _printable(text: str) -> str:
    # A key may come from outside, and must neither break the line nor command the terminal.
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _describe(finding: ErrorDetails) -> str:
    path = "".join(
        f"[{step}]" if isinstance(step, int) else f".{cut(step)}" for step in finding["loc"]
    ).lstrip(".")
    prefix = f"{path}: " if path else ""
    if finding["type"] == "missing":
        return f"{prefix}expected a value, found nothing"
    if finding["type"] == "unexpected_keyword_argument":
        return f"{prefix}expected no such key, found {shown(finding['input'])}"
    if finding["type"] == "string_unicode":
        return f"{prefix}expected Unicode text, found a lone surrogate"
    if finding["type"] in {"too_long", "too_short", "string_too_long"}:
        return f"{prefix}{_lengths(finding)}"
    message = finding["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    return f"{prefix}{message}, found {shown(finding['input'])}"


def _lengths(finding: ErrorDetails) -> str:
    limits = finding["ctx"]
    noun = "characters" if "string" in finding["type"] else "items"
    if "min_length" in limits:
        return f"expected at least {limits['min_length']} {noun}, found {len(finding['input'])}"
    return f"expected at most {limits['max_length']} {noun}, found {len(finding['input'])}"


def shown(value: object) -> str:
    """Show the beginning of a value."""
    if isinstance(value, int) and value.bit_length() > _WRITTEN_BITS:
        return f"a number of {value.bit_length()} bits"  # Python does not even write some of them
    if isinstance(value, str | list | tuple):
        value = value[: 2 * _SHOWN]
    elif isinstance(value, dict):
        value = dict(islice(value.items(), 2 * _SHOWN))
    return cut(repr(value))


def cut(text: str) -> str:
    """Cut a text where it is longer than a message repeats."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
