"""What looks like an environment and starts an interpreter that lies elsewhere."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hybridwatch.engines.builds import BuildSpec
from hybridwatch.errors import BuildError

_ENGINES: Final = "engines"


def unspaced_interpreter(build: BuildSpec, work: Path) -> Path:
    """Name the interpreter of a build so that no folder of its environment has white space in it.

    An engine compiles while it works. torch names its own folders to the compiler without quotes,
    and vLLM its libraries to the loader: in a checkout ``my work`` an engine would come up, and end
    at the first request for logprobs. Python finds the packages of an environment by the name that
    it is started with, a link's too.

    Args:
        build: Whose.
        work: A folder for the link, as long as the engine lives; none is made without need.

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
    beside the name it was started by.

    Args:
        folder: The environment.
        python: The interpreter, by the name it is to be started with.
        packages: Folders whose packages come before the interpreter's own, also in the processes
            that it starts.
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
