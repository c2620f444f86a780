"""Resolves the harness's requirements anew and writes ``locks/harness.txt`` (``make lock``).

Reads the dependencies, all extras but ``fleet``, and the dependency group ``dev`` of
``pyproject.toml``, and the dependencies of ``lab/pyproject.toml``, lets pip resolve them without
installing anything, and adds the build backend, so that the project itself can be installed from
the lock alone. Each version gets the hashes of its files (``hybridwatch_lab.releases.hashes``).

``locks/comment.txt`` is the part of it that the job with the right to write on GitHub installs:
what the bot needs. ``refresh.py comment`` writes only that, from the versions that
``locks/harness.txt`` has.

``locks/fleet.txt`` is what the extra ``fleet`` needs beyond ``locks/harness.txt``, at whose
versions everything else stays. ``refresh.py fleet`` writes only that.

``locks/docs.txt`` is what makes a site of the pages. ``refresh.py docs`` writes only that.

``refresh.py hashes`` leaves all versions, those of engines too, and asks for the hashes anew: files
may have been added to a version, for a newer Python.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from hybridwatch.engines.install import requirements_alone
from hybridwatch_lab.releases.hashes import add_hashes
from hybridwatch_lab.releases.locks import FOLDER
from hybridwatch_lab.releases.published import list_files

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "locks" / "harness.txt"

HEADER = """\
# Everything in the harness's environment, hybridwatch itself left out. Written by `make lock`.
# Installed by the Makefile: pip install --no-deps --require-hashes -r locks/harness.txt
#                            pip install --no-deps --no-build-isolation -e .
"""

COMMENT = ROOT / "locks" / "comment.txt"

COMMENT_HEADER = """\
# What the job that comments on GitHub installs, at the versions of harness.txt.
# Written by `make lock`. Installed by `make bot`, which takes wheels only:
#   pip install --no-deps --require-hashes --only-binary :all: -r locks/comment.txt
"""

FLEET = ROOT / "locks" / "fleet.txt"

FLEET_EXTRA = "fleet"

FLEET_HEADER = """\
# What the extra fleet needs beyond harness.txt. Written by `make lock`. Installed by `make fleet`:
#   pip install --no-deps --require-hashes -r locks/fleet.txt
"""

DOCS = ROOT / "locks" / "docs.txt"

DOCS_HEADER = """\
# What makes a site of the pages. Written by `make lock`. Installed by `make docs`:
#   pip install --no-deps --require-hashes -r locks/docs.txt
"""

ask = cache(list_files)
"""Locks have much in common."""


def requirements() -> list[str]:
    """Return everything that is asked for: to run, to measure, by the lab, to build and to test."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))
    project: dict[str, Any] = declared["project"]
    extras = {**project["optional-dependencies"], FLEET_EXTRA: []}
    return [
        *project["dependencies"],
        *(line for extra in extras.values() for line in extra),
        *(line for line in lab["project"]["dependencies"] if not line.startswith("hybridwatch")),
        *declared["dependency-groups"]["dev"],
        *declared["build-system"]["requires"],
    ]


def needed_to_comment() -> list[str]:
    """Return what the bot needs, and the build backend, as pyproject.toml asks for it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project: dict[str, Any] = declared["project"]
    return [
        *project["dependencies"],
        *project["optional-dependencies"]["github"],
        *declared["build-system"]["requires"],
    ]


def needed_for_a_fleet() -> list[str]:
    """Return what the extra ``fleet`` asks for."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines: list[str] = declared["project"]["optional-dependencies"][FLEET_EXTRA]
    return lines


def needed_for_docs() -> list[str]:
    """Return what makes a site of the pages."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines: list[str] = declared["dependency-groups"]["docs"]
    return lines


def resolve(wanted: list[str], *options: str) -> list[dict[str, Any]]:
    """Return pip's report of everything that it would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ["--quiet", "--dry-run", "--ignore-installed", "--report", str(report), *options]
        subprocess.run([sys.executable, "-P", "-m", "pip", "install", *words, *wanted], check=True)
        found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
        return found


def pin(item: dict[str, Any]) -> str:
    """Return ``name==version`` of one item of a report."""
    return f"{item['metadata']['name']}=={item['metadata']['version']}"


def in_order(lines: Iterable[str]) -> list[str]:
    """Sort as the lock does."""
    return sorted(lines, key=lambda line: line.lower().replace("_", "-"))


def resolve_as_locked(wanted: list[str]) -> list[str]:
    """Return what requirements need, with all that is in ``harness.txt`` at its version."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        # Of a constraint with hashes pip takes that everything else needs hashes, too.
        file.write(requirements_alone(LOCK.read_text(encoding="utf-8")))
        file.flush()
        return in_order(map(pin, resolve(wanted, "--constraint", file.name)))


def beyond_the_lock(wanted: list[str]) -> list[str]:
    """Return what requirements need beyond ``harness.txt``."""
    locked = set(requirements_alone(LOCK.read_text(encoding="utf-8")).splitlines())
    return [line for line in resolve_as_locked(wanted) if line not in locked]


def write(lock: Path, header: str, lines: list[str]) -> None:
    """Write one lock with its hashes, and say so."""
    lock.write_text(add_hashes(header + "\n".join(lines) + "\n", ask=ask), encoding="utf-8")
    sys.stdout.write(f"{lock.relative_to(ROOT)}: {len(lines)} requirements\n")


def hash_anew() -> None:
    """Write all locks at their versions with the hashes that the index says now."""
    engines = sorted((ROOT / FOLDER).glob("*.txt"))
    for lock in (LOCK, FLEET, COMMENT, DOCS, *engines):
        accelerator = lock.stem.partition("-")[0] if lock in engines else ""
        old = lock.read_text(encoding="utf-8")
        new = add_hashes(old, accelerator, ask)
        lock.write_text(new, encoding="utf-8")
        told = "as it was" if new == old else "other hashes"
        sys.stdout.write(f"{lock.relative_to(ROOT)}: {told}\n")


def main() -> None:
    """Write all locks, or only the one that is named."""
    named = sys.argv[1:]
    if named == ["hashes"]:
        hash_anew()
    if not named:
        write(LOCK, HEADER, in_order(map(pin, resolve(requirements()))))
    if named in ([], ["fleet"]):
        write(FLEET, FLEET_HEADER, beyond_the_lock(needed_for_a_fleet()))
    if named in ([], ["comment"]):
        write(COMMENT, COMMENT_HEADER, resolve_as_locked(needed_to_comment()))
    if named in ([], ["docs"]):
        write(DOCS, DOCS_HEADER, resolve_as_locked(needed_for_docs()))


if __name__ == "__main__":
    main()
