"""The parts of a record's file form: names, layout, digest, head, and the file next to it.

The digest stands on a line of its own and is the SHA-256 of the file without that line, so that
``grep -v '^  "sha256": ' RECORD | sha256sum`` gives it too. It is over bytes, not over what they
decode to: that takes a twentieth of the time, and a record never changes. What reformats a record
breaks it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import AliasPath, AwareDatetime, BaseModel, Field, ValidationError
from pydantic_core import from_json

from hybridwatch.errors import RecordError
from hybridwatch.records.json_checks import check_json
from hybridwatch.records.run import Run

RECORD_SUFFIX: Final = ".json"
BULK_SUFFIX: Final = ".bulk.jsonl.gz"

_STARTED: Final = "%Y%m%dT%H%M%SZ"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._~+-]")
_LONGEST_NAME: Final = 120
"""A file name may have 255 bytes; a label with every fix switched must leave room for the rest."""


def safe_name(text: str) -> str:
    """Make a text from outside fit to be part of a file name on any system.

    Never hidden (no leading dot), never empty, at most 120 characters; unsafe ones become ``-``.
    """
    return _UNSAFE.sub("-", text).lstrip(".")[:_LONGEST_NAME] or "unnamed"


def name_bulk(record: Path) -> Path:
    """Name the file that lies next to a record, if it has one."""
    return record.with_name(record.stem + BULK_SUFFIX)


def build_stem(run: Run) -> str:
    """Name a run's files by time and last build: ``20261121T091500Z-cpu-0.27.1-1f0a9c3e``."""
    started = run.started_at.astimezone(UTC).strftime(_STARTED)
    return f"{started}-{safe_name(run.builds[-1].label)}-{safe_name(run.id)}"


def parse_start(name: str) -> datetime:
    """Read when a run started, UTC, off a name by ``build_stem``; ``ValueError`` for any other."""
    return datetime.strptime(name.partition("-")[0], _STARTED).replace(tzinfo=UTC)


_WIDTH: Final = 100

# Made once: making an encoder takes longer than encoding one of a record's thousand values.
_flat: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True).encode


def pretty(value: object, indent: int = 0) -> str:
    """Render JSON with sorted keys; what fits on a line stays on it, long lists are wrapped."""
    flat = _flat(value)
    if not isinstance(value, dict | list) or len(flat) <= _WIDTH - indent:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        pairs = sorted(value.items())
        inner = [f"{pad}{_flat(key)}: {pretty(item, indent + 2)}" for key, item in pairs]
        return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}"
    if any(isinstance(item, dict | list) for item in value):
        inner = [pad + pretty(item, indent + 2) for item in value]
        return "[\n" + ",\n".join(inner) + "\n" + " " * indent + "]"
    # Numbers, of which most lists are, have no comma inside.
    items = [_flat(item) for item in value] if '"' in flat else flat[1:-1].split(", ")
    return "[\n" + _wrapped(items, pad) + "\n" + " " * indent + "]"


def _wrapped(items: list[str], pad: str) -> str:
    lines, line = [], pad
    for item in items:
        if len(line) + len(item) + 1 > _WIDTH and line != pad:
            lines.append(line.rstrip())
            line = pad
        line += item + ", "
    return "\n".join([*lines, line.removesuffix(", ")])


KEY: Final = "sha256"

NO_DIGEST: Final = "no digest"
"""How a list of records calls one of schema version 1: damage in it need not show."""

# No other line of a record begins so: a line break inside a JSON text is written as an escape, and
# keys further inside are indented further.
_DIGEST_LINE: Final = re.compile(rb'^  "sha256": "([0-9a-f]{64})",\n', re.MULTILINE)
_UNKNOWN: Final = "0" * 64


def render_sealed(content: Mapping[str, Any]) -> str:
    """Render a record with its digest; a digest among the keys of ``content`` is left out."""
    text = pretty({**content, KEY: _UNKNOWN}) + "\n"
    digest, _ = _taken_apart(text.encode())
    return text.replace(f'\n  "{KEY}": "{_UNKNOWN}"', f'\n  "{KEY}": "{digest}"', 1)


def check_seal(record: bytes, stated: str) -> None:
    """Check that a record is as it was written; ``stated`` is the digest as it was decoded."""
    found, line = _taken_apart(record)
    if found != stated or line != stated:
        raise RecordError(
            f"{KEY}: expected {stated}, found {found}: the file is not as it was written"
        )


def is_altered(record: bytes) -> bool:
    """Whether a record, which need not decode, has a digest and is not as it was written."""
    line = _DIGEST_LINE.search(record)
    return line is not None and _taken_apart(record)[0] != line[1].decode()


def _taken_apart(record: bytes) -> tuple[str, str]:
    """Give the digest that a record should have, and the one that stands on its line."""
    line = _DIGEST_LINE.search(record)
    if line is None:
        raise RecordError(
            f"{KEY}: expected on a line of its own, as it was written, found none: the file was "
            "laid out again, or its line ends were changed"
        )
    total = hashlib.sha256(memoryview(record)[: line.start()])
    total.update(memoryview(record)[line.end() :])
    return total.hexdigest(), line[1].decode()


class _BuildHead(BaseModel):
    label: str
    line: str | None = None


class Head(BaseModel):
    """What a record is about."""

    id: str
    started_at: AwareDatetime
    scenario: str = Field(validation_alias=AliasPath("scenario", "id"))
    version: int = Field(validation_alias=AliasPath("scenario", "version"))
    digest: str = Field(validation_alias=AliasPath("scenario", "digest"))
    testbed: str = Field(validation_alias=AliasPath("testbed", "id"))
    builds: list[_BuildHead] = Field(min_length=1, max_length=2)


def read_head(record: bytes) -> Head | None:
    """Read a record's head, also of one that was cut short; ``None`` where there is none."""
    try:
        check_json("record", record)
        return Head.model_validate_json(record)
    except ValidationError:
        pass
    except RecordError:
        return None
    try:
        return Head.model_validate(from_json(record, allow_partial=True))
    except ValueError:
        return None
