"""Makes the pack of a build for a machine: pieces, what is in them, and the script beside them.

What it leaves out, takes as the machine has it, or builds is in ``engine/pack.toml``.
"""

import json
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.engines.builds import BuildSpec
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.validation import closest, quoted, refusing_toml
from hybridwatch.system.home import shipped_engine
from hybridwatch.system.python_command import python_command
from hybridwatch_lab.gpu.pack.resolve import (
    GIVEN,
    Machine,
    ResolveQuestion,
    WantedWheel,
    lock_hashes,
    lock_lines,
    pinned,
    resolve,
)
from hybridwatch_lab.gpu.pack.wheels import Piece, Splitter, Target, build, fetch, write_archive

_FILE: Final = Path("engine") / "pack.toml"
Text = Annotated[str, Field(pattern=r"\S")]


class LeaveOutEntry(BaseModel):
    """One thing that is not packed.

    Attributes:
        id: Name for ``--keep`` and ``--leave-out``.
        why: Why nothing misses it.
        packages: Distributions that are not packed at all.
        files: Of wheels that are packed: ``DISTRIBUTION:PATTERN``, a shell pattern of paths.
        usual: Whether it is left out when nobody says anything about it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: Text
    why: Text
    packages: list[Text] = Field(default_factory=list)
    files: list[Annotated[str, Field(pattern=r"^[^:]+:.+$")]] = Field(default_factory=list)
    usual: bool = True


class _LeaveOutGroup(BaseModel):
    """Packages that are treated alike."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    packages: list[Text]
    why: Text


class _LeaveOutFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    leave_out: list[LeaveOutEntry] = Field(default_factory=list)
    as_it_is: list[_LeaveOutGroup] = Field(default_factory=list)
    source_only: list[_LeaveOutGroup] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is left out of one pack.

    Attributes:
        entries: In the order of the file.
        as_it_is: Distributions of which any version that the machine has is good.
        source_only: Distributions that are released without a wheel, which is then built here.
    """

    entries: Sequence[LeaveOutEntry]
    as_it_is: frozenset[str] = frozenset()
    source_only: frozenset[str] = frozenset()

    @property
    def packages(self) -> frozenset[str]:
        """Distributions that are not packed, named as pip compares names."""
        return frozenset(
            canonicalize_name(name) for entry in self.entries for name in entry.packages
        )

    def find_entry(self, distribution: str, path: str) -> LeaveOutEntry | None:
        """Say why a file of a wheel is left out; ``None`` when it is packed."""
        for entry in self.entries:
            for file in entry.files:
                owner, _, pattern = file.partition(":")
                if canonicalize_name(owner) == distribution and fnmatchcase(path, pattern):
                    return entry
        return None


def read_left_out(home: Path, *, keep: Collection[str] = (), also: Collection[str] = ()) -> LeftOut:
    """Read what is left out."""
    path = shipped_engine(home) / _FILE.name
    with refusing_toml(path, _LeaveOutFile, BuildError, _FILE):
        found = _LeaveOutFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    known = [entry.id for entry in found.leave_out]
    for word in (*keep, *also):
        if word not in known:
            raise BuildError(f"{_FILE}: nothing is called {quoted(word)}; {closest(word, known)}")
    entries = [e for e in found.leave_out if e.id not in keep and (e.usual or e.id in also)]
    return LeftOut(entries, _names(found.as_it_is), _names(found.source_only))


def _names(groups: Iterable[_LeaveOutGroup]) -> frozenset[str]:
    return frozenset(canonicalize_name(name) for group in groups for name in group.packages)


MANIFEST: Final = "pack.json"
SCRIPT: Final = "put_together.py"
WRAPPER: Final = "put-together.sh"
WHEELS: Final = "wheels"
CARRY: Final = "carry"

_WRAPPER_TEXT: Final = """\
#!/usr/bin/env bash
# Makes the environment of this pack; see put_together.py --help. PYTHON names another interpreter.
exec "${PYTHON:-python3}" "$(dirname -- "${BASH_SOURCE[0]}")/put_together.py" "$@"
"""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PackRequest:
    """What is to be packed.

    Attributes:
        out: Folder for everything; made when missing.
        piece_bytes: The size of a piece, at most.
        python: An interpreter of the machine's version, on this one.
        glibc: The machine's C library.
        wheels: Folders to take wheels from, and no index then.
    """

    build: BuildSpec
    machine: Machine
    left_out: LeftOut
    out: Path
    piece_bytes: int
    python: Path
    glibc: str
    wheels: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Pack:
    """What was made.

    Attributes:
        left_behind: Unpacked bytes of files that were left out, by distribution.
    """

    folder: Path
    pieces: Sequence[Piece]
    packages: Sequence[WantedWheel]
    left_behind: dict[str, int]


def make_pack(request: PackRequest, say: Say) -> Pack:
    """Resolve, fetch, leave out, and write the pieces.

    Raises:
        BuildError: The machine's torch or Python is not the build's, requirements contradict each
            other, or a wheel cannot be had.
    """
    version = _require_fit(request)
    say(f"[1/3] what {request.build.name} needs beside what is in {request.machine.source}")
    lock, hashes = _lock(request.build)
    wheels = request.out / WHEELS
    sources = request.left_out.source_only & lock.keys()
    build({name: pinned(lock[name]) for name in sources}, hashes, wheels, request.wheels)
    wanted = resolve(
        ResolveQuestion(
            requirements=_requirements(request.build),
            machine=request.machine,
            lock=lock,
            left_out=request.left_out.packages,
            as_it_is=request.left_out.as_it_is,
            python=request.python,
            wheels=request.wheels,
            built=wheels,
        )
    )
    _require_given(request, wanted)
    for one in wanted:
        if one.instead_of:
            say(f"      {one.name} {one.version} instead of {one.instead_of}: {one.because}")
    say(f"[2/3] {len(wanted)} wheels")
    target = Target(version, request.glibc)
    versions = {one.name: one.version for one in wanted}
    paths = fetch(versions, hashes, target, wheels, request.wheels)
    say("[3/3] pieces")
    return _write(request, target, wanted, paths)


def _require_fit(request: PackRequest) -> str:
    """Hold the machine's Python and torch against the build; gives the version of Python."""
    source, build = request.machine.source, request.build
    version = _version_of(request.python)
    if request.machine.python not in {"", version}:
        raise BuildError(
            f"{source}: Python {request.machine.python}; {request.python} is {version}: "
            "name one of the same version with --python"
        )
    torch = Requirement(build.torch)
    found = request.machine.packages.get(canonicalize_name(torch.name))
    any_does = torch.name in request.left_out.as_it_is
    if found is None or not (any_does or torch.specifier.contains(found, prereleases=True)):
        raise BuildError(
            f"{source}: {build.name} needs {build.torch} on the machine, "
            f"found {torch.name + ' ' + str(found) if found else 'none'}"
        )
    return version


