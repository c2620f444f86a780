"""What a search can measure: a build that is there, or one that is made when its turn comes.

Such a one is a commit, or one build's code with some files of another's.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hybridwatch.engines.builds import BuildSpec
from hybridwatch.engines.code_tree import COMPILED, files_below
from hybridwatch.engines.commits import Commit
from hybridwatch.engines.other_python import look_at


def changed_files(first: BuildSpec, last: BuildSpec) -> tuple[Path, ...]:
    """List the files of the package in which two builds differ, compiled ones left out."""
    old, new = (look_at(build.interpreter).package for build in (first, last))
    paths = {path for package in (old, new) for path in files_below(package)}
    return tuple(
        path
        for path in sorted(paths)
        if path.suffix not in COMPILED and not _is_same(old / path, new / path)
    )


@contextmanager
def mixture(first: BuildSpec, last: BuildSpec, paths: Sequence[Path]) -> Iterator[Path]:
    """Lay out the package of a build with some files as another has them.

    A file that ``last`` lacks is left out; ``paths`` are relative to the package.
    """
    old, new = (look_at(build.interpreter).package for build in (first, last))
    with tempfile.TemporaryDirectory(prefix="hybridwatch-files-") as folder:
        package = Path(folder) / "vllm"
        for path in files_below(old):
            if path.suffix not in COMPILED:
                _take(old / path, package / path)
        for path in paths:
            (package / path).unlink(missing_ok=True)
            if (new / path).is_file():
                _take(new / path, package / path)
        yield Path(folder)


def _is_same(one: Path, other: Path) -> bool:
    if not (one.is_file() and other.is_file()):
        return False
    return one.samefile(other) or one.read_bytes() == other.read_bytes()


def _take(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One position of a search.

    Attributes:
        key: What it is, the same in every call: a build, a commit.
        title: How it is called in what a person reads.
        make: Makes it, and gives the label of its build; raises ``BuildError`` if it cannot be had.
        weight: How likely it is to be the change, against the others; for times.
        commit: Of a clone, where it is one.
    """

    key: str
    title: str
    make: Callable[[], str]
    weight: float = 1.0
    commit: Commit | None = None


@dataclass(frozen=True, slots=True)
class CandidateList:
    """Candidates in order, the ends included.

    Attributes:
        name: What they are: ``releases``, ``commits``, ``files`` or ``builds``.
        entries: Two or more; the earlier end first.
    """

    name: str
    entries: tuple[Candidate, ...]

    @property
    def ends(self) -> tuple[Candidate, Candidate]:
        """The earlier and the later end."""
        return self.entries[0], self.entries[-1]

    @property
    def last(self) -> int:
        """Position of the later end."""
        return len(self.entries) - 1
