"""The entry of a release in ``engine/builds.toml``, made from that of the newest build.

The file is edited as text: its comments and its order are a person's.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.version import Version

from hybridwatch.errors import BuildError

FILE: Final = Path("engine") / "builds.toml"
_HEADER: Final = re.compile(r"""^\[builds\."([^"]+)".*\]$""")


@dataclass(frozen=True, slots=True)
class NewestBuild:
    """The build of the newest release for an accelerator.

    Attributes:
        name: ``cpu-`` or ``cuda-`` and the release.
        torch: The requirement that is installed first.
    """

    name: str
    release: str
    torch: str


def newest_build(text: str, accelerator: str) -> NewestBuild:
    """Find the build of the newest release in a file."""
    builds = tomllib.loads(text)["builds"]
    whole = {name: {**builds.get(entry.get("like"), {}), **entry} for name, entry in builds.items()}
    found = [
        NewestBuild(name, entry["release"], entry["torch"])
        for name, entry in whole.items()
        if name == f"{accelerator}-{entry['release']}"
    ]
    if not found:
        raise BuildError(f"{FILE}: expected a build called {accelerator}-RELEASE, found none")
    return max(found, key=lambda one: Version(one.release))


def with_build(text: str, newest: NewestBuild, release: str, torch: str) -> str:
    """Add a release behind the newest build: its tables, and those of its variants, once more.

    Args:
        text: The file.
        newest: Its newest build.
        release: The version that takes the place of the newest build's.
        torch: The requirement that is installed first; written where it differs.
    """
    lines = text.splitlines()
    spans = [span for name, *span in _tables(lines) if _belongs(name, newest.name)]
    tables = "\n\n".join("\n".join(lines[start:end]) for start, end in spans)
    version = re.compile(rf"(?<![\d.]){re.escape(newest.release)}(?!\.?\d)")
    copied = [
        line if line.lstrip().startswith("#") else version.sub(release, line)
        for line in tables.split("\n")
    ]
    if torch != newest.torch:
        copied = [line for line in copied if not line.startswith("torch = ")]
        at = next(n for n, line in enumerate(copied) if line.startswith("lock = "))
        copied.insert(at, f'torch = "{torch}"')
    last = spans[-1][1]
    return "\n".join([*lines[:last], "", *copied, *lines[last:], ""])


def _tables(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the tables with the build that each is of, its first line and the one behind its last.

    Blank lines and comments before the next header belong to what comes there.
    """
    heads = [(n, found[1]) for n, line in enumerate(lines) if (found := _HEADER.match(line))]
    for (start, name), (end, _) in zip(heads, [*heads[1:], (len(lines), "")], strict=True):
        while not lines[end - 1].strip() or lines[end - 1].startswith("#"):
            end -= 1
        yield name, start, end


def _belongs(name: str, build: str) -> bool:
    return name == build or name.startswith(f"{build}-")
