"""Finds the wheel of one commit of vLLM, in an index that has a folder for every commit.

vLLM publishes such an index (https://docs.vllm.ai/en/latest/contributing/ci/nightly_builds/): CUDA
wheels for every commit of its main branch, CPU wheels in a folder below for nightlies alone. A
folder is an index of packages as pip reads it (PEP 503).
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

import httpx
from packaging.tags import Tag, sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from hybridwatch.errors import BuildError

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
    """A wheel in an index.

    Attributes:
        address: Of the file, with its digest behind a ``#`` where the index says one.
    """

    address: str
    release: str


def find_wheel(commit: str, accelerator: str, index: str = "") -> CommitWheel:
    """Find the wheel of a commit that this machine can run.

    ``commit`` has all 40 digits. ``index`` is the address of the index with ``{commit}`` in it;
    when empty that of ``HYBRIDWATCH_WHEEL_INDEX``, or else vLLM's own for the accelerator.

    Raises:
        NoWheelError: The index has none of this commit.
        BuildError: The index cannot be read, or has only wheels of another commit or for other
            machines.
    """
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
    """What the links of a page lead to."""

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
