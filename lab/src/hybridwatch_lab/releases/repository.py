"""The git repository of the checkout: read at a commit, and written in a folder of its own.

Whatever the person has in the working tree stays as it is, and plays no part.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hybridwatch.engines.commits import git
from hybridwatch.errors import BuildError


class Repository:
    """A git repository.

    Args:
        folder: Its working tree.

    Raises:
        BuildError: It is none, is only a part of one, or has no commit.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        top = Path(git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
        if top != folder.resolve():
            raise BuildError(f"{folder}: expected the top of a git repository, which is {top}")
        self.head = self.resolve_commit("HEAD")

    def resolve_commit(self, name: str) -> str:
        """Give the commit that a name stands for.

        Raises:
            BuildError: There is none of this name.
        """
        return git(self._folder, "rev-parse", "--verify", f"{name}^{{commit}}").strip()

    def has_branch(self, name: str) -> bool:
        """Whether there is a branch of this name."""
        return bool(git(self._folder, "branch", "--list", name).strip())

    def text_at(self, commit: str, path: Path) -> str:
        """Read a file as a commit has it.

        Raises:
            BuildError: It has none.
        """
        return git(self._folder, "show", f"{commit}:./{path.as_posix()}")

    @contextmanager
    def checked_out(self, commit: str) -> Iterator[Path]:
        """Check a commit out into a temporary folder, which is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="hybridwatch-track-") as name:
            folder = Path(name) / "checkout"
            git(self._folder, "worktree", "add", "--quiet", "--detach", str(folder), commit)
            try:
                yield folder
            finally:
                git(self._folder, "worktree", "remove", "--force", str(folder))


def commit_as(folder: Path, branch: str, paths: Sequence[Path], message: str) -> None:
    """Commit files of a checked-out folder, and give the commit a branch.

    Raises:
        BuildError: git refuses, as it does where it does not know who commits.
    """
    git(folder, "add", "--", *map(str, paths))
    git(folder, "commit", "--quiet", "--no-verify", "--message", message)
    git(folder, "branch", branch)
