"""Makes the environment of an engine build from its lock, once, or fetches what it is made of.

A marker with the digest of all that shaped it is written last: what was interrupted, or has another
lock by now, is made again from nothing. A lock for CPUs leaves to torch what torch brings along, so
there torch is installed first, without a hash, since it is on another index.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final

from hybridwatch.engines import pip
from hybridwatch.engines.builds import BuildSpec
from hybridwatch.engines.preflight import require_gpu, require_python, require_wheels
from hybridwatch.errors import BuildError
from hybridwatch.system.home import is_checkout, is_extending, shipped_engine
from hybridwatch.system.python_command import python_command


def plugin_digest(home: Path) -> str | None:
    """SHA-256 over the plugin: of a checkout, used where it lies, the project file; or ``None``."""
    folder = shipped_engine(home)
    project = folder / "pyproject.toml"
    if not project.is_file():
        return None
    if _is_edited(home):
        return hashlib.sha256(project.read_bytes()).hexdigest()
    return _digest_of(folder)


@cache  # for each build of a list
def _digest_of(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in {".py", ".toml"}):
        total.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@contextmanager
def plugin_to_install(home: Path) -> Iterator[Sequence[str]]:
    """Give pip's words for the plugin; of a wheel's a copy, since pip builds where it lies."""
    folder = shipped_engine(home)
    if _is_edited(home):
        yield ("--editable", str(folder))
        return
    with tempfile.TemporaryDirectory(prefix="hybridwatch-") as work:
        yield (str(shutil.copytree(folder, Path(work) / "engine")),)


def _is_edited(home: Path) -> bool:
    return is_checkout() or not is_extending(home)


Say = Callable[[str], None]

MARKER: Final = "hybridwatch-lock.sha256"
_TAIL_LINES: Final = 20
_HASHES: Final = re.compile(r" \\\n +--hash=\S+|^# --hash.*\n(?:#.*\n)*", re.MULTILINE)
_NO_CPU_BUILD: Final = re.compile(r"==([^\s,;]+),!=\1\+cpu")
_PLAIN: Final = (*pip.OPTIONS, "--progress-bar", "off")


class InstallState(Enum):
    """Whether a build can be started."""

    INSTALLED = "installed"
    STALE = "stale"
    """There is an environment, but it is unfinished or was made from another lock."""
    MISSING = "missing"


_Step = tuple[str, tuple[str, ...]]
"""A title, and the words of a call of pip."""


def state(build: BuildSpec) -> InstallState:
    """Tell whether the environment of a build is there and is what the lock asks for."""
    if not build.environment.exists():
        return InstallState.MISSING
    marker = build.environment / MARKER
    if not marker.is_file() or not build.interpreter.is_file():
        return InstallState.STALE
    fits = marker.read_text(encoding="ascii").strip() == environment_digest(build)
    return InstallState.INSTALLED if fits else InstallState.STALE


def requirements_alone(lock: str) -> str:
    """Return the text of a lock without its hashes, and without the end of its head, on them."""
    return _HASHES.sub("", lock)


def lock_digest(build: BuildSpec) -> str:
    """SHA-256 of a lock's requirements: files for one more Python leave the engine as it is."""
    lock = build.lock_file.read_bytes().decode("utf-8")
    return hashlib.sha256(requirements_alone(lock).encode()).hexdigest()


@contextmanager
def _lock_for_pip(build: BuildSpec) -> Iterator[Path]:
    """Give a lock for pip, on a CPU without torch; ``==1.0,!=1.0+cpu`` is no pin, ``===1.0`` is."""
    text = _NO_CPU_BUILD.sub(r"===\1", build.lock_file.read_text(encoding="utf-8"))
    if build.accelerator == "cpu":
        torch = re.escape(build.torch.partition("=")[0])
        text = re.sub(rf"^{torch}==(?:.*\\\n)*.*\n?", "", text, flags=re.MULTILINE)
    with tempfile.TemporaryDirectory(prefix="hybridwatch-") as work:
        lock = Path(work) / build.lock_file.name
        lock.write_text(text, encoding="utf-8")
        yield lock


def environment_digest(build: BuildSpec) -> str:
    """SHA-256 over everything that shapes the environment of a build.

    So does the home's place, from which a checkout's plugin is installed; switches, flags and
    variables act when the engine starts.
    """
    content = {
        "release": build.release,
        "distribution": build.distribution,
        "torch": build.torch,
        "lock": lock_digest(build),
        "plugin": plugin_digest(build.home),
        "home": str(build.home),
    }
    if build.base:
        below = build.home / ".engines" / build.base / MARKER
        content["base"] = below.read_text(encoding="ascii") if below.is_file() else None
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def mark_finished(build: BuildSpec) -> None:
    """Say that an environment is whole: last, so that an interrupted installation has no marker."""
    (build.environment / MARKER).write_text(environment_digest(build) + "\n", encoding="ascii")


