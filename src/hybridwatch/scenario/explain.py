"""Turns what pydantic found wrong into one line per key: key, expected, found.

What a key expects is read from the model's JSON schema, so bounds are stated in one place only.
"""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hybridwatch.metric.catalogue import FAMILIES, METRICS

Location = tuple[int | str, ...]

_NOUNS = {
    "integer": ("an integer", "integers"),
    "number": ("a number", "numbers"),
    "string": ("a text", "texts"),
    "object": ("a table", "tables"),
    "array": ("a list", "lists"),
}
_KEY = "[key]"  # pydantic's mark at the end of a location: the name is wrong, not its value
_LONGEST_FOUND = 60  # characters of a wrong value that are worth showing


def explain(model: type[BaseModel], error: ValidationError) -> list[str]:
    """Word each wrong key of one document.

    Args:
        model: The type that refused it.
        error: The refusal.

    Returns:
        ``key: what is wrong`` in the order of the type's fields, one line each.
    """
    schema = model.model_json_schema()
    details = error.errors()
    # A list with a wrong item is also reported as too short; the item alone says it better.
    inner = {detail["loc"][:end] for detail in details for end in range(len(detail["loc"]))}
    return [
        line
        for detail in details
        if not detail["loc"] or detail["loc"] not in inner
        for line in _lines(schema, detail)
    ]


def closest(word: str, known: Sequence[str]) -> str:
    """Return what to say after an unknown word: near matches, or else everything known."""
    near = difflib.get_close_matches(word, known, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(quoted(name) for name in near)}?"
    return f"known: {', '.join(known) if known else 'none'}"


def quoted(value: object) -> str:
    """Return a value as a TOML author would write it, shortened when long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_FOUND else text[: _LONGEST_FOUND - 3] + "..."


def _lines(schema: Mapping[str, Any], detail: ErrorDetails) -> Iterator[str]:
    location = detail["loc"]
    key = _key(location)
    match detail["type"]:
        case "contradictions":
            yield from (f"{name}: {wrong}" for name, wrong in detail["ctx"]["wrong"])
        case "extra_forbidden":
            known = list(_at(schema, location[:-1]).get("properties", {}))
            yield f"{key}: unknown key; {closest(str(location[-1]), _writable(known))}"
        case "missing":
            yield f"{key}: missing; expected {_expected(schema, location)}"
        case "metric":
            known = [metric.id for metric in METRICS] + [f"{name}.*" for name in FAMILIES]
            yield f"{key}: no metric has this id; {closest(str(detail['input']), known)}"
        case _:
            found = quoted(detail["input"])
            yield f"{key}: expected {_expected(schema, location)}, found {found}"


def _writable(keys: Sequence[str]) -> list[str]:
    return [key for key in keys if key != "id"]  # the loader's own, see Scenario


def _key(location: Location) -> str:
    key = ""
    for step in location:
        if step == _KEY:
            continue
        if isinstance(step, int):
            key += f"[{step}]"
        else:
            name = quoted(step) if "." in step else step
            key += f".{name}" if key else name
    return key


def _at(schema: Mapping[str, Any], location: Location) -> Mapping[str, Any]:
    """Return the part of a JSON schema that speaks about a location."""
    here = schema
    for step in location:
        if isinstance(step, int):
            here = here["items"]
        else:
            here = here.get("properties", {}).get(step) or here["additionalProperties"]
        if "$ref" in here:
            here = schema["$defs"][here["$ref"].rpartition("/")[2]]
    return here


def _expected(schema: Mapping[str, Any], location: Location) -> str:
    if location[-1] == _KEY:
        part = _at(schema, location[:-2]).get("propertyNames", {"type": "string"})
    else:
        part = _at(schema, location)
    if "enum" in part:
        return "one of " + ", ".join(quoted(choice) for choice in part["enum"])
    if part["type"] == "array":
        noun = "a non-empty list" if part.get("minItems") else "a list"
        return _with_bounds(f"{noun} of {_plural(part['items'])}", part["items"])
    if part["type"] == "string":
        return str(part.get("description", "a text"))
    return _with_bounds(_NOUNS[part["type"]][0], part)


def _plural(part: Mapping[str, Any]) -> str:
    return str(part.get("description") or _NOUNS[part["type"]][1])


def _with_bounds(noun: str, part: Mapping[str, Any]) -> str:
    low, high = part.get("minimum"), part.get("maximum")
    if low is None:
        return noun
    return f"{noun} >= {low}" if high is None else f"{noun} from {low} to {high}"
