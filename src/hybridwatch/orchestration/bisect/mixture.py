"""One build's code with some files of another's: which of them makes the difference."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hybridwatch.engines.builds import BuildSpec
from hybridwatch.engines.code_tree import COMPILED, files_below
from hybridwatch.engines.installed import look_at


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

    Args:
        first: The build.
        last: The other one; a file that it lacks is left out.
        paths: Which files, relative to the package.
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