def install(
    build: BuildSpec, *, say: Say, wheels: Sequence[Path] = (), needs_gpu: bool = True
) -> Path:
    """Make the environment of a build, unless it is there already.

    Without ``wheels``, folders as ``download`` fills them, packages come from an index; without
    ``needs_gpu`` a build for CUDA is also made where it could not run.
    """
    if state(build) is InstallState.INSTALLED:
        say(f"{build.name} is installed in {build.environment}")
        return build.environment
    if build.origin:
        raise BuildError(f"{build.name} is a build of your own; run: {build.made_by}")
    require_python(build)
    if needs_gpu:
        require_gpu(build)
    with _lock_for_pip(build) as lock, plugin_to_install(build.home) as plugin:
        _require_wheels(build, lock, wheels, say)
        if build.environment.exists():
            say(f"removing what is left of another {build.name}")
            shutil.rmtree(build.environment)
        packages = _packages(build, lock, () if wheels else _index(build, say))
        _do(build, tuple(_steps(build, wheels, plugin, packages)), wheels, say)
    mark_finished(build)
    say(f"{build.name} is installed in {build.environment}")
    return build.environment


def download(build: BuildSpec, folder: Path, *, say: Say) -> None:
    """Fetch every wheel of a build, for this Python and machine; another needs no index then."""
    require_python(build)
    options = ("--only-binary", ":all:", "--dest", str(folder))
    fetch = python_command("-m", "pip", "download", *_PLAIN, *options)
    with _lock_for_pip(build) as lock:
        packages = _packages(build, lock, _index(build, say))
        _do(build, [(title, (*fetch, *what)) for title, what in packages], (), say)
    say(f"{build.name}: everything is in {folder}")


def _do(build: BuildSpec, steps: Sequence[_Step], wheels: Sequence[Path], say: Say) -> None:
    for number, (title, command) in enumerate(steps, 1):
        position = f"{number}/{len(steps)}"
        say(f"[{position}] {title}")
        began = time.monotonic()
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        with subprocess.Popen(
            command,
            env=pip.environment(wheels),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None  # noqa: S101 - a pipe was requested; for mypy
            for line in process.stdout:
                tail.append(line.rstrip())
                _echo(line.strip(), say)
        if process.returncode != 0:
            last_lines = "\n".join(tail)
            raise BuildError(
                f"{build.name}: step {position} ({title}) ended with status "
                f"{process.returncode}; its last lines:\n{last_lines}"
            )
        say(f"      {time.monotonic() - began:.0f} s")


def _require_wheels(build: BuildSpec, lock: Path, wheels: Sequence[Path], say: Say) -> None:
    """Look for everything in the folders, which takes moments; of an index only for torch."""
    if wheels:
        say(f"looking for the packages of {build.name} in {', '.join(map(str, wheels))}")
        for _, what in _packages(build, lock):
            require_wheels(build, what, wheels)
    elif build.accelerator == "cuda":
        require_wheels(build, ("--no-deps", build.torch))


def _index(build: BuildSpec, say: Say) -> tuple[str, ...]:
    """Say where else to look for torch; a lock for CUDA holds it, and PyPI has it."""
    return pip.cpu_index(say) if build.accelerator == "cpu" else ()


def _packages(build: BuildSpec, lock: Path, index: Sequence[str] = ()) -> Iterator[_Step]:
    if build.accelerator == "cpu":
        # The lock is no constraint here: a default torch pins another triton than the engine uses.
        yield build.torch, (*index, build.torch)
    yield (
        f"{build.distribution}=={build.release} and the rest of {build.lock_file.name}",
        ("--no-deps", "--require-hashes", "--requirement", str(lock)),
    )


def _steps(
    build: BuildSpec, wheels: Sequence[Path], plugin: Sequence[str], packages: Iterable[_Step]
) -> Iterator[_Step]:
    # What torch has brought along is of the lock's version, too, but its hash was not looked at.
    words = ("-m", "pip", "install", "--force-reinstall", *_PLAIN, *pip.source(wheels))
    make = python_command(*words, python=build.interpreter)
    yield "environment", python_command("-m", "venv", str(build.environment))
    for title, what in packages:
        yield title, (*make, *what)
    # The lock brings setuptools, so that building the plugin downloads nothing.
    build_plugin = ("--no-deps", "--no-build-isolation", *plugin)
    yield "hybridwatch-engine, the plugin", (*make, *build_plugin)


def _echo(line: str, say: Say) -> None:
    """Pass on the few lines of pip that show a waiting person that something moves."""
    if found := pip.BIG_DOWNLOAD.match(line):
        say(f"      downloading {found[1]} ({found[2]})")
    elif line.startswith("Installing collected packages:"):
        say(f"      unpacking {line.count(',') + 1} packages")
