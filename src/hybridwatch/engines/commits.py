"""Reads a clone of vLLM by git: its commits, and the files of one of them."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.errors import BuildError

_LIMIT_S: Final = 120.0


def git(folder: Path, *words: str) -> str:
    """Call git in a folder, and return what it prints."""
    command = ("git", "-C", str(folder), *words)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise BuildError(f"{folder}: git {words[0]}: {error.stderr.strip()}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{folder}: git {words[0]}: {error}") from None
    return done.stdout


PACKAGE: Final = "vllm"
NATIVE: Final = ("csrc", "cmake", "rust", "CMakeLists.txt")
"""What the compiled parts are made from, below the top of a checkout."""
_CODE: Final = (PACKAGE, *NATIVE, "requirements")
"""Below the top of a checkout: changes elsewhere reach no engine."""
_PULL_REQUEST: Final = re.compile(r"\(#(\d+)\)\s*$")
_FORMAT: Final = "%x01%H%x00%an%x00%s%x00"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit; ``paths`` are files of the engine that it changes, from the checkout's top."""

    sha: str
    author: str
    title: str
    paths: tuple[str, ...]

    @property
    def pull_request(self) -> int | None:
        """The number at the end of the title, as GitHub writes it when it squashes."""
        found = _PULL_REQUEST.search(self.title)
        return int(found[1]) if found else None


def find_sha(repo: Path, name: str) -> str:
    """Give the full name of a commit, tag or branch of a clone."""
    try:
        found = git(
            repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
    except BuildError as error:
        if not git(repo, "rev-parse", "--git-dir"):
            raise
        raise BuildError(
            f"{repo}: expected a commit, tag or branch, found none {name!r}"
        ) from error
    return found.strip()


def common_ancestor(repo: Path, one: str, other: str) -> str:
    """Give the last commit that two commits have in common; one of them if the other follows it."""
    return git(repo, "merge-base", one, other).strip()


def commits_between(repo: Path, good: str, bad: str) -> tuple[Commit, ...]:
    """List first parents after ``good`` up to ``bad`` that change the engine, in their order."""
    base = common_ancestor(repo, good, bad)
    if base != good:
        raise BuildError(
            f"{repo}: expected {good[:12]} to be an ancestor of {bad[:12]}; they part at "
            f"{base[:12]}, from which the way to either can be searched"
        )
    log = git(
        *(repo, "log", "--first-parent", "--reverse", "--no-renames", "--name-only"),
        *(f"--format={_FORMAT}", f"{good}..{bad}", "--", *(f":(top){path}" for path in _CODE)),
    )
    return tuple(_commit(entry) for entry in log.split("\x01")[1:])


def python_changes(repo: Path, good: str, bad: str) -> dict[str, str]:
    """Give the package's Python files that differ between two commits, as the later has them."""
    options = ("--name-only", "-z", "--no-renames", "--diff-filter=d")
    names = git(repo, "diff", *options, good, bad, "--", f":(top){PACKAGE}/*.py").split("\0")
    return {name: git(repo, "show", f"{bad}:{name}") for name in names if name}


@contextmanager
def commit_tree(repo: Path, commit: str) -> Iterator[Path]:
    """Lay a commit out for a while, as a clone that shares objects: git can be asked there, too."""
    sha = find_sha(repo, commit)
    top = git(repo, "rev-parse", "--show-toplevel").strip()
    with tempfile.TemporaryDirectory(prefix="hybridwatch-commit-") as folder:
        tree = Path(folder) / "tree"
        # No template: no hooks run here.
        git(repo, "clone", "--quiet", "--shared", "--no-checkout", "--template=", top, str(tree))
        git(tree, "checkout", "--quiet", "--detach", sha)
        yield tree


def _commit(entry: str) -> Commit:
    sha, author, title, rest = entry.split("\0", maxsplit=3)
    return Commit(sha, author, title, tuple(line for line in rest.splitlines() if line))
