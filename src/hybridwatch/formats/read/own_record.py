"""A record of ours that comes from elsewhere: checked, and kept byte for byte."""

from collections.abc import Callable

from hybridwatch.errors import RecordError
from hybridwatch.formats.read.agreement import check_record
from hybridwatch.records.bounds import MOST_RECORD_BYTES
from hybridwatch.records.codec import Encoded, decode_record
from hybridwatch.records.naming import BULK_SUFFIX, stem_of
from hybridwatch.records.run import Run


def read_own(raw: bytes, read_bulk: Callable[[str], bytes]) -> tuple[Run, Encoded]:
    """Read a record, and keep its bytes: what is added to the store is what was checked.

    Args:
        raw: The record.
        read_bulk: Given the name of the file beside it, gives its bytes; asked only where there
            is one.

    Raises:
        RecordError: It is no record, or not as it was written.
        IngestError: It does not agree with itself.
    """
    if len(raw) > MOST_RECORD_BYTES:
        raise RecordError(f"expected at most {MOST_RECORD_BYTES} bytes, found {len(raw)}")
    beside: dict[str, bytes] = {}

    def read(name: str) -> bytes:
        beside[name] = read_bulk(name)
        return beside[name]

    run = decode_record(raw).whole(read)
    check_record(run)
    stem = stem_of(run)
    for name in beside:
        if name != stem + BULK_SUFFIX:
            raise RecordError(f"bulk.file: expected {stem + BULK_SUFFIX}, found {name}")
    return run, Encoded(stem, raw, next(iter(beside.values()), None))
