"""Asks the code of releases which fixes it has: ``python locks/fixes.py RELEASE...``.

Writes ``engine/releases.json``: by release, by fix, what the plugin's probe says of the wheel
(``hybridwatch_engine.check``). Releases that are not named stay as they are. The builds called
``-patched`` and ``-reverted`` in ``engine/builds.toml`` follow from it, and
``tests/unit/engine/test_variants.py`` holds them to it. Due whenever a release or a fix is added.
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
RELEASES = ROOT / "engine" / "releases.json"


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


if __name__ == "__main__":
    known = json.loads(RELEASES.read_text(encoding="utf-8")) if RELEASES.exists() else {}
    known |= {release: fixes_of(release) for release in sys.argv[1:]}
    ordered = sorted(known.items(), key=lambda item: [int(part) for part in item[0].split(".")])
    RELEASES.write_text(json.dumps(dict(ordered), indent=2) + "\n", encoding="utf-8")
