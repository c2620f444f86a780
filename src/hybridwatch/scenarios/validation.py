"""Base of the tables of a scenario, and errors of a wrong one: key, expected, found.

What a key expects is read from the model's JSON schema, so bounds are stated in one place only.
"""

import difflib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from hybridwatch.errors import HybridwatchError
from hybridwatch.metrics import FAMILIES, list_metrics

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Tokens = Annotated[int, Field(ge=1, le=1_048_576)]
Concurrency = Annotated[int, Field(ge=1, le=8192)]
Rate = Annotated[float, Field(ge=0.001, le=100_000)]
"""Per second."""
Seed = Annotated[int, Field(ge=0)]
Contradiction = tuple[str, str]
"""The key at fault, as seen from the table that has the rule, and what is wrong with it."""


@dataclass(frozen=True)
class Choice:
    """Annotates a text that must be known or among ``more``, which is called late."""

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


class Part(BaseModel):
    """A table: strict, frozen, without unknown keys, and refused for its contradictions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        refuse(*self._contradictions())
        return self

    def _contradictions(self) -> Iterator[Contradiction]:
        """Yield each broken rule between the fields as the key at fault and what is wrong."""
        return iter(())


def refuse(*wrong: Contradiction) -> None:
    """Refuse a table of which rules between the fields are broken, with a line for each."""
    if wrong:
        raise PydanticCustomError("contradictions", "fields disagree", {"wrong": wrong})


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
            known = [name for name in known if name != "id"]  # the loader's own, see Scenario
            yield f"{key}: unknown key; {closest(str(location[-1]), known)}"
        case "missing":
            yield f"{key}: missing; expected {_expected(schema, location)}"
        case "metric":
            known = [metric.id for metric in list_metrics()] + [f"{name}.*" for name in FAMILIES]
            yield f"{key}: no metric has this id; {closest(str(detail['input']), known)}"
        case _:
            yield f"{key}: expected {_expected(schema, location)}, found {_found(schema, detail)}"


def _found(schema: Schema, detail: ErrorDetails) -> str:
    location = detail["loc"]
    if _KEY not in location and _at(schema, location).get("writeOnly"):
        return "something else, which is not shown since it may be a secret"
    return quoted(detail["input"])


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
    part = _at(schema, location[:-2] if location[-1] == _KEY else location)
    if location[-1] == _KEY:
        part = {"type": "string", **part.get("propertyNames", {})}
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
    """Turn what reading and checking a file (as a ``model``) raises into lines for a person."""
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
