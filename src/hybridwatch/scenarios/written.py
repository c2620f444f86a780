"""Lines of a scenario file, from values."""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hybridwatch.system.plain_text import visible

_WIDTH: Final = 100


def text_lines(key: str, lines: Sequence[str]) -> Iterator[str]:
    """Write a text of several lines, each wrapped, whatever they hold."""
    yield f'{key} = """'
    for line in lines:
        safe = visible(line).replace("\\", "\\\\").replace('"', '\\"')
        yield from textwrap.wrap(safe, _WIDTH, break_long_words=False) or [""]
    yield '"""'


def comment_lines(lines: Sequence[str]) -> Iterator[str]:
    """Write comments, one for each line, whatever they hold."""
    return (f"# {' '.join(visible(line).split())}" for line in lines)


def table_lines(table: Mapping[str, Any]) -> list[str]:
    """Write the keys of a table that has no tables in it; what is not set is left out."""
    return [
        f"{_key(key)} = {_value(value)}"
        for key, value in table.items()
        if value is not None and value != []
    ]


def _key(key: str) -> str:
    return json.dumps(key) if "." in key else key


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)  # numbers, truth values and texts are written alike in both
