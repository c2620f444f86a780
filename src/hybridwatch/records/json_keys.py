"""Which keys a large record lacks or has too many, found before pydantic reads it.

For each such key pydantic keeps a copy of the whole object around it, which may be all there is.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import from_json

from hybridwatch.records.fields import build_adapter
from hybridwatch.records.findings import cut, shown

_LARGE: Final = 2**16
"""Bytes; of less, the copies are small."""
_schemas: Final[dict[type, Mapping[str, Any]]] = {}


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
    _check(content, schema, schema.get("$defs", {}), "")


def _check(value: Any, schema: Mapping[str, Any], parts: Mapping[str, Any], path: str) -> None:
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
            _check(item, schema["properties"][key], parts, f"{prefix}{key}")
    elif isinstance(value, list) and schema.get("items", {}).keys() & {"$ref", "anyOf"}:
        for at, item in enumerate(value):
            _check(item, schema["items"], parts, f"{path}[{at}]")
