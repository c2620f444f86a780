"""Resolves the harness's requirements anew and writes ``locks/harness.txt`` (``make lock``).

Reads the dependencies, all extras but ``fleet``, and the dependency group ``dev`` of
``pyproject.toml``, and the dependencies of ``lab/pyproject.toml``, lets pip resolve them without
installing anything, and adds the build backend, so that the project itself can be installed from
the lock alone. Standard library only.

``locks/comment.txt`` is the part of it that the job with the right to write on GitHub installs:
what the bot needs, each file by its hash. ``refresh.py comment`` writes only that, from the
versions that ``locks/harness.txt`` has.

``locks/fleet.txt`` is what the extra ``fleet`` needs beyond ``locks/harness.txt``, at whose
versions everything else stays. ``refresh.py fleet`` writes only that.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "locks" / "harness.txt"

HEADER = """\
# Everything in the harness's environment, hybridwatch itself left out. Written by `make lock`.
# Installed by the Makefile: pip install --no-deps -r locks/harness.txt
#                            pip install --no-deps --no-build-isolation -e .
"""

COMMENT = ROOT / "locks" / "comment.txt"

COMMENT_HEADER = """\
# What the job that comments on GitHub installs, at the versions of harness.txt, each file by its
# hash. Written by `make lock`. Installed by `make bot`, which takes wheels only:
#   pip install --no-deps --require-hashes --only-binary :all: -r locks/comment.txt
"""

FLEET = ROOT / "locks" / "fleet.txt"

FLEET_EXTRA = "fleet"

FLEET_HEADER = """\
# What the extra fleet needs beyond harness.txt. Written by `make lock`. Installed by `make fleet`:
#   pip install --no-deps -r locks/fleet.txt
"""

PYTHONS = ("3.11", "3.12", "3.13")
"""A runner's Python is whichever its image has."""

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64")


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


def hashed(wanted: list[str]) -> list[str]:
    """Return requirements with the hashes of the wheels for every Python and platform above."""
    hashes: dict[str, set[str]] = {}
    for python in PYTHONS:
        for platform in PLATFORMS:
            options = ["--only-binary", ":all:", "--python-version", python, "--target", "nowhere"]
            options += ["--platform", platform, "--platform", platform.replace("2_28", "2_17")]
            for item in resolve(wanted, *options, "--constraint", str(LOCK)):
                archive = item["download_info"]["archive_info"]
                hashes.setdefault(pin(item), set()).add(archive["hashes"]["sha256"])
    return [
        " \\\n    ".join([line, *(f"--hash=sha256:{each}" for each in sorted(hashes[line]))])
        for line in in_order(hashes)
    ]


def beyond_the_lock(wanted: list[str]) -> list[str]:
    """Return what requirements need beyond ``harness.txt``, with all in that at its version."""
    locked = set(LOCK.read_text(encoding="utf-8").splitlines())
    found = in_order(map(pin, resolve(wanted, "--constraint", str(LOCK))))
    return [line for line in found if line not in locked]


def write(lock: Path, header: str, lines: list[str]) -> None:
    """Write one lock, and say so."""
    lock.write_text(header + "\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write(f"{lock.relative_to(ROOT)}: {len(lines)} requirements\n")


def main() -> None:
    """Write all locks, or only the one that is named."""
    named = sys.argv[1:]
    if not named:
        write(LOCK, HEADER, in_order(map(pin, resolve(requirements()))))
    if named in ([], ["fleet"]):
        write(FLEET, FLEET_HEADER, beyond_the_lock(needed_for_a_fleet()))
    if named in ([], ["comment"]):
        write(COMMENT, COMMENT_HEADER, hashed(needed_to_comment()))


if __name__ == "__main__":
    main()
