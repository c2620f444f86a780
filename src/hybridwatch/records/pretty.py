"""JSON made for people and for ``git diff``: sorted keys, short lists on one line."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

_WIDTH: Final = 100

# Made once: making an encoder takes longer than encoding one of a record's thousand values.
_flat: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True).encode


def pretty(value: object, indent: int = 0) -> str:
    """Render JSON with sorted keys; what fits on a line stays on it, long lists are wrapped.

    ``indent`` is how many columns stand before the first character. Infinity and not-a-number are a
    ``ValueError``.
    """
    flat = _flat(value)
    if not isinstance(value, dict | list) or len(flat) <= _WIDTH - indent:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        pairs = sorted(value.items())
        inner = [f"{pad}{_flat(key)}: {pretty(item, indent + 2)}" for key, item in pairs]
        return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}"
    if _is_nested(value):
        inner = [pad + pretty(item, indent + 2) for item in value]
        return "[\n" + ",\n".join(inner) + "\n" + " " * indent + "]"
    # Numbers, of which most lists are, have no comma inside.
    items = [_flat(item) for item in value] if '"' in flat else flat[1:-1].split(", ")
    return "[\n" + _wrapped(items, pad) + "\n" + " " * indent + "]"


def _is_nested(value: Mapping[str, object] | Sequence[object]) -> bool:
    items = value.values() if isinstance(value, Mapping) else value
    return any(isinstance(item, dict | list) for item in items)


def _wrapped(items: list[str], pad: str) -> str:
    lines, line = [], pad
    for item in items:
        if len(line) + len(item) + 1 > _WIDTH and line != pad:
            lines.append(line.rstrip())
            line = pad
        line += item + ", "
    return "\n".join([*lines, line.removesuffix(", ")])
