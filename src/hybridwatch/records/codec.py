"""Between a run in memory and its two files; ``encode`` and ``decode`` are exact opposites.

The record is made for people and for ``git diff`` (sorted keys, short lists on one line); answers,
completions and client results are many and go to a compressed file next to it.
"""

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field, ValidationError
from pydantic_core import from_json

from hybridwatch.errors import RecordError
from hybridwatch.records.bulk_lines import BulkFile, BulkLine, read_lines
from hybridwatch.records.fields import (
    MOST_BULK_BYTES,
    MOST_LINE_BYTES,
    MOST_LINES,
    MOST_MEASURED,
    MOST_RECORD_BYTES,
    MOST_SAMPLES,
    MOST_UNZIPPED_BYTES,
    RecordPart,
    build_adapter,
    check_client,
)
from hybridwatch.records.file_parts import (
    BULK_SUFFIX,
    KEY,
    build_stem,
    check_seal,
    is_altered,
    render_sealed,
)
from hybridwatch.records.json_checks import (
    check_json,
    check_keys,
    describe_first,
    describe_first_in,
    shown,
)
from hybridwatch.records.run import Answer, Completion, Run

SCHEMA_VERSION: Final = 2
"""What is written. Version 1, which is read as well, has no digest."""


_Part = TypeVar("_Part", bound=RecordPart)
_WRITTEN: Final = Field(exclude_if=lambda _: False)
"""A key that is always written, and may be missing."""


@dataclass(frozen=True, slots=True)
class _Record(Run):
    """A whole record: a run and what only its file has."""

    schema_version: Annotated[Literal[1, 2], _WRITTEN] = SCHEMA_VERSION
    bulk: Annotated[BulkFile | None, _WRITTEN] = None

    @property
    def run(self) -> Run:
        return Run(**{one.name: getattr(self, one.name) for one in fields(Run)})


@dataclass(frozen=True, slots=True)
class Encoded:
    """A run as bytes; ``stem`` is what both files are called, without suffix."""

    stem: str
    record: bytes
    bulk: bytes | None


@dataclass(frozen=True, slots=True)
class Decoded:
    """A record that was read; its trials have no answers, completions or client results yet.

    ``bulk`` is what it says of the file with these.
    """

    run: Run
    bulk: BulkFile | None

    def whole(self, read: Callable[[str], bytes]) -> Run:
        """Give the run with what lies next to the record, of which ``read`` gives the bytes."""
        return self._beside(read, lambda line: line)

    def scored(self, read: Callable[[str], bytes]) -> Run:
        """Check as ``whole`` does, and keep what answers score: it takes little memory."""
        return self._beside(read, BulkLine.scored)

    def _beside(self, read: Callable[[str], bytes], kept: Callable[[BulkLine], BulkLine]) -> Run:
        if self.bulk is None:
            return self.run
        found = read_lines(read(self.bulk.file), self.bulk, len(self.run.trials), kept)
        try:
            trials = tuple(found[trial.index].beside(trial) for trial in self.run.trials)
        except ValueError as error:
            raise RecordError(f"{self.bulk.file}: {error}") from error
        return replace(self.run, trials=trials)


def encode(run: Run) -> Encoded:
    """Give the file form of a run; the same run always gives the same bytes.

    A ``RecordError`` has the path to a value that cannot be kept truthfully: not-a-number, a naive
    time, an unknown metric, trials that are not numbered from 0, or more than ``fields`` allows.
    """
    whole = _checked(run)
    stem = build_stem(run)
    lines = [_line(where, content) for where, content in _bulk_lines(run)]
    bulk = None
    if lines:
        _check_lines(run, lines)
        plain = b"".join(lines)
        _check_size(run, "bulk, uncompressed", plain, MOST_UNZIPPED_BYTES)
        # No time and no name inside: equal content gives equal bytes.
        bulk = gzip.compress(plain, mtime=0)
        _check_size(run, "bulk", bulk, MOST_BULK_BYTES)
        reference = BulkFile(
            file=stem + BULK_SUFFIX, sha256=hashlib.sha256(bulk).hexdigest(), lines=len(lines)
        )
        whole = replace(whole, bulk=reference)
    try:
        content = build_adapter(_Record).dump_python(whole, mode="json")
        record = render_sealed(content).encode()
    except UnicodeEncodeError as error:
        raise RecordError("the record: expected Unicode text, found a lone surrogate") from error
    _check_size(run, "record", record, MOST_RECORD_BYTES)
    check_json(f"run {run.id} cannot be kept: record", record)
    return Encoded(stem, record, bulk)


def decode(record: bytes, bulk: bytes | None) -> Run:
    """Read a run back; without the bytes of the file next to it, its trials lack answers."""
    decoded = decode_record(record)
    if bulk is not None and decoded.bulk is None:
        raise RecordError("bulk: expected no file next to this record, found one")
    return decoded.run if bulk is None else decoded.whole(lambda _: bulk)


