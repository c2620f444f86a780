"""``python -m hybridwatch_engine.check``: the fixes of the installed vLLM, and its faults, as JSON.

With a folder as argument it probes the package ``vllm`` in there instead (an unpacked wheel).
"""

import base64
import hashlib
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from hybridwatch_engine.fixes.fix import Fix
from hybridwatch_engine.fixes.registry import FIXES
from hybridwatch_engine.planted import FAULTS
from hybridwatch_engine.revision import read_revision
from hybridwatch_engine.source import (
    SourceTree,
    WatchedTree,
    compute_digest,
    engine_distribution,
    installed_tree,
)

_MOST_CHANGED: Final = 100
"""Changed files that are named at most; a long-lived branch has more than anyone reads."""
_SOURCE_DIGITS: Final = 16
"""Digits of the digest over a probe's sources, as in ``engine/fixes.toml``."""


def identity() -> dict[str, Any]:
    """Name, release and digests of the installed engine, and its differences from the wheel.

    ``changed_files`` is ``None`` where the wheel lists no Python files to compare with.
    """
    distribution = engine_distribution()
    listing = distribution.read_text("RECORD") or ""
    return {
        "distribution": str(distribution.metadata["Name"]),
        "release": distribution.version,
        "wheel_digest": wheel_digest(listing),
        **_code(listing),
    }


@cache
def _code(listing: str) -> dict[str, Any]:
    """Facts on the Python files, read once: a process keeps the code that it has imported."""
    tree = installed_tree()
    hashes = tree.hashes()
    changed = changed_files(listing, hashes)
    return {
        "code_digest": compute_digest(hashes),
        "changed_files": None if changed is None else changed[:_MOST_CHANGED],
        **read_revision(tree.root),
    }


def changed_files(listing: str, hashes: Mapping[str, str]) -> list[str] | None:
    """Name the Python files that are changed, added or missing, compared with a wheel's list.

    Returns:
        Paths relative to the package; ``None`` where the list has no Python file of vLLM, as in an
        editable installation.
    """
    released = {}
    for line in listing.splitlines():
        path, _, rest = line.rpartition(",")[0].rpartition(",")
        if path.startswith("vllm/") and path.endswith(".py") and rest.startswith("sha256="):
            digest = rest.removeprefix("sha256=")
            content = base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4)).hex()
            released[path.removeprefix("vllm/")] = content
    if not released:
        return None
    every = sorted(released.keys() | hashes.keys())
    return [path for path in every if released.get(path) != hashes.get(path)]


def wheel_digest(listing: str) -> str:
    """SHA-256 over the wheel's list of its files and their hashes.

    Lines that the installer adds are left out (scripts, byte code, its own notes): they name places
    of this machine, and one wheel installed twice must have one digest.
    """
    notes = ("direct_url.json", "INSTALLER", "REQUESTED")
    lines = [
        line
        for line in sorted(listing.splitlines())
        if not line.startswith("../")
        and ".pyc," not in line
        and not line.split(",")[0].endswith(notes)
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def findings(tree: SourceTree) -> dict[str, dict[str, str]]:
    """Every probe's finding about a source tree, with a digest of the sources it read."""
    return {fix_id: _finding(fix, WatchedTree(tree.root)) for fix_id, fix in FIXES.items()}


def _finding(fix: Fix, tree: WatchedTree) -> dict[str, str]:
    found = fix.probe(tree)
    source = tree.read_digest()[:_SOURCE_DIGITS]
    return {"state": found.state, "evidence": found.evidence, "source": source}


def main(arguments: list[str]) -> int:
    """Print one JSON object."""
    if arguments:
        answer: dict[str, object] = {"fixes": findings(SourceTree(Path(arguments[0]) / "vllm"))}
    else:
        faults = {fault.id: fault.how for fault in FAULTS.values()}
        answer = {**identity(), "fixes": findings(installed_tree()), "faults": faults}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
