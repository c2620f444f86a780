"""Fetches the wheels of a pack, for the machine that they shall run on."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name, parse_wheel_filename

from hybridwatch.engines import pip
from hybridwatch.errors import BuildError

_OLDEST_GLIBC: Final = 5
_OLD_NAMES: Final = ("manylinux2014", "manylinux2010", "manylinux1")
_ARCHITECTURE: Final = "x86_64"
_GLIBC: Final = re.compile(r"2\.(\d+)")


@dataclass(frozen=True, slots=True)
class Target:
    """The machine that wheels are for: Linux on x86_64.

    Attributes:
        python: Version of its Python, such as ``3.12``.
        glibc: Version of its C library, such as ``2.34``; a newer one will do as well.
    """

    python: str
    glibc: str

    def options(self) -> list[str]:
        """What pip gets to know of it.

        Raises:
            BuildError: The version of glibc is none.
        """
        found = _GLIBC.fullmatch(self.glibc)
        if not found:
            raise BuildError(f"glibc: expected a version such as 2.34, found {self.glibc!r}")
        newest_first = range(int(found[1]), _OLDEST_GLIBC - 1, -1)
        names = [*(f"manylinux_2_{minor}" for minor in newest_first), *_OLD_NAMES]
        platforms = [word for name in names for word in ("--platform", f"{name}_{_ARCHITECTURE}")]
        return ["--python-version", self.python, "--implementation", "cp", *platforms]


def fetch(
    versions: Mapping[str, str], target: Target, into: Path, wheels: Sequence[Path] = ()
) -> dict[str, Path]:
    """Bring the wheel of each package into a folder; one that is there is not fetched again.

    Args:
        versions: What to fetch, by name.
        target: For which machine.
        into: The folder; made when missing.
        wheels: Folders to look in, and no index then.

    Returns:
        Path by name of the package.

    Raises:
        BuildError: One cannot be had; with pip's words for it.
    """
    into.mkdir(parents=True, exist_ok=True)
    missing = [name for name in versions if name not in _found(versions, into)]
    if missing:
        command = [
            *(sys.executable, "-m", "pip", "download", *pip.OPTIONS, "--no-deps"),
            *("--only-binary", ":all:", "--dest", str(into), *target.options()),
            *(*pip.source(wheels), *(f"{name}=={versions[name]}" for name in missing)),
        ]
        pip.call(command, "pip could not fetch a wheel:", wheels)
    return _found(versions, into)


def build(versions: Mapping[str, str], into: Path, wheels: Sequence[Path] = ()) -> None:
    """Make the wheels of packages that are released as source only, and are pure Python.

    Args:
        versions: What to build, by name.
        into: The folder; made when missing.
        wheels: Folders to look in, and no index then.

    Raises:
        BuildError: One cannot be had or built; with pip's words for it.
    """
    into.mkdir(parents=True, exist_ok=True)
    missing = [name for name in versions if name not in _found(versions, into)]
    if missing:
        command = [
            *(sys.executable, "-m", "pip", "wheel", *pip.OPTIONS, "--no-deps"),
            *("--wheel-dir", str(into), *pip.source(wheels)),
            *(f"{name}=={versions[name]}" for name in missing),
        ]
        pip.call(command, "pip could not build a wheel:", wheels)


def _found(versions: Mapping[str, str], folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.whl")):
        name, version, _, _ = parse_wheel_filename(path.name)
        if versions.get(canonicalize_name(name)) == str(version):
            found[canonicalize_name(name)] = path
    return found
