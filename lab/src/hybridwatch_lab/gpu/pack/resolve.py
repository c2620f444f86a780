"""What a machine has already, and which packages a build needs beside it: pip itself decides.

pip is shown an environment that looks like the machine: an empty one with the metadata of each
package that is installed there. What it would then install is what the machine lacks, and what it
has in a version that does not do. Where the machine has nothing, the lock of the build says which
version.
"""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from hybridwatch.engines import pip
from hybridwatch.engines.install import requirements_alone
from hybridwatch.errors import BuildError
from hybridwatch.system.python_command import python_command

_FROZEN: Final = re.compile(r"([A-Za-z0-9._-]+)===?(\S+)")
_COLUMNS: Final = re.compile(r"([A-Za-z0-9._-]+)\s+(\d\S*)(\s+\S.*)?")
_NO_PACKAGE: Final = re.compile(r"$|#|-+(\s+-+)+$|Package\s+Version\b|WARNING:|\[notice\]")
"""Lines without a package: a comment, the head of a table, what pip says of itself."""
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Machine:
    """What is installed there.

    Attributes:
        packages: Version by name; names as pip compares them.
        python: Its Python, such as ``3.12``; empty where the file does not say.
    """

    source: str
    packages: Mapping[str, Version]
    python: str = ""


def read_machine(path: Path) -> Machine:
    """Read a file in which pip lists what is installed.

    Args:
        path: What ``pip list`` printed (as a table, ``--format json`` or ``freeze``), ``pip
            freeze`` or ``pip inspect``.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"{path}: cannot be read: {error}") from error
    if text.lstrip()[:1] in {"[", "{"} and not text.lstrip().startswith("[notice]"):
        pairs, python = _of_json(path, text)
    else:
        pairs, python = list(_of_lines(path, text)), ""
    if not pairs:
        raise BuildError(f"{path}: expected what `pip list` prints, found no package")
    versions: dict[str, Version] = {
        canonicalize_name(name): _version(path, name, text) for name, text in pairs
    }
    return Machine(path.name, versions, python)


def _of_json(path: Path, text: str) -> tuple[list[tuple[str, str]], str]:
    try:
        found = json.loads(text)
        if isinstance(found, list):
            return [(one["name"], one["version"]) for one in found], ""
        facts: Mapping[str, Any] = found["environment"]
        installed = [one["metadata"] for one in found["installed"]]
        return [(one["name"], one["version"]) for one in installed], facts["python_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise BuildError(
            f"{path}: expected `pip list --format json` or `pip inspect`: {error!r}"
        ) from error


def _of_lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if _NO_PACKAGE.match(line):
            continue
        found = _FROZEN.fullmatch(line) or _COLUMNS.fullmatch(line)
        if not found:
            raise BuildError(
                f"{path}: line {number}: expected a package and its version, "
                f"found {line[:_SHOWN]!r}; use `pip list --format json`"
            )
        yield found[1], found[2]


def _version(path: Path, name: str, text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        raise BuildError(f"{path}: {name}: expected a version, found {text!r}") from error


GIVEN: Final = ("torch", "torchvision", "torchaudio", "triton")
"""The machine's own, with whatever libraries they came with: a container may have them elsewhere
than in packages."""
_NOT_THERE: Final = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)")


@dataclass(frozen=True, slots=True)
class WantedWheel:
    """A package that is to be packed; ``instead_of``: the version that the machine has, if any."""

    name: str
    version: str
    because: str
    instead_of: str = ""


@dataclass(frozen=True, slots=True)
class ResolveQuestion:
    """What pip has to resolve.

    Attributes:
        requirements: What shall run there, such as ``vllm==0.23.0``.
        lock: By name a line ``name==version``: which, where the machine has none.
        left_out: Packages that are not wanted, nor what only they require.
        as_it_is: Packages that are good in any version.
        python: An interpreter of the machine's version, on this one.
        wheels: Folders to look in, and no index then.
        built: A folder to look in besides, with wheels of what is released as source only.
    """

    requirements: Sequence[str]
    machine: Machine
    lock: Mapping[str, str]
    left_out: frozenset[str]
    as_it_is: frozenset[str]
    python: Path
    wheels: Sequence[Path] = ()
    built: Path | None = None


def resolve(question: ResolveQuestion) -> list[WantedWheel]:
    """Find the least set of packages, in the order of their names."""
    with tempfile.TemporaryDirectory(prefix="hybridwatch-pack-") as folder:
        site = _Stub(question, Path(folder))
        known = site.stand_in()
        report = site.ask()
    items: dict[str, Mapping[str, Any]] = {
        canonicalize_name(one["metadata"]["name"]): one["metadata"] for one in report["install"]
    }
    return sorted(
        _reachable(question, {**known, **items}, frozenset(items), report["environment"]),
        key=lambda wanted: wanted.name,
    )


class _Stub:
    """An environment that looks to pip like the machine."""

    def __init__(self, question: ResolveQuestion, folder: Path) -> None:
        self._question = question
        self._folder = folder
        self._python = folder / "like" / "bin" / "python"

    def stand_in(self) -> dict[str, dict[str, Any]]:
        """Make it; gives the metadata of what is installed."""
        words = ("-m", "venv", "--without-pip", str(self._folder / "like"))
        make = python_command(*words, python=self._question.python)
        subprocess.run(make, check=True, capture_output=True)
        (site,) = (self._folder / "like" / "lib").glob("python3*/site-packages")
        known = self._metadata()
        machine, lock = self._question.machine.packages, self._question.lock
        for name, version in machine.items():
            own = name in self._question.as_it_is and name in lock
            shown = pinned(lock[name]) if own else str(version)
            metadata = known.get(name, {}) if not own else {}
            _install(site, name, shown, metadata)
        return known

    def _metadata(self) -> dict[str, dict[str, Any]]:
        """Ask the index what the installed packages require, as far as it knows them."""
        machine, lock = self._question.machine.packages, self._question.lock
        names = {
            name
            for name in machine.keys() & lock.keys() - {*GIVEN} - self._question.as_it_is
            if not name.startswith("nvidia-") and not machine[name].local
        }
        for _ in range(len(names)):
            words = [f"{name}=={machine[name]}" for name in sorted(names)]
            try:
                found = self._pip("--no-deps", "--ignore-installed", *words)
            except BuildError as error:
                missing = _NOT_THERE.search(str(error))
                if not missing:
                    raise
                names.discard(canonicalize_name(missing[1]))
            else:
                packages = [one["metadata"] for one in found["install"]]
                return {canonicalize_name(one["name"]): one for one in packages}
        return {}

    def ask(self) -> dict[str, Any]:
        """Have pip resolve, until whatever it replaces is what the lock says."""
        machine, lines = self._question.machine.packages, self._question.lock
        bound = {name: line for name, line in lines.items() if name not in machine}
        while True:  # each round bounds more of a lock's finite lines
            constraints = self._folder / "constraints.txt"
            constraints.write_text("\n".join(bound.values()), encoding="utf-8")
            report = self._pip("--constraint", str(constraints), *self._question.requirements)
            names = {canonicalize_name(one["metadata"]["name"]) for one in report["install"]}
            news = (names & lines.keys()) - bound.keys()
            if not news:
                return report
            bound |= {name: lines[name] for name in news}

    def _pip(self, *words: str) -> dict[str, Any]:
        path = self._folder / "report.json"
        folder = self._question.built
        built = ("--find-links", str(folder)) if folder else ()
        command = [
            *python_command("-m", "pip", "--python", str(self._python), "install"),
            *(*pip.OPTIONS, "--dry-run", "--only-binary", ":all:"),
            *("--report", str(path), *pip.source(self._question.wheels), *built, *words),
        ]
        pip.call(command, "pip finds no set of packages:", self._question.wheels)
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return report


def _install(site: Path, name: str, version: str, metadata: Mapping[str, Any]) -> None:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {one}" for one in metadata.get("requires_dist", ())]
    lines += [f"Provides-Extra: {one}" for one in metadata.get("provides_extra", ())]
    (info / "METADATA").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (info / "INSTALLER").write_text("pip\n", encoding="utf-8")
    (info / "RECORD").write_text("", encoding="utf-8")


def _reachable(
    question: ResolveQuestion,
    known: Mapping[str, Mapping[str, Any]],
    new: frozenset[str],
    environment: Mapping[str, str],
) -> Iterator[WantedWheel]:
    """Walk from what shall run to what it requires, not through what is left out."""
    there = question.machine.packages
    waiting = [(Requirement(text), text) for text in question.requirements]
    seen: set[tuple[str, str]] = set()
    given: set[str] = set()
    while waiting:
        requirement, because = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in question.left_out or name not in known:
            continue
        if name in new and name not in given:
            given.add(name)
            yield WantedWheel(name, known[name]["version"], because, str(there.get(name, "")))
        for extra in {"", *requirement.extras}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            metadata = known[name]
            waiting += [
                (one, f"{metadata['name']} {metadata['version']} needs {one.name}{one.specifier}")
                for one in _required(metadata.get("requires_dist", ()), environment, extra)
            ]


def _required(
    texts: Iterable[str], environment: Mapping[str, str], extra: str
) -> Iterator[Requirement]:
    for text in texts:
        one = Requirement(text)
        if one.marker is None or one.marker.evaluate({**environment, "extra": extra}):
            yield one


def lock_lines(text: str) -> dict[str, str]:
    """Give the requirements of a lock by the name of the package, as pip compares names."""
    lines = requirements_alone(text).splitlines()
    return {
        canonicalize_name(Requirement(line).name): line
        for line in lines
        if line and not line.startswith("#")
    }


def lock_hashes(text: str) -> dict[str, list[str]]:
    """Give pip's options with the hashes of a lock by the name of the package."""
    options: dict[str, list[str]] = {}
    for line in text.replace("\\\n", "").splitlines():
        requirement, *hashes = line.split(" --hash=")
        if hashes:
            name = canonicalize_name(Requirement(requirement).name)
            options[name] = [f"--hash={one.strip()}" for one in hashes]
    return options


def pinned(line: str) -> str:
    """Give the version that a line of a lock names."""
    return next(one.version for one in Requirement(line).specifier if one.operator == "==")
