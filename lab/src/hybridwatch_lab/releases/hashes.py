"""Adds to a lock the SHA-256 of the files of each version, as the index says them (PEP 691).

One lock serves many machines, so each line gets the wheels for every CPython from 3.11 on, on Linux
with glibc and on macOS, x86-64 and ARM. A version without such a wheel gets its source.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from packaging.tags import Tag
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from hybridwatch.engines.install import requirements_alone
from hybridwatch.errors import BuildError
from hybridwatch_lab.releases.published import list_files

Ask = Callable[[str], Sequence[Any]]
"""Gives the files that an index has of a package."""
_LINUX: Final = r"(?:manylinux|linux).*_(?:x86_64|aarch64)"
_MACOS: Final = r"macosx_\d+_\d+_(?:x86_64|arm64|universal2)"
_OLDEST: Final = 11
_PIN: Final = re.compile(r"([A-Za-z0-9._-]+)===?([^\s,;]+)")
_NOTE: Final = """\
# --hash: SHA-256 of every wheel for CPython 3.11 or newer on {systems}, x86-64 or ARM;
# of the source where there is no such wheel, and what pip fetches to build that is not checked.
"""
_TORCH: Final = "torch"
_TORCH_NOTE: Final = """\
# torch has none: a CPU gets a build from another index, installed by itself, without a check.
"""
_AT_ONCE: Final = 8
"""Questions."""


def add_hashes(lock: str, accelerator: str = "", ask: Ask = list_files) -> str:
    """Return a lock with the hashes that the index says now; older ones are left out.

    ``accelerator``: of an engine's lock, which is for Linux only; ``cpu`` leaves out torch.

    Raises:
        BuildError: The index cannot be read, or has no file of a version.
    """
    lines = requirements_alone(lock).splitlines()
    head = [line for line in lines if line.startswith("#")]
    pins = [line for line in lines if line and not line.startswith("#")]
    note = _NOTE.format(systems="Linux (glibc)" if accelerator else "Linux (glibc) or macOS")
    platform = re.compile(_LINUX if accelerator else f"{_LINUX}|{_MACOS}")
    is_cpu = accelerator == "cpu"

    def hashed(line: str) -> str:
        found = _PIN.match(line)
        if found is None:
            raise BuildError(f"lock: expected name==version, found {line!r}")
        name, version = canonicalize_name(found[1]), Version(found[2])
        if is_cpu and name == _TORCH:
            return line
        hashes = sorted(_hashes(ask(name), version, platform))
        if not hashes:
            raise BuildError(f"{line}: expected a file with its SHA-256 in the index, found none")
        return " \\\n    ".join([line, *(f"--hash=sha256:{one}" for one in hashes)])

    with ThreadPoolExecutor(_AT_ONCE) as at_once:
        blocks = list(at_once.map(hashed, pins))
    notes = (note + (_TORCH_NOTE if is_cpu else "")).splitlines()
    return "\n".join([*head, *notes, *blocks]) + "\n"


def _hashes(files: Sequence[Any], version: Version, platform: re.Pattern[str]) -> set[str]:
    wheels, sources = set(), set()
    for file in files:
        if not (digest := file.get("hashes", {}).get("sha256")):
            continue
        name = file["filename"]
        if any(_is_for_us(tag, platform) for tag in _tags(name, version)):
            wheels.add(digest)
        elif _is_source(name, version):
            sources.add(digest)
    return wheels or sources


def _tags(name: str, version: Version) -> Iterator[Tag]:
    try:
        _, found, _, tags = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return
    if found == version:
        yield from tags


def _is_source(name: str, version: Version) -> bool:
    try:
        return parse_sdist_filename(name)[1] == version
    except InvalidSdistFilename:
        return False


def _is_for_us(tag: Tag, platform: re.Pattern[str]) -> bool:
    """Whether a wheel may be for our Pythons and machines; none without a global lock (``t``)."""
    cpython = re.fullmatch(r"cp3(\d+)", tag.interpreter)
    fits = tag.interpreter.startswith("py3") or (
        cpython is not None and (tag.abi == "abi3" or int(cpython[1]) >= _OLDEST)
    )
    there = tag.platform == "any" or platform.fullmatch(tag.platform) is not None
    return fits and there and not tag.abi.endswith("t")
