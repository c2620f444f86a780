"""What looks like an environment and starts an interpreter that lies elsewhere."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path


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
    script = folder / "bin" / "python"
    script.write_text(f'#!/bin/sh\n{sees}exec {shlex.quote(str(python))} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
