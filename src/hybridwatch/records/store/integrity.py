"""Whether everything in a store is as it was written.

A record has a digest over its own bytes, and one of the file next to it; a verdict has one as well.
Records of schema version 1 have none. They get one in ``SHA256SUMS``, in the format of the tool of
that name: ``sha256sum -c SHA256SUMS``, in the results folder, checks them too.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError
from hybridwatch.records.bounds import MOST_RECORD_BYTES
from hybridwatch.records.codec import decode_record
from hybridwatch.records.naming import BULK_SUFFIX, RECORD_SUFFIX
from hybridwatch.records.store.layout import RECORDS, list_records
from hybridwatch.records.store.reader import is_pruned, read_bulk, read_file
from hybridwatch.records.store.retention import pruned_files
from hybridwatch.records.store.verdicts import list_verdicts, read_verdict
from hybridwatch.system.atomic_file import put

SUMS: Final = "SHA256SUMS"

_MOST_BYTES: Final = 2**26
_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *](.+)")


@dataclass(slots=True)
class StoreCheck:
    """What was found. Files are named by their paths below the results folder.

    Attributes:
        wrong: By file, why it is not as it was written.
        without_digest: Records that cannot be checked, with their digests as they are now.
        leftovers: Files of answers without a record, from a process that was killed.
    """

    records: int = 0
    verdicts: int = 0
    wrong: dict[str, str] = field(default_factory=dict)
    without_digest: dict[str, str] = field(default_factory=dict)
    leftovers: list[str] = field(default_factory=list)


def check_store(results: Path, say: Callable[[int, int], None]) -> StoreCheck:
    """Read everything, answers included, and hold it against its digests.

    ``say`` is called with how many files were read, and how many there are.

    Raises:
        RecordError: ``SHA256SUMS`` cannot be read.
    """
    records, verdicts = list_records(results), list_verdicts(results)
    found = StoreCheck(len(records), len(verdicts))
    sums = _read_sums(results)
    names = {path: path.relative_to(results).as_posix() for path in (*records, *verdicts)}
    for done, path in enumerate(records, start=1):
        _check(found, names[path], partial(_check_record, found, sums, path, names[path]))
        say(done, len(names))
    for done, path in enumerate(verdicts, start=1 + len(records)):
        _check(found, names[path], partial(_check_verdict, path))
        say(done, len(names))
    for name in sums.keys() - set(names.values()) - pruned_files(results):
        found.wrong[name] = f"named in {SUMS} and not there"
    stems = {path.with_suffix("") for path in records}
    beside = sorted((results / RECORDS).glob(f"*/*{BULK_SUFFIX}"))
    found.leftovers = [
        path.relative_to(results).as_posix()
        for path in beside
        if path.with_name(path.name.removesuffix(BULK_SUFFIX)) not in stems
    ]
    return found


def add_digests(results: Path, digests: Mapping[str, str]) -> None:
    """Write into ``SHA256SUMS`` the digests of records that have none inside."""
    lines = sorted(
        f"{digest}  {name}\n" for name, digest in {**_read_sums(results), **digests}.items()
    )
    path = results / SUMS
    try:
        put(path, "".join(lines).encode())
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror or error}") from error


def _check(found: StoreCheck, name: str, look: Callable[[], None]) -> None:
    try:
        look()
    except OSError as error:
        found.wrong[name] = f"cannot be read: {error.strerror or error}"
    except RecordError as error:
        found.wrong[name] = str(error)


def _check_record(found: StoreCheck, sums: Mapping[str, str], path: Path, name: str) -> None:
    raw = read_file(path, MOST_RECORD_BYTES)
    decoded = decode_record(raw)
    if decoded.bulk is None or not is_pruned(path, decoded.bulk.file):
        decoded.whole(lambda beside: read_bulk(path, beside))
    digest = hashlib.sha256(raw).hexdigest()
    if name in sums and sums[name] != digest:
        raise RecordError(f"sha256: expected {sums[name]} as in {SUMS}, found {digest}")
    if name not in sums and not decoded.has_digest:
        found.without_digest[name] = digest


def _check_verdict(path: Path) -> None:
    _, as_written = read_verdict(path)
    if not as_written:
        raise RecordError("sha256: the file is not as it was written")


def _read_sums(results: Path) -> dict[str, str]:
    path = results / SUMS
    try:
        lines = read_file(path, _MOST_BYTES).decode().splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line)
        if match is None or not match[2].endswith(RECORD_SUFFIX):
            raise RecordError(
                f"{path}: line {number}: expected a digest, two spaces and the path of a record, "
                f"found {line[:80]!r}"
            )
        found[match[2]] = match[1]
    return found
