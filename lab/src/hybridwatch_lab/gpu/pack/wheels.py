"""Fetches the wheels of a pack, and makes one archive of them, in pieces that can be carried."""

import csv
import hashlib
import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.utils import canonicalize_name, parse_wheel_filename

from hybridwatch.engines import pip
from hybridwatch.errors import BuildError
from hybridwatch.system.python_command import python_command

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_OLDEST_GLIBC: Final = 5
_OLD_NAMES: Final = ("manylinux2014", "manylinux2010", "manylinux1")
_ARCHITECTURE: Final = "x86_64"
_GLIBC: Final = re.compile(r"2\.(\d+)")


@dataclass(frozen=True, slots=True)
class Target:
    """The machine that wheels are for: Linux on x86_64; a newer ``glibc`` will do as well."""

    python: str
    glibc: str

    def options(self) -> list[str]:
        """What pip gets to know of it."""
        found = _GLIBC.fullmatch(self.glibc)
        if not found:
            raise BuildError(f"glibc: expected a version such as 2.34, found {self.glibc!r}")
        newest_first = range(int(found[1]), _OLDEST_GLIBC - 1, -1)
        names = [*(f"manylinux_2_{minor}" for minor in newest_first), *_OLD_NAMES]
        platforms = [word for name in names for word in ("--platform", f"{name}_{_ARCHITECTURE}")]
        return ["--python-version", self.python, "--implementation", "cp", *platforms]


Hashes = Mapping[str, Sequence[str]]
"""By the name of a package pip's options with the hashes of its files."""


def fetch(
    versions: Mapping[str, str],
    hashes: Hashes,
    target: Target,
    into: Path,
    wheels: Sequence[Path] = (),
) -> dict[str, Path]:
    """Bring the wheel of each package into a folder; one that is there is not fetched again.

    ``into``: the folder; made when missing. ``wheels``: folders to look in, and no index then.
    """
    words = ("download", "--only-binary", ":all:", "--dest", str(into), *target.options())
    _bring(words, "pip could not fetch a wheel:", versions, hashes, into, wheels)
    return _found(versions, into)


def build(
    versions: Mapping[str, str], hashes: Hashes, into: Path, wheels: Sequence[Path] = ()
) -> None:
    """Make the wheels of packages that are released as source only, and are pure Python."""
    words = ("wheel", "--wheel-dir", str(into))
    _bring(words, "pip could not build a wheel:", versions, hashes, into, wheels)


def _bring(
    words: Sequence[str],
    failed: str,
    versions: Mapping[str, str],
    hashes: Hashes,
    into: Path,
    wheels: Sequence[Path],
) -> None:
    """Call pip for what is not in a folder yet; a package without a hash is refused."""
    into.mkdir(parents=True, exist_ok=True)
    missing = versions.keys() - _found(versions, into).keys()
    if not missing:
        return
    lines = (" ".join([f"{one}=={versions[one]}", *hashes.get(one, ())]) for one in sorted(missing))
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(lines))
        file.flush()
        options = (*pip.OPTIONS, "--no-deps", "--require-hashes", "--requirement", file.name)
        command = python_command("-m", "pip", *words, *options, *pip.source(wheels))
        pip.call(command, failed, wheels)


