"""Where a store and its records lie: ``RESULTS/records/<testbed>/<time>-<build>-<run id>.json``.

Results are a folder, or the URL of an object store, whose folder is its mirror. No index is kept.
What was removed is noted in ``pruned.jsonl`` before it goes, to distinguish it from what was lost.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from platformdirs import user_data_path

from hybridwatch.errors import RecordError
from hybridwatch.records.file_parts import RECORD_SUFFIX, safe_name
from hybridwatch.records.run import Run
from hybridwatch.records.store.mirror import make_mirror, mirror_at, refreshed

RESULTS_VARIABLE: Final = "HYBRIDWATCH_RESULTS"
"""Environment variable that names a results folder, or its URL, where none is given."""

_SCHEMES: Final = ("s3", "gs", "az")
_FILE: Final = "file"
_DIGITS: Final = 8


def results_folder(text: str) -> Path:
    """Give the results folder that a path, ``file:///FOLDER`` or ``s3://BUCKET/PREFIX`` names.

    Also ``gs`` and ``az``. The folder of an object store is its mirror, in the user's folder for
    data.
    """
    if "://" not in text:
        return Path(text)
    parts = urlsplit(text)
    if parts.scheme == _FILE:
        if parts.netloc not in {"", "localhost"} or not parts.path:
            raise RecordError(_expected("a file URL of another machine"))
        return Path(unquote(parts.path))
    if parts.scheme not in _SCHEMES:
        raise RecordError(_expected(f"one of {parts.scheme!r}"))
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Not shown: it may hold a secret.
        raise RecordError(_expected("a user, a password or options in it"))
    if not parts.netloc:
        raise RecordError(_expected("one without a bucket"))
    url = f"{parts.scheme}://{parts.netloc}/{parts.path.strip('/')}".rstrip("/")
    digest = hashlib.sha256(url.encode()).hexdigest()[:_DIGITS]
    name = safe_name(f"{parts.netloc}{parts.path}".strip("/").replace("/", "-"))
    return make_mirror(user_data_path("hybridwatch") / "stores" / f"{name}-{digest}", url)


def _expected(found: str) -> str:
    schemes = ", ".join(f"{scheme}://BUCKET/PREFIX" for scheme in _SCHEMES)
    return f"results: expected a folder, file:///FOLDER or {schemes}, found {found}"


def results_name(results: Path) -> str:
    """Give what a person writes to name a results folder: of a mirror the URL."""
    mirror = mirror_at(results)
    return str(results) if mirror is None else mirror.bucket.url


LATEST: Final = "latest"

_NAMED: Final = 3
"""How many candidates an error message lists."""
RECORDS: Final = "records"
PRUNED: Final = "pruned.jsonl"


def oldest_first(paths: Iterable[Path]) -> list[Path]:
    """Sort by the times that names begin with; half-written files are left out."""
    visible = (path for path in paths if not path.name.startswith("."))
    return sorted(visible, key=lambda path: (path.name, path.parent.name))


def require_folder(results: Path) -> None:
    """Refuse a results folder that is not there, with a ``RecordError``."""
    if not results.is_dir():
        raise RecordError(f"{results}: no such folder; name one with --results")


def find_one(
    results: Path,
    key: str,
    known: Sequence[Path],
    *,
    noun: str,
    fits: Callable[[Path, str], bool],
    expected: str,
    remedy: str,
    narrower: str,
) -> Path:
    """Find the one file that answers to a path, the beginning of a name, or ``latest``.

    ``fits`` is whether a path answers to the beginning of a name. ``expected`` says what was looked
    for, with the key put in, ``remedy`` helps where there is none, ``narrower`` where there are
    several.
    """
    if key.endswith(RECORD_SUFFIX) or "/" in key:
        if Path(key).is_file():
            return Path(key)
        raise RecordError(f"{key}: no such {noun}")
    if not known:
        require_folder(results)
        raise RecordError(f"{results}: holds no {noun} yet{remedy}")
    if key == LATEST:
        return known[-1]
    found = [path for path in known if key and fits(path, key)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise RecordError(
            f"{results}: expected {expected.format(repr(key))}, found none among "
            f"{len(known)}{remedy}"
        )
    several = f"{len(found)} {noun}s: {', '.join(path.stem for path in found[:_NAMED])}"
    raise RecordError(f"{results}: {key!r} fits {several}; give {narrower}")


def find_folder(results: Path, run: Run) -> Path:
    """Name the folder of a run's files: one per testbed, since only those compare."""
    return results / RECORDS / safe_name(run.testbed.id)


def results_above(record: Path) -> Path:
    """Name the results folder that a record lies in, if it lies where records lie."""
    return record.parent.parent.parent


def list_records(results: Path) -> list[Path]:
    """List the records of a store, oldest run first."""
    return oldest_first((refreshed(results) / RECORDS).glob(f"*/*{RECORD_SUFFIX}"))


def find_record(results: Path, key: str) -> Path:
    """Find the record of a path, a run id, the beginning of one, or ``latest``; it must be one."""
    return find_one(
        results,
        key,
        list_records(results),
        noun="record",
        fits=lambda path, key: read_run_id(path).startswith(key),
        expected="a record whose run id begins with {}",
        remedy="; measure one: hybridwatch run SCENARIO, or see: hybridwatch records",
        narrower="more of the id",
    )


def read_run_id(path: Path) -> str:
    """Read a run's id off the name of its record."""
    return path.stem.rpartition("-")[2]


def pruned_files(results: Path) -> frozenset[str]:
    """Name the files that were removed, by their paths below the results folder."""
    path = results / PRUNED
    try:
        status = path.stat()
    except OSError:
        return frozenset()
    return _read_notes(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _read_notes(path: Path, _written_ns: int, _size: int) -> frozenset[str]:
    try:
        # A process that was killed has left the beginning of a line at most, and removed nothing
        # then. Earlier versions wrote the next note behind it.
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        notes = (line[max(0, line.rfind('{"file": ')) :] for line in lines if line)
        return frozenset(json.loads(note)["file"] for note in notes)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from None
