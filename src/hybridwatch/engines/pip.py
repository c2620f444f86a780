"""How pip is called for an engine build, with what, and where it takes packages and wheels from.

The wheel of one commit of vLLM is in an index that has a folder for every commit. vLLM publishes
such an index (https://docs.vllm.ai/en/latest/contributing/ci/nightly_builds/): CUDA wheels for
every commit of its main branch, CPU wheels in a folder below for nightlies alone. A folder is an
index of packages as pip reads it (PEP 503).
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

import httpx
from packaging.tags import Tag, sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from hybridwatch.errors import BuildError
from hybridwatch.system.python_command import python_command, run_captured

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
    """Return options by which pip finds a torch for CPUs; none where the user has named an index.

    Nor where torch's own does not answer, of which ``say`` gets a line: pip would ask for minutes.
    """
    listed = run_captured(python_command("-m", "pip", "config", "list"), check=False)
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
    """Return pip's variables; with folders, without settings that may hide what these lack."""
    hidden = {*_ELSEWHERE, *(("PIP_FIND_LINKS",) if wheels else ())}
    found = {name: value for name, value in os.environ.items() if name not in hidden}
    return found | ({"PIP_CONFIG_FILE": os.devnull} if wheels else {})


def call(
    command: Sequence[str],
    failed: str,
    wheels: Sequence[Path] = (),
    heard: Callable[[str], None] = lambda _: None,
) -> None:
    """Run pip; ``failed`` begins the error's message, ``heard`` takes each line at once."""
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
            errors_shown = [
                line for line in errors.read().splitlines() if not line.startswith("WARNING")
            ]
            raise BuildError("\n".join([failed, *why, *errors_shown]))


def wheel(what: str, folder: Path, heard: Callable[[str], None] = lambda _: None) -> Path:
    """Fetch one wheel, by requirement or address, into a folder without another."""
    options = ("--no-deps", "--only-binary", ":all:", "--progress-bar", "off", "--dest")
    command = python_command("-m", "pip", "download", *OPTIONS, *options, str(folder), what)
    call(command, f"{what}: pip cannot have it:", heard=heard)
    (found,) = folder.glob("*.whl")
    return found


INDEX_VARIABLE: Final = "HYBRIDWATCH_WHEEL_INDEX"
INDEXES: Final[Mapping[str, str]] = {
    "cuda": "https://wheels.vllm.ai/{commit}",
    "cpu": "https://wheels.vllm.ai/{commit}/cpu",
}
"""By accelerator."""

_FIELD: Final = "{commit}"
_PACKAGE: Final = "vllm"
_MISSING: Final = {403, 404, 410}
"""An object store that may not be listed says 403 of what it does not have."""
_LIMIT_S: Final = 30.0
_COMMIT: Final = re.compile("[0-9a-f]{40}")
_NAMED: Final = re.compile(r"(?:^|\.)g([0-9a-f]{7,40})(?:\.|$)")
"""How a version says which commit it was made from: ``0.28.0.dev5+g1a2b3c4d5.cu129``."""


class NoWheelError(BuildError):
    """The index has no wheel of a commit."""


@dataclass(frozen=True, slots=True)
class CommitWheel:
    """A wheel in an index; its address has the digest behind a ``#`` where the index says one."""

    address: str
    release: str


def find_wheel(commit: str, accelerator: str, index: str = "") -> CommitWheel:
    """Find the wheel of a commit that this machine can run, in the index given, set, or vLLM's."""
    if not _COMMIT.fullmatch(commit):
        raise BuildError(f"commit {commit!r}: expected all 40 digits, as git rev-parse prints them")
    template = index or os.environ.get(INDEX_VARIABLE) or INDEXES[accelerator]
    if _FIELD not in template:
        raise BuildError(f"index {template}: expected an address with {_FIELD} in it, found none")
    page = f"{template.replace(_FIELD, commit).rstrip('/')}/{_PACKAGE}/"
    found = [one for link in _links(page, commit, accelerator) if (one := _wheel(link))]
    order = {tag: place for place, tag in enumerate(sys_tags())}
    fitting = [
        (min(order[tag] for tag in tags & order.keys()), wheel)
        for wheel, tags in found
        if tags & order.keys()
    ]
    if not fitting:
        names = ", ".join(sorted(_read_name(wheel.address) for wheel, _ in found)) or "no wheel"
        raise NoWheelError(f"{page}: expected a wheel for this machine, found {names}")
    _, best = min(fitting, key=lambda pair: pair[0])
    named = _NAMED.search(best.release.partition("+")[2])
    if named and not commit.startswith(named[1]):
        raise BuildError(
            f"{page}: expected a wheel of commit {commit[:12]}, found {_read_name(best.address)}"
        )
    return best


def _links(page: str, commit: str, accelerator: str) -> list[str]:
    try:
        answer = httpx.get(page, follow_redirects=True, timeout=_LIMIT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise BuildError(f"{page}: cannot be read: {error}") from None
    if answer.status_code in _MISSING:
        nightly = "; CPU wheels are made of nightlies alone" if accelerator == "cpu" else ""
        raise NoWheelError(
            f"{page}: expected a wheel of commit {commit[:12]}, found none (status "
            f"{answer.status_code}){nightly}"
        )
    if answer.status_code != httpx.codes.OK:
        raise BuildError(f"{page}: expected status 200, found {answer.status_code}")
    reader = _Links()
    reader.feed(answer.text)
    return [urljoin(str(answer.url), link) for link in reader.found]


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a link."""
        self.found += [value for key, value in attrs if tag == "a" and key == "href" and value]


def _wheel(address: str) -> tuple[CommitWheel, frozenset[Tag]] | None:
    try:
        name, version, _, tags = parse_wheel_filename(_read_name(address))
    except InvalidWheelFilename:
        return None
    if name.partition("-")[0] != _PACKAGE:
        return None
    return CommitWheel(address, str(version)), frozenset(tags)


def _read_name(address: str) -> str:
    return unquote(urlsplit(address).path.rpartition("/")[2])
