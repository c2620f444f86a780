"""Whether a build fits this machine: checked before anything is made or started.

Everything here answers at once, but for ``require_wheels``, and says in one line what was found
and what was expected.
"""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hybridwatch.engines import pip
from hybridwatch.engines.builds import BuildSpec
from hybridwatch.errors import BuildError, GpuError
from hybridwatch.system import nvidia

OLDEST_DRIVER: Final[Mapping[int, str]] = {12: "525", 13: "580"}
"""Major version of CUDA to the oldest branch of drivers that runs all its minor versions (NVIDIA,
CUDA Compatibility, "Minor Version Compatibility")."""

_SHOWN: Final = 5
"""Versions that a message lists where another one is missing: the newest."""

_TOOLKIT = re.compile(r"^cuda-toolkit==(\d+)\.(\d+)", re.MULTILINE)
_NO_WHEEL = re.compile(r"satisfies the requirement (\S+)(?:.*?\(from versions: (.*?)\))?")


def cuda_version(build: BuildSpec) -> tuple[int, int] | None:
    """Return the CUDA version that the build's torch is made for, by the lock.

    ``None`` when the lock does not say, as that of a build for CPUs.
    """
    found = _TOOLKIT.search(build.lock.read_text(encoding="utf-8"))
    return (int(found[1]), int(found[2])) if found else None


def require_python(build: BuildSpec) -> None:
    """Refuse a build whose environment this Python cannot make.

    Raises:
        BuildError: It is too old or too new.
    """
    newest = build.newest_python
    if _version(build.python) <= sys.version_info[:2] <= _version(newest or "3.99"):
        return
    expected = f"{build.python} to {newest}" if newest else f"{build.python} or newer"
    raise BuildError(f"{build.name} needs Python {expected}; this is {sys.version.split()[0]}")


def require_gpu(build: BuildSpec) -> None:
    """Refuse a build for CUDA on a machine that cannot run it; others need no GPU.

    Raises:
        BuildError: There is no driver, it is too old for the build's CUDA, or shows no GPU.
    """
    if build.accelerator != "cuda":
        return
    version = cuda_version(build)
    needed = f"an NVIDIA driver{_for_cuda(version)}"
    try:
        driver, devices = nvidia.driver(), nvidia.devices()
    except GpuError as error:
        raise BuildError(f"{build.name} needs {needed}; {error}") from None
    # A driver of the same major version runs every minor one.
    if version is not None and int(driver.cuda.split(".")[0]) < version[0]:
        raise BuildError(
            f"{build.name} needs {needed}; this is driver {driver.version}, "
            f"which goes up to CUDA {driver.cuda}"
        )
    if not devices:
        raise BuildError(
            f"{build.name} needs an NVIDIA GPU; driver {driver.version} shows none to this process"
        )


def _for_cuda(version: tuple[int, int] | None) -> str:
    if version is None:
        return ""
    branch = OLDEST_DRIVER.get(version[0])
    return f" for CUDA {version[0]}.{version[1]}" + (f" ({branch} or newer)" if branch else "")


def require_wheels(build: BuildSpec, arguments: Sequence[str], wheels: Sequence[Path] = ()) -> None:
    """Refuse a build of which a package cannot be had.

    pip looks for what it would install and reads its metadata; it installs nothing. Of several
    missing packages it tells the first.

    Args:
        build: The build.
        arguments: What ``pip install`` would be given.
        wheels: Folders in which they must be; in an index when there are none.

    Raises:
        BuildError: There is no fitting wheel of a package, or pip failed otherwise.
    """
    options = ("--dry-run", "--ignore-installed", "--quiet", *pip.OPTIONS, *pip.source(wheels))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, *arguments],
        env=pip.environment(wheels),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode == 0:
        return
    missing = _NO_WHEEL.search(done.stderr)
    if missing is None:
        tail = "\n".join(done.stderr.splitlines()[-10:])
        raise BuildError(f"{build.name}: pip ended with status {done.returncode}:\n{tail}")
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    where = ", ".join(map(str, wheels)) or "the index"
    there = ", ".join((missing[2] or "none").split(", ")[-_SHOWN:])
    raise BuildError(
        f"{build.name} needs a wheel of {missing[1]} for Python {python}; "
        f"in {where} there is {there}"
    )


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)
