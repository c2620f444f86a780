"""Finishing touches on the files of a model directory."""

import json
from pathlib import Path


def edit_json(path: Path, changes: dict[str, object]) -> None:
    """Change top-level entries of a JSON file; None takes an entry out."""
    entries = json.loads(path.read_text(encoding="utf-8")) | changes
    kept = {key: entry for key, entry in entries.items() if key not in changes or entry is not None}
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def make_readable(directory: Path) -> None:
    """Let everybody read the files; weights are written for their owner alone."""
    for path in directory.glob("*.*"):
        path.chmod(0o644)
