"""Reading the lines next to a record one by one, so that only one of them is in memory."""

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from hybridwatch.errors import RecordError
from hybridwatch.records.fields import (
    MOST_LINE_BYTES,
    MOST_LINES,
    MOST_UNZIPPED_BYTES,
    build_adapter,
)
from hybridwatch.records.file_parts import BulkFile, BulkLine, BulkOfTrial
from hybridwatch.records.findings import check_json, describe_first_in
from hybridwatch.records.json_keys import check_keys

_BLOCK: Final = 2**16
"""Bytes that are uncompressed at a time."""


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
    for plain in _unzipped(bulk):
        *whole, begun = plain.split(b"\n")
        for end in whole:
            yield bytes(line + end)
            line.clear()
        line += begun
        if len(line) > MOST_LINE_BYTES:
            raise ValueError(f"expected at most {MOST_LINE_BYTES} bytes in a line, found more")
    if line:
        yield bytes(line)


def _unzipped(bulk: bytes) -> Iterator[bytes]:
    """Uncompress block by block, and no more than there may be."""
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
