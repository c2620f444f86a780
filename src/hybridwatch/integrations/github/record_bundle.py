"""The record bundle: a ZIP file of records that an untrusted job hands to the trusted one.

``python -m hybridwatch.integrations.github.record_bundle ZIP FOLDER`` unpacks it and prints the
pull request that it claims to be about. It comes of a stranger's code, so only these are taken:
``pull-request.txt`` (the number), ``records/<testbed>/<name>``, ``profiles/<testbed>/<name>``,
and of a search ``bisect.json``.
"""

import io
import re
import stat
import sys
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, Final

from hybridwatch.errors import GithubError, RecordError
from hybridwatch.records.bulk_lines import unzipped
from hybridwatch.records.file_parts import BULK_SUFFIX, RECORD_SUFFIX, safe_name
from hybridwatch.records.store import list_records, read_file, read_run
from hybridwatch.records.store.layout import RECORDS
from hybridwatch.records.store.verdicts import PROFILE_SUFFIX, PROFILES, read_profile

NUMBER_FILE: Final = "pull-request.txt"
SEARCH_FILE: Final = "bisect.json"
"""The answer of a search, if the command was one; it is validated when read."""

MOST_FILES: Final = 200
MOST_BYTES: Final = 64 * 2**20
"""Of all files together, unpacked."""
_MOST_ZIPPED: Final = MOST_BYTES + 2**20
"""Of the ZIP file: its files need not be compressed, and each has an entry."""

_ENTRY: Final = b"PK\x01\x02"
"""How an entry of the list of files begins."""
_MEBI: Final = 2**20
_SUFFIXES: Final = {RECORDS: (RECORD_SUFFIX, BULK_SUFFIX), PROFILES: (PROFILE_SUFFIX,)}
_DEPTH: Final = 3  # records/<testbed>/<name>
_NUMBER: Final = re.compile(rb"[1-9]\d{0,8}\s*")


def unpack(bundle: Path, folder: Path) -> int:
    """Unpack a bundle into a new results folder; gives the number that it claims to be about."""
    try:
        content = read_file(bundle, _MOST_ZIPPED)
        # zipfile makes an object of each entry before it says how many there are. A chance match
        # is one in four billion bytes.
        if content.count(_ENTRY) > MOST_FILES + 1:
            raise GithubError(f"{bundle}: expected at most {MOST_FILES} files")
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            entries = packed.infolist()
            if len(entries) > MOST_FILES:
                raise GithubError(f"{bundle}: expected at most {MOST_FILES} files")
            for entry in entries:
                _check_entry(entry)
            folder.mkdir(parents=True)
            _extract(packed, entries, folder)
    except FileExistsError:
        raise GithubError(f"{folder}: expected no such folder yet") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise GithubError(f"{bundle}: expected a whole ZIP file: {error}") from error
    except RecordError as error:
        raise GithubError(f"{bundle}: {error}") from error
    except OSError as error:
        raise GithubError(f"{bundle}: cannot be unpacked: {error.strerror or error}") from error
    _check_records(folder)
    return _number(folder / NUMBER_FILE)


def _check_entry(entry: zipfile.ZipInfo) -> None:
    """Refuse a name that the store would not have given, and whatever is no plain file."""
    name = entry.filename
    parts = PurePosixPath(name).parts
    suffixes = _SUFFIXES.get(parts[0], ()) if parts else ()
    below = bool(suffixes) and all(part == safe_name(part) for part in parts)
    if entry.is_dir():
        fits = below and name == "/".join(parts) + "/" and len(parts) < _DEPTH
    else:
        record = below and name == "/".join(parts) and len(parts) == _DEPTH
        record = record and name.endswith(suffixes)
        plain = stat.S_IFMT(entry.external_attr >> 16) in {0, stat.S_IFREG}
        fits = plain and (record or name in {NUMBER_FILE, SEARCH_FILE})
    if not fits:
        raise GithubError(f"bundle: expected nothing but records, found {name[:100]!r}")


def _extract(packed: zipfile.ZipFile, entries: list[zipfile.ZipInfo], folder: Path) -> None:
    room = MOST_BYTES
    for entry in entries:
        if entry.is_dir():
            continue
        target = folder.joinpath(*PurePosixPath(entry.filename).parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        # The sizes that a ZIP file states are its author's word: count what comes out.
        with packed.open(entry) as source, target.open("xb") as file:
            room -= _copy(source, file, room)


def _copy(source: IO[bytes], target: IO[bytes], room: int) -> int:
    copied = 0
    while piece := source.read(_MEBI):
        copied += len(piece)
        if copied > room:
            raise GithubError(f"bundle: expected at most {MOST_BYTES} bytes of records")
        target.write(piece)
    return copied


def _check_records(folder: Path) -> None:
    for bulk in (folder / RECORDS).glob(f"*/*{BULK_SUFFIX}"):
        _check_bulk(bulk)
    try:
        for record in list_records(folder):
            read_run(record)
        for profile in (folder / PROFILES).glob(f"*/*{PROFILE_SUFFIX}"):
            read_profile(profile)
    except RecordError as error:
        raise GithubError(f"bundle: {error}") from error


def _check_bulk(bulk: Path) -> None:
    try:
        for _ in unzipped(bulk.read_bytes()):
            pass
    except (ValueError, zlib.error) as error:
        raise GithubError(f"bundle: {bulk.name}: {error}") from None


def _number(path: Path) -> int:
    content = path.read_bytes() if path.is_file() else b""
    if not _NUMBER.fullmatch(content):
        raise GithubError(f"bundle: {NUMBER_FILE}: expected a number, found {content[:20]!r}")
    return int(content)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{unpack(Path(sys.argv[1]), Path(sys.argv[2]))}\n")
    except GithubError as refusal:
        sys.exit(f"hybridwatch: {refusal}")
