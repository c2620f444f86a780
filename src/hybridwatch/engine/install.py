"""Makes the environment of an engine build from its lock, once.

A marker file is written last and holds the digest of everything that shaped the environment. A
marker that fits means there is nothing to do; any other environment is made anew from nothing, so
one that was interrupted, or whose lock has changed, is never half right.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from hybridwatch.engine.builds import BuildSpec
from hybridwatch.errors import BuildError

Say = Callable[[str], None]

MARKER: Final = "hybridwatch-lock.sha256"
_TAIL_LINES: Final = 20
_BIG_DOWNLOAD: Final = re.compile(r"Downloading (\S+) \((\d{2,}(\.\d+)? MB|[\d.]+ GB)\)")


class State(Enum):
    """Whether a build can be started."""

    INSTALLED = "installed"
    STALE = "stale"
    """There is an environment, but it is unfinished or was made from another lock."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class _Step:
    title: str
    command: tuple[str, ...]


def state(build: BuildSpec) -> State:
    """Tell whether the environment of a build is there and is what the lock asks for."""
    if not build.environment.exists():
        return State.MISSING
    marker = build.environment / MARKER
    if not marker.is_file() or not build.interpreter.is_file():
        return State.STALE
    fits = marker.read_text(encoding="ascii").strip() == environment_digest(build)
    return State.INSTALLED if fits else State.STALE


def lock_digest(build: BuildSpec) -> str:
    """Return the SHA-256 of the build's lock file, in hexadecimal."""
    return hashlib.sha256(build.lock.read_bytes()).hexdigest()


def environment_digest(build: BuildSpec) -> str:
    """Return the SHA-256 over everything that shapes the environment of a build.

    The checkout's place is part of it, because the engine plugin is installed from there; switches,
    flags and variables are not, because they act when the engine starts.
    """
    plugin = build.home / "engine" / "pyproject.toml"
    content = {
        "release": build.release,
        "distribution": build.distribution,
        "torch": build.torch,
        "lock": lock_digest(build),
        "plugin": hashlib.sha256(plugin.read_bytes()).hexdigest() if plugin.is_file() else None,
        "home": str(build.home),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def install(build: BuildSpec, *, say: Say) -> Path:
    """Make the environment of a build, unless it is there already.

    Args:
        build: The build.
        say: Takes each line of progress.

    Returns:
        The folder of the environment.

    Raises:
        BuildError: This Python is too old, or a step failed; carries the step, its exit status and
            the last lines it wrote.
    """
    if state(build) is State.INSTALLED:
        say(f"{build.name} is installed in {build.environment}")
        return build.environment
    _require_python(build)
    if build.environment.exists():
        say(f"removing what is left of another {build.name}")
        shutil.rmtree(build.environment)
    steps = tuple(_steps(build))
    for number, step in enumerate(steps, 1):
        say(f"[{number}/{len(steps)}] {step.title}")
        began = time.monotonic()
        _run(build, step, f"{number}/{len(steps)}", say)
        say(f"      {time.monotonic() - began:.0f} s")
    # Last, so that an interrupted installation has no marker.
    (build.environment / MARKER).write_text(environment_digest(build) + "\n", encoding="ascii")
    say(f"{build.name} is installed in {build.environment}")
    return build.environment


def _steps(build: BuildSpec) -> Iterator[_Step]:
    pip = (
        str(build.interpreter),
        *("-m", "pip", "install", "--disable-pip-version-check", "--no-input"),
        *("--progress-bar", "off"),
    )
    yield _Step("environment", (sys.executable, "-m", "venv", str(build.environment)))
    # With what torch itself asks for, which differs between its CPU and its default builds. The
    # lock is no constraint here: a default torch pins another triton than the engine uses.
    yield _Step(build.torch, (*pip, build.torch))
    yield _Step(
        f"{build.distribution}=={build.release} and the rest of {build.lock.name}",
        (*pip, "--no-deps", "--requirement", str(build.lock)),
    )
    # The lock brings setuptools, so that building the plugin downloads nothing.
    yield _Step(
        "hybridwatch-engine, the plugin",
        (*pip, "--no-deps", "--no-build-isolation", "--editable", str(build.home / "engine")),
    )


def _run(build: BuildSpec, step: _Step, position: str, say: Say) -> None:
    # Another environment's variables would send pip's work there.
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    with subprocess.Popen(
        step.command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for; tells mypy
        for line in process.stdout:
            tail.append(line.rstrip())
            _echo(line.strip(), say)
    if process.returncode != 0:
        said = "\n".join(tail)
        raise BuildError(
            f"{build.name}: step {position} ({step.title}) ended with status "
            f"{process.returncode}; its last lines:\n{said}"
        )


def _echo(line: str, say: Say) -> None:
    """Pass on the few lines of pip that tell a waiting person that something moves."""
    if found := _BIG_DOWNLOAD.match(line):
        say(f"      downloading {found[1]} ({found[2]})")
    elif line.startswith("Installing collected packages:"):
        say(f"      unpacking {line.count(',') + 1} packages")


def _require_python(build: BuildSpec) -> None:
    floor = tuple(int(part) for part in build.python.split("."))
    if sys.version_info < floor:
        raise BuildError(
            f"{build.name} needs Python {build.python} or newer; this is {sys.version.split()[0]}"
        )
