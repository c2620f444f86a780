"""Which git commit a folder of vLLM's code is at, and what differs from that commit.

``python -m hybridwatch_engine.revision FOLDER`` prints both as JSON.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Final

ORIGIN: Final = "hybridwatch-origin.json"
"""Beside a package that was laid over a release: the answers for the tree it was copied from."""

_LIMIT_S: Final = 60.0


def read_revision(package: Path) -> dict[str, str]:
    """Say which commit a package is at.

    Returns:
        ``revision``, a commit, and where the package differs from it ``diff_digest``, SHA-256 over
        the difference; nothing where the package is not kept in git.
    """
    noted = package.parent / ORIGIN
    if noted.is_file():
        found: dict[str, str] = json.loads(noted.read_text(encoding="utf-8"))
        return found
    # Lying somewhere below a checkout is not enough: environments do, and git does not track them.
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return {}
    revision = _git(package, "rev-parse", "HEAD")
    if revision is None:  # a first commit is still to come
        return {}
    found = {"revision": revision.decode().strip()}
    difference = _git(package, "diff", "--no-ext-diff", "--binary", "HEAD", "--", ".") or b""
    whole = hashlib.sha256(difference)
    added = _git(package, "ls-files", "-z", "--others", "--exclude-standard", "--", ".") or b""
    for name in sorted(filter(None, added.split(b"\0"))):
        whole.update(b"\0" + name + b"\0" + (package / name.decode()).read_bytes())
    if difference or added:
        found["diff_digest"] = whole.hexdigest()
    return found


def _git(folder: Path, *words: str) -> bytes | None:
    """What git answers, ``None`` where it refuses or there is no git."""
    try:
        done = subprocess.run(
            ("git", "-C", str(folder), *words),  # noqa: S607 - wherever git is installed
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(read_revision(Path(sys.argv[1]))) + "\n")
