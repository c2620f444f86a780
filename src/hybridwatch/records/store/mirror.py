"""A results folder that stands for an object store, reached by obstore (Arrow's ``object_store``).

It creates a file only where there is none, and repeats what failed for a bounded time. Credentials
stand in no message. Records never change, so a mirror is brought up to date by names alone; what is
next to a record is fetched when it is read. What is added is written here first and then sent, its
record last: what could not be sent is kept, and sent by the next process that opens the mirror.
"""

import contextlib
import importlib.util
import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hybridwatch.errors import RecordError
from hybridwatch.records.file_parts import BULK_SUFFIX
from hybridwatch.system.files import make_folder, named_errors, put

if TYPE_CHECKING:
    from obstore.store import ObjectStore

RETRIES: Final = 6
"""How often a request is repeated that failed on the way or on the server."""
_RETRY_S: Final = 60.0
_REQUEST_S: Final = 30.0
"""Seconds without an answer after which a request has failed."""
_LONGEST: Final = 300
"""Characters of a failure that are shown."""


class ConflictError(RecordError):
    """The store has another file of the same name."""


class Bucket:
    """Objects below a prefix, by their names relative to it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._store = _connected(url)

    def sizes(self, folder: str = "") -> dict[str, int]:
        """List what is there, or in one folder: bytes by name."""
        with self._errors("cannot be listed"):
            batches = self._store.list(folder or None)
            return {one["path"]: one["size"] for batch in batches for one in batch}

    def read(self, name: str) -> bytes | None:
        """Read an object; ``None`` if there is none."""
        with self._errors(f"{name} cannot be read"):
            try:
                return bytes(self._store.get(name).bytes())
            except FileNotFoundError:
                return None

    def create(self, name: str, content: bytes) -> None:
        """Make an object; the same again changes nothing, other bytes are a ``ConflictError``."""
        from obstore.exceptions import AlreadyExistsError

        with self._errors(f"{name} cannot be written"), contextlib.suppress(AlreadyExistsError):
            self._store.put(name, content, mode="create")
            return
        # An answer that was lost on its way makes the repeated request find its own object.
        if self.read(name) != content:
            raise ConflictError(
                f"{self.url}: {name} is there already and says something else; records never change"
            )

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
        with self._errors(f"{name} cannot be removed"):
            self._store.delete(name)

    @contextmanager
    def _errors(self, failed: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 (obstore's and a credential provider's own)
            raise RecordError(f"{self.url}: {failed}: {_first_line(error)}") from None


def _connected(url: str) -> "ObjectStore":
    try:
        from obstore.store import from_url
    except ImportError:
        raise RecordError(
            f'{url}: an object store needs pip install "hybridwatch[remote]"'
        ) from None
    is_plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true"}
    try:
        return from_url(
            url,
            client_options={"timeout": f"{_REQUEST_S:g}s", "allow_http": is_plain},
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=_RETRY_S)},
            **_credentials(url),
        )
    except Exception as error:  # noqa: BLE001 (obstore's own)
        raise RecordError(f"{url}: {_first_line(error)}") from None


def _credentials(url: str) -> dict[str, Any]:
    """Find credentials by boto3 where it is installed: it knows profiles and single sign-on."""
    if not url.startswith("s3:") or importlib.util.find_spec("boto3") is None:
        return {}
    from boto3 import Session
    from obstore.auth.boto3 import Boto3CredentialProvider

    session = Session()
    if session.get_credentials() is None:
        return {}
    region = {"region": session.region_name} if session.region_name else {}
    return {"credential_provider": Boto3CredentialProvider(session), **region}


def _first_line(error: Exception) -> str:
    """Give the first line of a failure, without the server's page."""
    lines = str(error).partition("Debug source")[0].splitlines()
    line = lines[0].partition(": <")[0].strip() if lines else ""
    return line[:_LONGEST] or type(error).__name__


_MARKER: Final = ".remote.json"
_UNSENT: Final = ".unsent"
_GONE: Final = "gone"
_FOLDERS: Final = ("records", "verdicts", "profiles")
_REPLACED: Final = ("baselines.toml",)
"""Files that people change, in the object store."""

FRESH_S: Final = 10.0
"""Seconds for which a listing holds: within one verb the store is listed once."""
_AT_ONCE: Final = 8
_NAMED: Final = 3

_LOG: Final = logging.getLogger(__name__)


def make_mirror(folder: Path, url: str) -> Path:
    """Make the folder that mirrors an object store, if it is not there."""
    marker = folder / _MARKER
    with named_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not marker.is_file():
            marker.write_text(json.dumps({"url": url}) + "\n", encoding="utf-8")
    return folder


def refreshed(results: Path) -> Path:
    """Bring a results folder that is a mirror up to date; give the folder."""
    if mirror := mirror_at(results):
        mirror.refresh()
    return results


def adding(results: Path, files: Sequence[Path]) -> AbstractContextManager[None]:
    """Send files that are written within, if the results folder is a mirror (``Mirror.adding``)."""
    mirror = mirror_at(results)
    return contextlib.nullcontext() if mirror is None else mirror.adding(files)


def mirror_at(results: Path) -> "Mirror | None":
    """Give the mirror that a results folder is; ``None`` for any other folder."""
    marker = results / _MARKER
    return _mirror(results.resolve()) if marker.is_file() else None


