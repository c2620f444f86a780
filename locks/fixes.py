"""Asks the code of releases which fixes it has: ``python locks/fixes.py RELEASE...``.

Writes the ``releases`` of each fix in ``engine/fixes.toml``: what the plugin's probe says of the
wheel (``hybridwatch_engine.check``). Releases that are not named stay as they are. What the builds
called ``-patched`` and ``-reverted`` in ``engine/builds.toml`` switch follows from it. Due whenever
a release or a fix is added.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIXES = ROOT / "engine" / "fixes.toml"


def fixes_of(release: str) -> dict[str, str]:
    """Return the state of each fix in a release, by the Python files of its wheel."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        where = ["--no-deps", "--dest", name]
        subprocess.run([*pip, "download", *where, f"vllm=={release}"], check=True)
        (wheel,) = folder.glob("vllm-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [n for n in archive.namelist() if n.endswith(".py")])
        told = subprocess.run(
            [sys.executable, "-m", "hybridwatch_engine.check", name],
            env={**os.environ, "PYTHONPATH": str(ROOT / "engine" / "src")},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    return {fix: found["state"] for fix, found in json.loads(told)["fixes"].items()}


def written(text: str, release: str, states: Mapping[str, str]) -> str:
    """Return the file with what a release has of each fix; nothing else of it changes."""
    for fix_id, entry in tomllib.loads(text)["fix"].items():
        known = {**entry["releases"], release: states[fix_id]}
        ordered = sorted(known.items(), key=lambda item: [int(n) for n in item[0].split(".")])
        line = ", ".join(f'"{name}" = "{state}"' for name, state in ordered)
        head, table = text.split(f"\n[fix.{fix_id}]\n")
        table = re.sub(r"^releases = .*$", f"releases = {{ {line} }}", table, count=1, flags=re.M)
        text = f"{head}\n[fix.{fix_id}]\n{table}"
    return text


if __name__ == "__main__":
    for release in sys.argv[1:]:
        found = fixes_of(release)
        FIXES.write_text(written(FIXES.read_text("utf-8"), release, found), encoding="utf-8")
