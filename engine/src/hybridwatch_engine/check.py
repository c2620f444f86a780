"""``python -m hybridwatch_engine.check``: which fixes the vLLM of this environment has, as JSON.

Beside it, what can be planted in it.
With a folder as argument it looks at the package ``vllm`` in there instead (an unpacked wheel).
"""

import hashlib
import json
import sys
from functools import cache
from pathlib import Path

from hybridwatch_engine.fixes.registry import FIXES
from hybridwatch_engine.planted import FAULTS
from hybridwatch_engine.source import SourceTree, engine_distribution, installed_tree


def identity() -> dict[str, str]:
    """Name, release and digests of the installed engine."""
    found = engine_distribution()
    return {
        "distribution": str(found.metadata["Name"]),
        "release": found.version,
        "wheel_digest": wheel_digest(found.read_text("RECORD") or ""),
        "code_digest": _code_digest(),
    }


@cache
def _code_digest() -> str:
    """What the Python files hold, read once: a process goes on with what it has imported."""
    return installed_tree().digest()


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
    """What every probe says about a source tree."""
    found = {fix_id: fix.probe(tree) for fix_id, fix in FIXES.items()}
    return {
        fix_id: {"state": finding.state, "evidence": finding.evidence}
        for fix_id, finding in found.items()
    }


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