def decode_record(record: bytes) -> Decoded:
    """Read a record back, and leave for later what lies next to it."""
    check_json("record", record)
    try:
        check_keys(_Record, record)
        whole = build_adapter(_Record).validate_json(record)
    except ValueError as error:
        # Only now, since it takes as long again: what is wrong with the whole comes first.
        _check_whole(record)
        damaged = f"; {KEY}: the file is not as it was written" if is_altered(record) else ""
        raise RecordError(describe_first_in(record, error) + damaged) from error
    _check_sealed(record, whole)
    _check_consistent(whole)
    return Decoded(whole.run, whole.bulk)


def _check_size(run: Run, what: str, content: bytes, most: int) -> None:
    if len(content) > most:
        raise RecordError(
            f"run {run.id} cannot be kept: {what}: expected at most {most} bytes, "
            f"found {len(content)}"
        )


def _check_lines(run: Run, lines: Sequence[bytes]) -> None:
    if len(lines) > MOST_LINES:
        raise RecordError(
            f"run {run.id} cannot be kept: bulk: expected at most {MOST_LINES} lines, "
            f"found {len(lines)}"
        )
    for number, line in enumerate(lines, start=1):
        what = f"bulk, line {number}"
        _check_size(run, what, line, MOST_LINE_BYTES)
        check_json(f"run {run.id} cannot be kept: {what}", line)


def _checked(run: Run) -> _Record:
    unchecked = _Record(**{one.name: getattr(run, one.name) for one in fields(Run)})
    try:
        whole = build_adapter(_Record).validate_python(unchecked)
    except ValidationError as error:
        raise RecordError(f"run {run.id} cannot be kept: {describe_first(error)}") from error
    _check_consistent(whole)
    return whole


def _check_sealed(record: bytes, whole: _Record) -> None:
    """Check the digest, which a record of version 1 does not have and any other one must have."""
    if whole.schema_version == 1:
        if whole.sha256 is not None:
            raise RecordError(
                f"{KEY}: expected no such key in schema_version 1, found {shown(whole.sha256)}"
            )
    elif whole.sha256 is None:
        raise RecordError(f"{KEY}: expected a value, found nothing")
    else:
        check_seal(record, whole.sha256)


def _check_whole(record: bytes) -> None:
    try:
        raw = from_json(record)
    except ValueError as error:
        raise RecordError(f"not whole JSON, the file may have been cut short: {error}") from error
    if not isinstance(raw, dict):
        raise RecordError(f"expected a JSON object, found {shown(raw)}")
    version = raw.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise RecordError(
            f"schema_version: found {version}, but this hybridwatch reads up to "
            f"{SCHEMA_VERSION}: upgrade hybridwatch"
        )


def _check_consistent(run: Run) -> None:
    for position, trial in enumerate(run.trials):
        if trial.index != position:
            raise RecordError(f"trials[{position}].index: expected {position}, found {trial.index}")
        if trial.side >= len(run.builds):
            raise RecordError(
                f"trials[{position}].side: expected less than the {len(run.builds)} build(s), "
                f"found {trial.side}"
            )
    measured = sum(trial.failure is None for trial in run.trials)
    if measured > MOST_MEASURED:
        raise RecordError(
            f"trials: expected at most {MOST_MEASURED} that did not fail, found {measured}"
        )
    metrics = {(one.metric, one.statistic) for trial in run.trials for one in trial.samples}
    if len(metrics) > MOST_SAMPLES:
        raise RecordError(f"trials: expected at most {MOST_SAMPLES} metrics, found {len(metrics)}")


def _bulk_lines(run: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    for trial in run.trials:
        for number, answer in enumerate(trial.answers):
            where = f"trials[{trial.index}].answers[{number}]"
            plain = _plain(run, where, Answer, answer)
            yield where, {"trial": trial.index, "answer": plain}
        if trial.client_result is not None:
            where = f"trials[{trial.index}].client_result"
            yield where, {"trial": trial.index, **_client_result(where, trial.client_result)}
        if trial.completions:
            where = f"trials[{trial.index}].completions"
            kept = [
                _plain(run, f"{where}[{at}]", Completion, one)
                for at, one in enumerate(trial.completions)
            ]
            yield where, {"trial": trial.index, "completions": kept}
        for number, point in enumerate(trial.curve.points if trial.curve else ()):
            if point.client_result is not None:
                where = f"trials[{trial.index}].curve.points[{number}].client_result"
                result = _client_result(where, point.client_result)
                yield where, {"trial": trial.index, "point": number, **result}


def _client_result(where: str, result: Mapping[str, Any]) -> dict[str, Any]:
    try:
        check_client(dict(result))
    except ValueError as error:
        raise RecordError(f"{where}: {error}") from error
    return {"client_result": result}


def _plain(run: Run, where: str, part: type[_Part], value: _Part) -> Any:
    form = build_adapter(part)
    try:
        return form.dump_python(form.validate_python(value), mode="json")
    except ValidationError as error:
        raise RecordError(
            f"run {run.id} cannot be kept: {where}.{describe_first(error)}"
        ) from error


def _line(where: str, content: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, sort_keys=True)
        return f"{text}\n".encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"{where}: expected Unicode text, found a lone surrogate") from error
    except (TypeError, ValueError) as error:
        raise RecordError(f"{where}: expected plain JSON: {error}") from error