@cache
def _mirror(folder: Path) -> "Mirror":
    marker = folder / _MARKER
    try:
        url = json.loads(marker.read_text(encoding="utf-8"))["url"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{marker}: expected the URL of an object store: {error}") from None
    return Mirror(folder, Bucket(url))


@dataclass(slots=True)
class Mirror:
    """A results folder and the object store that it stands for."""

    folder: Path
    bucket: Bucket
    _listed_at: float | None = field(default=None, init=False)
    _there: dict[str, int] = field(default_factory=dict, init=False)

    def refresh(self, *, fresh_s: float = FRESH_S) -> None:
        """Bring the mirror up to date, unless it was a moment ago.

        A store that was there before in this process and is away now is no reason to show nothing:
        then what is here is what there is, and the log says so.
        """
        now = time.monotonic()
        if self._listed_at is not None and now - self._listed_at < fresh_s:
            return
        try:
            for note in sorted((self.folder / _UNSENT).glob("*.json")):
                self._send(note)
            self._bring()
        except RecordError as error:
            if self._listed_at is None:
                raise
            _LOG.warning("%s; showing what was there before", error)
        self._listed_at = time.monotonic()

    @contextmanager
    def adding(self, files: Sequence[Path]) -> Iterator[None]:
        """Send files that are written within, in this order, once they are all there.

        Where the store has another file of that name (``ConflictError``), those here are removed;
        what else was not sent is kept and sent later.
        """
        names = [path.resolve().relative_to(self.folder).as_posix() for path in files]
        make_folder(self.folder / _UNSENT)
        # Before the files: another process takes what the store lacks for gone, unless it is named.
        note = self.folder / _UNSENT / f"{secrets.token_hex(8)}.json"
        put(note, json.dumps(names).encode())
        try:
            yield
        except BaseException:
            note.unlink(missing_ok=True)
            raise
        try:
            self._send(note)
        except ConflictError:
            for path in files:
                path.unlink(missing_ok=True)
            note.unlink(missing_ok=True)
            raise

    def fetch(self, path: Path) -> None:
        """Bring a file that is not here yet, if the store has it."""
        name = path.resolve().relative_to(self.folder).as_posix()
        content = self.bucket.read(name)
        if content is not None:
            _write(path, content)

    def size(self, path: Path) -> int | None:
        """Give the bytes of a file, whether it was brought or not; ``None`` if there is none."""
        name = path.resolve().relative_to(self.folder).as_posix()
        if name in self._there:
            return self._there[name]
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return None

    def check_writable(self) -> None:
        """Find out whether what will be measured can be sent; ``RecordError`` if not."""
        probe = f".writable-{secrets.token_hex(8)}"
        self.bucket.create(probe, b"hybridwatch")
        self.bucket.remove(probe)

    def _send(self, note: Path) -> None:
        names = _named_in(note)
        beside = [name for name in names if name.endswith(BULK_SUFFIX)]
        # The record last: who lists it finds what it names.
        for part in (beside, [name for name in names if name not in beside]):
            _at_once(self._send_file, part)
        note.unlink(missing_ok=True)

    def _send_file(self, name: str) -> None:
        try:
            content = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return  # a killed process never wrote it
        try:
            self.bucket.create(name, content)
        except ConflictError:
            raise
        except RecordError as error:
            raise RecordError(
                f"{error}; what was not sent is kept in {self.folder}, and the next command with "
                f"--results {self.bucket.url} sends it"
            ) from None

    def _bring(self) -> None:
        there = {
            name: size for folder in _FOLDERS for name, size in self.bucket.sizes(folder).items()
        }
        self._there = there
        here = {
            path.relative_to(self.folder).as_posix(): path.stat().st_size
            for folder in _FOLDERS
            for path in (self.folder / folder).glob("*/[!.]*")
        }
        for name in there.keys() & here.keys():
            if there[name] != here[name]:
                raise RecordError(
                    f"{self.bucket.url}: {name}: expected {here[name]} bytes as in "
                    f"{self.folder / name}, found {there[name]}; records never change"
                )
        wanted = [name for name in there.keys() - here.keys() if not name.endswith(BULK_SUFFIX)]
        _at_once(lambda name: self.fetch(self.folder / name), sorted(wanted))
        self._set_aside(sorted(here.keys() - there.keys() - self._unsent()))
        for name in _REPLACED:
            if (content := self.bucket.read(name)) is not None:
                _write(self.folder / name, content)

    def _unsent(self) -> set[str]:
        notes = (self.folder / _UNSENT).glob("*.json")
        return {name for note in notes for name in _named_in(note)}

    def _set_aside(self, names: Sequence[str]) -> None:
        """Move away what the store has no longer: it may be the only copy that is left."""
        for name in names:
            aside = self.folder / _GONE / name
            aside.parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).rename(aside)
        if names:
            _LOG.warning(
                "%s: %d gone: %s; the copies are in %s",
                self.bucket.url,
                len(names),
                ", ".join(names[:_NAMED]),
                self.folder / _GONE,
            )


def _at_once(do: Callable[[str], None], names: Iterable[str]) -> None:
    """Do it for several names at a time; raise the first failure when those begun have ended."""
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        list(workers.map(do, names))


def _named_in(note: Path) -> list[str]:
    """Read which files are to be sent; none if another process has sent them."""
    try:
        names: list[str] = json.loads(note.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return names


def _write(path: Path, content: bytes) -> None:
    make_folder(path.parent)
    with named_errors(path):
        put(path, content)
