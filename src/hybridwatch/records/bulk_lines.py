"""The file next to a record, read line by line, so that only one of them is in memory."""

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Any, Final, Self

from pydantic import Field, JsonValue

from hybridwatch.errors import RecordError
from hybridwatch.records.fields import (
    MOST_LINE_BYTES,
    MOST_LINES,
    MOST_UNZIPPED_BYTES,
    Client,
    Count,
    Digest,
    FileName,
    IfKnown,
    Place,
    RecordPart,
    Whole,
    build_adapter,
)
from hybridwatch.records.json_checks import check_json, check_keys, describe_first_in
from hybridwatch.records.run import Answer, Completion, Trial

_BLOCK: Final = 2**16
"""Bytes that are uncompressed at a time."""


@dataclass(frozen=True, slots=True)
class BulkFile(RecordPart):
    """The reference from a record to the file next to it."""

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
        self.client_results: dict[int | None, Mapping[str, Any] | None] = {}
        self.completions: tuple[Completion, ...] = ()

    def add(self, line: BulkLine) -> None:
        """Take one line in."""
        kinds = (line.answer, line.client_result, line.completions)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("expected one of answer, client_result, completions")
        if line.point is not None and line.client_result is None:
            raise ValueError("expected client_result next to point")
        if line.answer is not None:
            self.answers.append(line.answer)
        elif line.completions is not None:
            if self.completions:
                raise ValueError(f"completions: a second list for trial {line.trial}")
            self.completions = line.completions
        elif line.point in self.client_results:
            point = "" if line.point is None else f"point {line.point} of "
            raise ValueError(f"client_result: a second one for {point}trial {line.trial}")
        else:
            self.client_results[line.point] = line.client_result

    def beside(self, trial: Trial) -> Trial:
        """Give a trial of the record with its lines; ``ValueError`` for one of a missing point."""
        points, found = trial.curve.points if trial.curve else (), self.client_results
        if stray := [at for at in found if at is not None and at >= len(points)]:
            raise ValueError(
                f"client_result: expected a point less than {len(points)} of trial {trial.index}, "
                f"found {stray[0]}"
            )
        points = tuple(replace(one, client_result=found.get(at)) for at, one in enumerate(points))
        return replace(
            trial,
            curve=trial.curve and replace(trial.curve, points=points),
            answers=tuple(self.answers),
            client_result=found.get(None),
            completions=self.completions,
        )


def read_lines(
    bulk: bytes, expected: BulkFile, trials: int, kept: Callable[[BulkLine], BulkLine]
) -> Mapping[int, BulkOfTrial]:
    """Check the lines against what the record says; gather by trial what is ``kept`` of each."""
    found = hashlib.sha256(bulk).hexdigest()
    if found != expected.sha256:
        raise RecordError(f"{expected.file}: sha256: expected {expected.sha256}, found {found}")
    if expected.lines > MOST_LINES:
        raise RecordError(f"bulk.lines: expected at most {MOST_LINES}, found {expected.lines}")
    by_trial: dict[int, BulkOfTrial] = defaultdict(BulkOfTrial)
    number = 0
    try:
        for number, raw in enumerate(islice(_lines(bulk), expected.lines + 1), start=1):
            _add_line(by_trial, raw, trials, f"{expected.file}: line {number}: ", kept)
    except zlib.error as error:
        raise RecordError(f"{expected.file}: expected gzip: {error}") from error
    except ValueError as error:
        raise RecordError(f"{expected.file}: {error}") from error
    if number != expected.lines:
        count = number if number < expected.lines else "more"
        raise RecordError(f"{expected.file}: expected {expected.lines} lines, found {count}")
    return by_trial


def _add_line(
    by_trial: Mapping[int, BulkOfTrial],
    raw: bytes,
    trials: int,
    where: str,
    kept: Callable[[BulkLine], BulkLine],
) -> None:
    check_json(where.removesuffix(": "), raw)
    try:
        check_keys(BulkLine, raw)
        line = build_adapter(BulkLine).validate_json(raw)
    except ValueError as error:
        raise RecordError(f"{where}{describe_first_in(raw, error)}") from error
    if line.trial >= trials:
        raise RecordError(f"{where}trial: expected less than {trials}, found {line.trial}")
    try:
        by_trial[line.trial].add(kept(line))
    except ValueError as error:
        raise RecordError(f"{where}{error}") from error


def _lines(bulk: bytes) -> Iterator[bytes]:
    """Yield the lines one by one, so that only one is in memory: they may hold gigabytes."""
    line = bytearray()
    for plain in unzipped(bulk):
        *whole, begun = plain.split(b"\n")
        for end in whole:
            yield bytes(line + end)
            line.clear()
        line += begun
        if len(line) > MOST_LINE_BYTES:
            raise ValueError(f"expected at most {MOST_LINE_BYTES} bytes in a line, found more")
    if line:
        yield bytes(line)


def unzipped(bulk: bytes) -> Iterator[bytes]:
    """Uncompress piece by piece, as far as it may be large; ``ValueError`` or ``zlib.error``."""
    unzip = zlib.decompressobj(wbits=31)
    size = 0
    for start in range(0, len(bulk), _BLOCK):
        piece = bulk[start : start + _BLOCK]
        while piece and not unzip.eof:
            plain = unzip.decompress(piece, _BLOCK)
            size += len(plain)
            if size > MOST_UNZIPPED_BYTES:
                raise ValueError(
                    f"expected at most {MOST_UNZIPPED_BYTES} bytes uncompressed, found more"
                )
            yield plain
            piece = unzip.unconsumed_tail
        if unzip.eof and start + _BLOCK < len(bulk):
            break
    if not unzip.eof or unzip.unused_data or start + _BLOCK < len(bulk):
        raise ValueError("expected gzip: one whole member, as it was written")
