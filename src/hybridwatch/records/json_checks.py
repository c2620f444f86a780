"""Checks of JSON from outside before it is read, and what is wrong with it in a line.

Three bytes can become an object of hundreds, and for each key that is missing or too many pydantic
keeps a copy of the whole object around it. So size and keys are looked at first, in little memory.
The line names the key, what it has and should have, and is short however much is wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from hybridwatch.errors import RecordError
from hybridwatch.records.fields import MOST_JSON_PARTS, MOST_JSON_VALUES, build_adapter

_SHOWN: Final = 60
"""How much of a wrong value an error message repeats."""
_WRITTEN_BITS: Final = 256
"""Of a longer number a message gives the length only."""
_MOST_FINDINGS: Final = 1_000
"""Of a file with more wrong places their number is said: to list them takes a kilobyte for each."""
_BLOCK: Final = 2**16
_LARGE: Final = 2**16
"""Bytes of JSON; of less, pydantic's copies are small."""
_schemas: Final[dict[type, Mapping[str, Any]]] = {}


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
    try:
        content = from_json(raw)
    except ValueError:
        content = raw
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


def first_fault(error: ValidationError, expected: str = "") -> str:
    """Say where the first finding is, what was ``expected``, and what pydantic says of it."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "file"
    return f"{where}: {expected}{first['msg']}"


def _first_line(found: Sequence[ErrorDetails]) -> str:
    """Give the first of pydantic's findings in one line; the others usually follow from it."""
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
    if finding["type"] in {"unexpected_keyword_argument", "extra_forbidden"}:
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


def check_json_size(raw: bytes, most_values: int, most_parts: int) -> None:
    """Check that JSON has no more values, nor lists, objects and keys (parts), than it may.

    An empty list counts as two values. Of what is no JSON, that is counted which stands before the
    fault, so no parser makes more of it.
    """
    values, parts = 1, 0
    for text in _outside_strings(raw):
        opened = text.count(b"[") + text.count(b"{")
        values += opened + text.count(b",")
        parts += opened + text.count(b":")
        if parts > most_parts:
            raise ValueError(f"expected at most {most_parts} lists, objects and keys, found more")
        if values > most_values:
            raise ValueError(f"expected at most {most_values} values, found more")


def _outside_strings(raw: bytes) -> Iterator[bytes]:
    """Yield, block by block, what stands in no string."""
    is_inside, kept = False, b""
    for start in range(0, len(raw), _BLOCK):
        block = kept + raw[start : start + _BLOCK]
        # A backslash and what it escapes stay together.
        kept = b"\\" * ((len(block) - len(block.rstrip(b"\\"))) % 2)
        parts = block.removesuffix(kept).replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        yield b"".join(parts[is_inside::2])
        is_inside ^= len(parts) % 2 == 0


def check_keys(part: type, raw: bytes) -> None:
    """Check the keys of a part and of all parts in it; what is small, or no JSON, is left alone."""
    if len(raw) < _LARGE:
        return
    try:
        content = from_json(raw)
    except ValueError:
        return
    if part not in _schemas:
        _schemas[part] = build_adapter(part).json_schema()
    schema = _schemas[part]
    _check_part(content, schema, schema.get("$defs", {}), "")


def _check_part(value: Any, schema: Mapping[str, Any], parts: Mapping[str, Any], path: str) -> None:
    schema = next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), schema)
    if "$ref" in schema:
        schema = parts[schema["$ref"].rpartition("/")[2]]
    if isinstance(value, dict) and "properties" in schema:
        prefix = f"{path}." if path else ""
        for key in schema.get("required", ()):
            if key not in value:
                raise ValueError(f"{prefix}{key}: expected a value, found nothing")
        for key, item in value.items():
            if key not in schema["properties"]:
                raise ValueError(f"{prefix}{cut(key)}: expected no such key, found {shown(item)}")
            _check_part(item, schema["properties"][key], parts, f"{prefix}{key}")
    elif isinstance(value, list) and schema.get("items", {}).keys() & {"$ref", "anyOf"}:
        for at, item in enumerate(value):
            _check_part(item, schema["items"], parts, f"{path}[{at}]")
