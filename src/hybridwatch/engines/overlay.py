"""Lays Python code of vLLM over what an installed release has: its packages and compiled parts.

The code is copied, so an edit reaches an engine by the next copy and never in the middle of a run.
Whatever else the package holds is linked to.
"""

import importlib.util
import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Mapping
from email.parser import Parser
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hybridwatch.engines.code_tree import GENERATED, CodeTree, files_below, require_syntax
from hybridwatch.engines.commits import PACKAGE
from hybridwatch.engines.other_python import Installed
from hybridwatch.errors import BuildError

ORIGIN: Final = "hybridwatch-origin.json"
"""Which commit the code is from; the plugin puts it into the engine's identity."""

_REVISION_LIMIT_S: Final = 120.0


def lay_tree(tree: CodeTree, release: str, base: Installed, python: Path, into: Path) -> None:
    """Copy a tree's code into a folder, and link what only the release has.

    ``python`` is the base's interpreter, which has the plugin. ``into`` is a new folder, which gets
    the package ``vllm``.

    Raises:
        BuildError: A file cannot be read as Python, or the tree's revision cannot be had.
    """
    package = into / "vllm"
    laid = set()
    for path in tree.files():
        same = _copy(tree.package / path, base.package / path, package / path)
        if path.suffix == ".py" and not same:
            require_syntax(f"{PACKAGE}/{path}", (tree.package / path).read_bytes())
        laid.add(path)
    kept = tree.kept_in(release) if tree.checkout else None
    for path in files_below(base.package):
        # Code that the tree lacks was taken out there, unless no tree has it.
        made = path not in kept if kept is not None else path.name == GENERATED
        if path not in laid and (path.suffix != ".py" or made):
            _link(base.package / path, package / path)
    _note_revision(tree, python, into)


def unpack_wheel(wheel: Path, base: Installed, into: Path, revision: str = "") -> Installed:
    """Unpack a wheel of vLLM into a new folder, to run with the packages of a release.

    ``revision`` is the commit that the wheel was made from; empty where it is not known.

    Raises:
        BuildError: It is no wheel of vLLM, or requires other packages than the release.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            parsed = Parser().parsestr(archive.read(metadata).decode())
            requires = tuple(parsed.get_all("Requires-Dist", []))
            if "vllm/__init__.py" not in names:
                raise BuildError(f"{wheel}: expected a wheel of vLLM, found {parsed['Name']}")
            if other := _differing(requires, base.requires):
                lines = "\n".join(f"  {line}" for line in other)
                raise BuildError(
                    f"{wheel}: refused, as it requires other packages than {base.distribution} "
                    f"{base.release}:\n{lines}"
                )
            archive.extractall(into)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise BuildError(f"{wheel}: expected a wheel of vLLM: {error}") from None
    if revision:
        _keep_revision({"revision": revision}, into)
    name, release = canonicalize_name(str(parsed["Name"])), str(parsed["Version"])
    return Installed(into / "vllm", name, release, requires, base.held, base.has_plugin)


def _copy(source: Path, released: Path, target: Path) -> bool:
    """Copy a file; of one that is as released also the byte code, which takes a minute to make.

    True for Python as it was released.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    same = (
        source.suffix == ".py"
        and released.is_file()
        and source.read_bytes() == released.read_bytes()
    )
    if not same:
        shutil.copy2(source, target)
        return False
    shutil.copy2(released, target)  # with its time, which the byte code is for
    cached = Path(importlib.util.cache_from_source(str(released)))
    for code in cached.parent.glob(f"{released.stem}.*.pyc"):
        (target.parent / code.parent.name).mkdir(exist_ok=True)
        shutil.copy2(code, target.parent / code.parent.name / code.name)
    return True


def _link(target: Path, link: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target.resolve())


def _note_revision(tree: CodeTree, python: Path, into: Path) -> None:
    """Write down which commit a tree is at, as the plugin finds it."""
    command = [str(python), "-m", "hybridwatch_engine.revision", str(tree.package)]
    try:
        done = subprocess.run(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_REVISION_LIMIT_S,
            check=True,
        )
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise BuildError(f"{tree.package}: its revision cannot be had: {error}") from None
    _keep_revision(found, into)


def _keep_revision(found: Mapping[str, str], into: Path) -> None:
    (into / ORIGIN).write_text(json.dumps(found) + "\n", encoding="utf-8")


def _differing(mine: Iterable[str], theirs: Iterable[str]) -> list[str]:
    """Name the requirements that only one side has, whatever it is built for."""
    return sorted(_plain(mine) ^ _plain(theirs))


def _plain(requires: Iterable[str]) -> set[str]:
    """Requirements without those of extras, and without marks such as ``+cpu``."""
    every = [Requirement(line) for line in requires]
    return {str(one).replace("+cpu", "") for one in every if "extra" not in str(one.marker)}
