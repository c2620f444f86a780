"""Resolves the harness's requirements anew and writes ``locks/harness.txt`` (``make lock``).

Reads the dependencies, all extras and the dependency group ``dev`` of ``pyproject.toml``, lets pip
resolve them without installing anything, and adds the build backend, so that the project itself
can be installed from the lock alone. Standard library only.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "locks" / "harness.txt"

HEADER = """\
# Everything in the harness's environment, hybridwatch itself left out. Written by `make lock`.
# Installed by the Makefile: pip install --no-deps -r locks/harness.txt
#                            pip install --no-deps --no-build-isolation -e .
"""


def requirements() -> list[str]:
    """Return everything that pyproject.toml asks for: to run, to measure, to build and to test."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project: dict[str, Any] = declared["project"]
    extras = [line for extra in project["optional-dependencies"].values() for line in extra]
    return [
        *project["dependencies"],
        *extras,
        *declared["dependency-groups"]["dev"],
        *declared["build-system"]["requires"],
    ]


def resolve(wanted: list[str]) -> list[str]:
    """Return ``name==version`` of everything that pip would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ["--quiet", "--dry-run", "--ignore-installed", "--report", str(report)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, *wanted], check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    names = [f"{item['metadata']['name']}=={item['metadata']['version']}" for item in found]
    return sorted(names, key=lambda line: line.lower().replace("_", "-"))


if __name__ == "__main__":
    lines = resolve(requirements())
    LOCK.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write(f"{LOCK.relative_to(ROOT)}: {len(lines)} requirements\n")
