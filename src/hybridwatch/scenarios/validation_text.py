"""Turns what pydantic found wrong into one line per key: key, expected, found.

What a key expects is read from the model's JSON schema, so bounds are stated in one place only.
"""

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hybridwatch.errors import HybridwatchError
from hybridwatch.metrics import FAMILIES, METRICS

Location = tuple[int | str, ...]
Schema = Mapping[str, Any]

_NOUNS = {
    "integer": ("an integer", "integers"),
    "number": ("a number", "numbers"),
    "boolean": ("true or false", "truths"),
    "string": ("a text", "texts"),
    "object": ("a table", "tables"),
    "array": ("a list", "lists"),
}
_KEY = "[key]"  # pydantic's mark at the end of a location: the name is wrong, not its value
_LONGEST_FOUND = 60  # characters of a wrong value that are worth showing


def explain(model: type[BaseModel], error: ValidationError) -> list[str]:
    """Word each wrong key of one document, in the order of the type's fields."""
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


def _lines(schema: Schema, detail: ErrorDetails) -> Iterator[str]:
    location = detail["loc"]
    key = _key(location)
    match detail["type"]:
        case "contradictions":
            yield from (f"{_joined(key, name)}: {wrong}" for name, wrong in detail["ctx"]["wrong"])
        case "extra_forbidden":
            tables = _forms(schema, _at(schema, location[:-1]))
            known = [name for table in tables for name in table.get("properties", {})]
            yield f"{key}: unknown key; {closest(str(location[-1]), _writable(known))}"
        case "missing":
            yield f"{key}: missing; expected {_expected(schema, location)}"
        case "metric":
            known = [metric.id for metric in METRICS] + [f"{name}.*" for name in FAMILIES]
            yield f"{key}: no metric has this id; {closest(str(detail['input']), known)}"
        case _:
            yield f"{key}: expected {_expected(schema, location)}, found {_found(schema, detail)}"


def _found(schema: Schema, detail: ErrorDetails) -> str:
    """Show what was written, unless it stands where a secret may be."""
    location = detail["loc"]
    if _KEY not in location and _at(schema, location).get("writeOnly"):
        return "something else, which is not shown since it may be a secret"
    return quoted(detail["input"])


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
            key = _joined(key, quoted(step) if "." in step else step)
    return key


def _joined(table: str, key: str) -> str:
    return ".".join(name for name in (table, key) if name)


def _at(schema: Schema, location: Location) -> Schema:
    """Return the part of a JSON schema that speaks about a location."""
    here = schema
    for step in location:
        here = next(inner for form in _forms(schema, here) if (inner := _inside(form, step)))
    return here


def _inside(part: Schema, step: int | str) -> Schema | None:
    if isinstance(step, int):
        return part.get("items")
    return part.get("properties", {}).get(step) or part.get("additionalProperties") or None


def _forms(schema: Schema, part: Schema) -> list[Schema]:
    """Return what a value may be: one form, or several; TOML has no null."""
    forms = [
        schema["$defs"][form["$ref"].rpartition("/")[2]] if "$ref" in form else form
        for form in part.get("anyOf", [part])
    ]
    return [form for form in forms if form.get("type") != "null"]


def _expected(schema: Schema, location: Location) -> str:
    if location[-1] == _KEY:
        part = _at(schema, location[:-2]).get("propertyNames", {"type": "string"})
    else:
        part = _at(schema, location)
    forms = _forms(schema, part)
    return " or ".join(_form(schema, form, one_of_many=len(forms) > 1) for form in forms)


def _form(schema: Schema, part: Schema, *, one_of_many: bool) -> str:
    if "enum" in part:
        return "one of " + ", ".join(quoted(choice) for choice in part["enum"])
    if "const" in part:  # the only choice
        return quoted(part["const"])
    if part["type"] == "array":
        noun = "a non-empty list" if part.get("minItems") else "a list"
        (items,) = _forms(schema, part["items"])
        return _with_bounds(f"{noun} of {_plural(items)}", items)
    if part["type"] == "string":
        return str(part.get("description", "a text"))
    if part["type"] == "object" and one_of_many:
        return f"a table with {' and '.join(part['required'])}"
    return _with_bounds(_NOUNS[part["type"]][0], part)


def _plural(part: Schema) -> str:
    noun = _NOUNS[part["type"]][1]
    # What describes a table is the documentation of its type, too long for a line.
    return noun if part["type"] == "object" else str(part.get("description", noun))


def _with_bounds(noun: str, part: Schema) -> str:
    low, high = part.get("minimum"), part.get("maximum")
    if low is None:
        return noun
    return f"{noun} >= {low}" if high is None else f"{noun} from {low} to {high}"


@contextmanager
def refusing_toml(
    path: Path, model: type[BaseModel], error: type[HybridwatchError], name: Path | None = None
) -> Iterator[None]:
    """Turn what reading and checking a file raises into lines for a person.

    The lines call the file ``name``, or by its path when not given; ``model`` is the type that it
    is checked by within.

    Raises:
        HybridwatchError: The file cannot be read, is not TOML, or the model refused it; then one
            line for each wrong key.
    """
    called = name or path
    try:
        yield
    except OSError as failure:
        raise error(f"{path}: cannot be read: {failure.strerror}") from failure
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as failure:
        raise error(f"{called}: not TOML: {failure}") from None
    except ValidationError as failure:
        lines = explain(model, failure)
        raise error("\n".join(f"{called}: {line}" for line in lines)) from None
