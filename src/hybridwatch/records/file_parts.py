"""The parts of a record's file form: names, layout, digest, head, and the file next to it.

The digest stands on a line of its own and is the SHA-256 of the file without that line, so that
``grep -v '^  "sha256": ' RECORD | sha256sum`` gives it too. It is over bytes, not over what they
decode to: that takes a twentieth of the time, and a record never changes. What reformats a record
breaks it.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import AwareDatetime, BaseModel, Field, JsonValue, ValidationError
from pydantic_core import from_json

from hybridwatch.errors import RecordError
from hybridwatch.records.fields import (
    Client,
    Count,
    Digest,
    FileName,
    IfKnown,
    Place,
    RecordPart,
    Whole,
)
from hybridwatch.records.findings import check_json
from hybridwatch.records.run import Answer, Curve, Run, Trial
from hybridwatch.records.trial_parts import Completion

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
    """Render JSON with sorted keys; what fits on a line stays on it, long lists are wrapped.

    ``indent`` is how many columns stand before the first character.
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


class _ScenarioHead(BaseModel):
    id: str
    version: int
    digest: str


class _TestbedHead(BaseModel):
    id: str


class Head(BaseModel):
    """What a record is about; the names are those of the record's keys."""

    id: str
    started_at: AwareDatetime
    scenario: _ScenarioHead
    testbed: _TestbedHead
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


@dataclass(frozen=True, slots=True)
class BulkFile(RecordPart):
    """The reference from a record to the file beside it."""

    file: FileName
    sha256: Digest
    lines: Count


@dataclass(frozen=True, slots=True)
class BulkLine(RecordPart):
    """An answer, the completions or a client result (of a ``point`` of a curve) of one trial."""

    trial: Place
    point: IfKnown[Whole] = None
    answer: IfKnown[Answer] = None
    client_result: IfKnown[Client] = None
    completions: IfKnown[Annotated[tuple[Completion, ...], Field(min_length=1, fail_fast=True)]] = (
        None
    )

    def scored(self) -> Self:
        """Give it with what scores are made of, and of the rest only that it is there."""
        said = self.completions and (
            replace(self.completions[0], tokens=(), logprobs=(), close_calls=()),
        )
        answer = self.answer and replace(
            self.answer,
            doc_hash="",
            prompt_hash="",
            target_hash="",
            prompt="",
            target="",
            response="",
        )
        result: dict[str, JsonValue] | None = None if self.client_result is None else {}
        return replace(self, answer=answer, client_result=result, completions=said)


class BulkOfTrial:
    """The lines of one trial, gathered."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.client_result: Mapping[str, Any] | None = None
        self.completions: tuple[Completion, ...] = ()
        self.of_points: dict[int, Mapping[str, Any]] = {}

    def add(self, line: BulkLine) -> None:
        """Take one line in."""
        kinds = (line.answer, line.client_result, line.completions)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("expected one of answer, client_result, completions")
        if line.point is not None:
            self._add_point(line.point, line)
            return
        if line.answer is not None:
            self.answers.append(line.answer)
        elif line.completions is not None:
            if self.completions:
                raise ValueError(f"completions: a second list for trial {line.trial}")
            self.completions = line.completions
        elif self.client_result is not None:
            raise ValueError(f"client_result: a second one for trial {line.trial}")
        else:
            self.client_result = line.client_result

    def _add_point(self, point: int, line: BulkLine) -> None:
        if line.client_result is None:
            raise ValueError("expected client_result beside point")
        if point in self.of_points:
            raise ValueError(f"client_result: a second one for point {point} of trial {line.trial}")
        self.of_points[point] = line.client_result

    def beside(self, trial: Trial) -> Trial:
        """Give a trial of the record with its lines; ``ValueError`` for one of a missing point."""
        points = len(trial.curve.points) if trial.curve else 0
        if stray := [point for point in self.of_points if point >= points]:
            raise ValueError(
                f"client_result: expected a point less than {points} of trial {trial.index}, "
                f"found {stray[0]}"
            )
        return replace(
            trial,
            curve=self._with_results(trial.curve) if trial.curve else None,
            answers=tuple(self.answers),
            client_result=self.client_result,
            completions=self.completions,
        )

    def _with_results(self, curve: Curve) -> Curve:
        points = (
            replace(one, client_result=self.of_points.get(at))
            for at, one in enumerate(curve.points)
        )
        return replace(curve, points=tuple(points))