def _version_of(python: Path) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        command = python_command("-c", code, python=python)
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"{python}: expected an interpreter that runs: {error}") from error
    return done.stdout.strip()


def _requirements(build: BuildSpec) -> list[str]:
    """The engine, and the harness with what it measures with."""
    try:
        text = (build.home / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise BuildError(f"pyproject.toml: expected the harness's requirements: {error}") from error
    harness = [*project["dependencies"], *project["optional-dependencies"]["measure"]]
    return [f"{build.distribution}=={build.release}", *harness]


def _lock(build: BuildSpec) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The build's lock, and for what it does not name that of the harness: lines and hashes."""
    locks = (build.home / "locks" / "harness.txt", build.lock_file)
    lines: dict[str, str] = {}
    hashes: dict[str, list[str]] = {}
    for path in locks:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise BuildError(f"{path}: cannot be read: {error.strerror}") from error
        lines |= lock_lines(text)
        hashes |= lock_hashes(text)
    return lines, hashes


def _require_given(request: PackRequest, wanted: Sequence[WantedWheel]) -> None:
    for one in wanted:
        if one.name in GIVEN:
            has = f"found {one.instead_of}" if one.instead_of else "found none"
            raise BuildError(
                f"{request.machine.source}: expected {one.name} {one.version} on the machine, "
                f"{has}: {one.because}"
            )


def _write(
    request: PackRequest, target: Target, wanted: Sequence[WantedWheel], paths: dict[str, Path]
) -> Pack:
    folder = request.out / CARRY
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    splitter = Splitter(folder, request.build.name, request.piece_bytes)
    behind = write_archive(
        [(one.name, paths[one.name]) for one in wanted],
        lambda name, path: request.left_out.find_entry(name, path) is not None,
        splitter,
    )
    script = files("hybridwatch_lab.gpu.pack").joinpath(SCRIPT).read_text(encoding="utf-8")
    (folder / SCRIPT).write_text(script, encoding="utf-8")
    (folder / WRAPPER).write_text(_WRAPPER_TEXT, encoding="utf-8")
    (folder / WRAPPER).chmod(0o755)
    manifest = _manifest(request, target, wanted, splitter)
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    # Last, so that a pack that was interrupted is none.
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    saved = {name: size for name, size in behind.items() if size}
    return Pack(folder, splitter.pieces, wanted, saved)


def _manifest(
    request: PackRequest, target: Target, wanted: Sequence[WantedWheel], splitter: Splitter
) -> dict[str, Any]:
    packed = {one.name for one in wanted}
    lock, _ = _lock(request.build)
    # Of what is good in any version, none is named.
    counted_on = {
        name: "" if name in request.left_out.as_it_is else str(version)
        for name, version in request.machine.packages.items()
        if name in lock and name not in packed and name not in request.left_out.packages
    }
    return {
        "format": 1,
        "build": request.build.name,
        "release": request.build.release,
        "python": target.python,
        "glibc": target.glibc,
        "env": dict(request.build.env),
        "sha256": splitter.sha256,
        "pieces": [asdict(piece) for piece in splitter.pieces],
        "packages": [asdict(one) for one in wanted],
        "counted_on": counted_on,
        "left_out": [entry.model_dump(exclude={"usual"}) for entry in request.left_out.entries],
    }
