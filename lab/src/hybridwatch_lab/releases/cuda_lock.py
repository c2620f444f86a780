"""The lock of a release for CUDA: what the wheel of ``vllm`` asked for on the day it came out.

Everything, torch's own requirements included, so that the list alone makes the environment and a
folder of its wheels makes it offline. vLLM leaves most upper bounds open, so what an old release
would get today is not what it was made with; pip is shown the index as it was on the day after the
last wheel came out. The list serves every Python of ``PYTHONS``, and says so only after pip has
found a wheel of each line for each of them.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hybridwatch.engines import pip
from hybridwatch.errors import BuildError
from hybridwatch_lab.releases.lock_file import PIP, Heard, lock_text, resolved

PYTHONS: Final = ("3.11", "3.12", "3.13")
_BUILT_FOR_CUDA: Final = {"torch", "torchaudio", "torchvision"}
"""There are CPU builds of the same version elsewhere, and pip takes them for the newer ones."""
_LEFT_OUT: Final = {"nixl-cu12"}
"""The other back end of nixl."""
_PLATFORMS: Final = (
    "linux_x86_64",
    *("manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64"),
    *(f"manylinux_2_{minor}_x86_64" for minor in range(5, 36)),
)
"""What pip calls the platforms that a wheel for this one may name."""
_HEADER: Final = """\
# Everything in the environment of engine build {build}, the engine plugin left out.
# Written by `.venv/bin/python locks/engine.py {build}` from what the index had before {day}.
# Complete for Python {pythons}; `hybridwatch engine install {build}` installs it
# with --no-deps.
"""


def cuda_lock(release: str, day: date, heard: Heard) -> str:
    """Make the lock of a release.

    Args:
        release: Its version.
        day: What was in the index before it is what the release is resolved from.
        heard: Hears pip at work.

    Raises:
        BuildError: pip does not find it, no set of packages for it, or not all of them for every
            Python.
    """
    build = f"cuda-{release}"
    with tempfile.TemporaryDirectory() as folder:
        newer = _newer_pip(Path(folder))
        then = ("--uploaded-prior-to", day.isoformat())
        (engine,) = resolved(newer, [*then, "--no-deps", f"vllm=={release}"])
        found = resolved(newer, [*then, *wanted_by(engine)], heard)
        pins = {
            item["name"]: item["version"]
            for item in found
            if canonicalize_name(item["name"]) not in _LEFT_OUT
        }
        for python in PYTHONS:
            for gap in gaps(found, python):
                raise BuildError(f"{build}: {gap}")
        header = _HEADER.format(build=build, day=day, pythons=", ".join(PYTHONS))
        text = lock_text(header, [pinned(name, pins[name]) for name in pins])
        lock = Path(folder) / "lock.txt"
        lock.write_text(text, encoding="utf-8")
        for python in PYTHONS:
            options = (*then, *for_python(python), "--requirement", str(lock))
            missing = f"{build}: a wheel is missing for {python}:"
            pip.call((*newer, "install", *options), missing, heard=heard)
    return text


def _newer_pip(folder: Path) -> tuple[str, ...]:
    """Make an environment whose pip can be shown an index as it was."""
    place = folder / "env"
    pip.call((sys.executable, "-m", "venv", str(place)), "no environment for a newer pip:")
    newer = (str(place / "bin" / "python"), *PIP[1:])
    pip.call((*newer, "install", "--upgrade", "pip>=26"), "no newer pip:")
    return newer


def wanted_by(engine: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a wheel of vLLM needs for every Python, never a CPU build, and nixl."""
    yield f"{engine['name']}=={engine['version']}"
    yield "nixl"
    for one in map(Requirement, engine["requires_dist"]):
        if canonicalize_name(one.name) in _BUILT_FOR_CUDA and "extra" not in str(one.marker):
            (version,) = (part.version for part in one.specifier)
            yield f"{one.name}!={version}+cpu"
        elif "python_version" in str(one.marker):
            one.marker = None
            yield str(one)


def pinned(name: str, version: str) -> str:
    """Return the line of a lock; CPU builds of torch and its kin do not satisfy theirs."""
    plain = version.partition("+")[0]
    never = f",!={plain}+cpu" if canonicalize_name(name) in _BUILT_FOR_CUDA else ""
    return f"{name}=={plain}{never}"


def for_python(version: str) -> list[str]:
    """Return options that make pip look for wheels of a list for another Python."""
    platforms = [word for platform in _PLATFORMS for word in ("--platform", platform)]
    nowhere = ["--dry-run", "--no-deps", "--ignore-installed", "--target", "nowhere"]
    return [*nowhere, "--only-binary", ":all:", "--python-version", version, *platforms]


def gaps(found: Sequence[Mapping[str, Any]], python: str) -> Iterator[str]:
    """Yield what some package asks for on a Python and the resolution does not hold.

    pip judges conditions by its own Python, whatever Python it is asked about.
    """
    packages = {canonicalize_name(item["name"]): item for item in found}
    versions = {"python_version": python, "python_full_version": f"{python}.0"}
    todo = [(canonicalize_name("vllm"), ""), (canonicalize_name("nixl"), "")]
    for name, extra in todo:  # grows
        for one in map(Requirement, packages[name].get("requires_dist", ())):
            if one.marker and not one.marker.evaluate({**versions, "extra": extra}):
                continue
            needed = canonicalize_name(one.name)
            if needed not in packages or not one.specifier.contains(
                packages[needed]["version"], prereleases=True
            ):
                yield f"{name} asks for {one} on Python {python}"
                continue
            todo += [pair for x in ("", *one.extras) if (pair := (needed, x)) not in todo]