def _found(versions: Mapping[str, str], folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.whl")):
        name, version, _, _ = parse_wheel_filename(path.name)
        if versions.get(canonicalize_name(name)) == str(version):
            found[canonicalize_name(name)] = path
    return found


SITE: Final = "site"
"""Folder of the archive for what Python imports."""
PREFIX: Final = "prefix"
"""Folder of the archive for what belongs beside it, such as ``bin``."""

_BLOCK: Final = 1 << 20
_WHEN: Final = (1980, 1, 1, 0, 0, 0)
"""The same content makes the same archive, whenever it is made."""
_INTO: Final = {"purelib": SITE, "platlib": SITE, "scripts": f"{PREFIX}/bin", "data": PREFIX}
"""Where a wheel's ``NAME.data/KEY`` goes; headers go nowhere."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the archive."""

    name: str
    size: int
    sha256: str


@dataclass(slots=True)
class _OpenPiece:
    path: Path
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    size: int = 0


class Splitter(io.RawIOBase):
    """A file to write to that becomes several of at most so many bytes."""

    def __init__(self, folder: Path, stem: str, limit: int) -> None:
        super().__init__()
        self._folder, self._stem, self._limit = folder, stem, limit
        self._done: list[_OpenPiece] = []
        self._whole = hashlib.sha256()

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        """Append, going on in the next piece where one is full."""
        rest = memoryview(data).cast("B")
        self._whole.update(rest)
        while rest:
            if not self._done or self._done[-1].size == self._limit:
                name = f"{self._stem}.{len(self._done) + 1:03d}"
                self._done.append(_OpenPiece(self._folder / name))
                self._done[-1].path.unlink(missing_ok=True)
            last = self._done[-1]
            part = rest[: self._limit - last.size]
            with last.path.open("ab") as file:
                file.write(part)
            last.digest.update(part)
            last.size += len(part)
            rest = rest[len(part) :]
        return memoryview(data).nbytes

    @property
    def pieces(self) -> list[Piece]:
        """What was written."""
        return [Piece(one.path.name, one.size, one.digest.hexdigest()) for one in self._done]

    @property
    def sha256(self) -> str:
        """Digest of all pieces together."""
        return self._whole.hexdigest()


def write_archive(
    wheels: Iterable[tuple[str, Path]],
    left_out: Callable[[str, str], bool],
    splitter: Splitter,
) -> dict[str, int]:
    """Write the files of wheels as they will lie on the machine.

    ``wheels``: distribution and its wheel. ``left_out``: says of a distribution's file, by its path
    in the wheel, whether it stays behind.

    Returns:
        For each distribution how many bytes, unpacked, were left out of its wheel.
    """
    saved: dict[str, int] = {}
    seen: set[str] = set()
    # In blocks: a piece is opened again for each write.
    with (
        io.BufferedWriter(splitter, _BLOCK) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive,
    ):
        for distribution, path in wheels:
            saved[distribution] = 0
            with zipfile.ZipFile(path) as wheel:
                behind: set[str] = set()
                for info in sorted(wheel.infolist(), key=_is_record):
                    place = _place(info.filename)
                    if info.is_dir() or place is None or place in seen:
                        continue
                    if left_out(distribution, info.filename):
                        saved[distribution] += info.file_size
                        behind.add(info.filename)
                        continue
                    seen.add(place)
                    if behind and _is_record(info):
                        archive.writestr(_new(info, place), _shorter(wheel.read(info), behind))
                    else:
                        _copy(wheel, info, archive, place)
    return saved


def _is_record(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith(".dist-info/RECORD")


def _shorter(record: bytes, behind: Set[str]) -> bytes:
    """A wheel's list of its files without those that stay behind.

    Else the engine would count as one whose files were changed, under another label.
    """
    lines = csv.reader(record.decode("utf-8").splitlines())
    kept = io.StringIO()
    csv.writer(kept, lineterminator="\n").writerows(line for line in lines if line[0] not in behind)
    return kept.getvalue().encode("utf-8")


def _place(name: str) -> str | None:
    """Where a file of a wheel lies in the archive; ``None`` for headers, which nobody compiles."""
    first, _, rest = name.partition("/")
    if not first.endswith(".data"):
        return f"{SITE}/{name}"
    key, _, inner = rest.partition("/")
    return f"{_INTO[key]}/{inner}" if key in _INTO else None


def _copy(
    wheel: zipfile.ZipFile, info: zipfile.ZipInfo, archive: zipfile.ZipFile, place: str
) -> None:
    new = _new(info, place)
    new.file_size = info.file_size
    with wheel.open(info) as source, archive.open(new, "w") as sink:
        while block := source.read(_BLOCK):
            sink.write(block)


def _new(info: zipfile.ZipInfo, place: str) -> zipfile.ZipInfo:
    new = zipfile.ZipInfo(place, _WHEN)
    new.compress_type = zipfile.ZIP_DEFLATED
    new.external_attr = info.external_attr
    return new
