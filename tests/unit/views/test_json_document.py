"""docs/json.md names every field that the JSON has, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybridwatch.analysis.control import Control, ControlKind
from hybridwatch.analysis.gate import gate
from hybridwatch.views.jsonform import control_to_json, gate_to_json
from tests.situations import SITUATIONS

DOCUMENT = Path(__file__).parents[3] / "docs" / "json.md"
FREE = {"fixes", "flags"}  # keyed by names of fixes and flags


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from keys_of(item)
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            if key not in FREE:
                yield from keys_of(item)


def test_every_field_is_documented_and_exists() -> None:
    report = SITUATIONS["regression"]()
    fields = set(keys_of(gate_to_json(gate(report), report)))
    fields |= set(control_to_json(Control("s", "f", ControlKind.A_A, True, "m", "d")))
    text = DOCUMENT.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+)`", text))
    assert fields <= named
    first_columns = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    assert {name for cell in first_columns for name in re.findall(r"`(\w+)`", cell)} <= fields
