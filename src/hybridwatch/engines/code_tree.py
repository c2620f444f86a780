"""Python code of vLLM in a folder: a checkout, or a copy of an installed package."""

import ast
import filecmp
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.engines.git import git
from hybridwatch.errors import BuildError

COMPILED: Final = (".so", ".pyd", ".a", ".o")
GENERATED: Final = "_version.py"
"""Python that no checkout keeps and every installed package has."""

_CACHES: Final = "__pycache__"
NATIVE: Final = ("csrc", "cmake", "rust", "CMakeLists.txt")
"""What the compiled parts are made from, below the top of a checkout."""
_VERSION: Final = re.compile(r"""__version__ = (?:version = )?['"]([^'"]+)['"]""")


@dataclass(frozen=True, slots=True)
class CodeTree:
    """Python code of vLLM.

    Attributes:
        checkout: The top of its git checkout, if that also keeps what the compiled parts are made
            from; ``None`` for a copy of a package, also where it is kept in git.
    """

    package: Path
    checkout: Path | None

    @property
    def version(self) -> str:
        """The release that a copy says it is; empty where it says none."""
        file = self.package / GENERATED
        found = _VERSION.search(file.read_text(encoding="utf-8")) if file.is_file() else None
        return found[1] if found else ""

    def files(self) -> Iterator[Path]:
        """Yield the files of the package, relative to it, without caches and compiled ones."""
        if self.checkout is None:
            found = files_below(self.package)
        else:
            listed = git(self.package, "ls-files", "-z", "-co", "--exclude-standard", "--", ".")
            found = (Path(name) for name in sorted(set(listed.split("\0"))) if name)
        for path in found:
            if path.suffix not in COMPILED and (self.package / path).is_file():
                yield path

    def has_release(self, release: str) -> bool:
        """Whether the checkout has the tag of a release."""
        return self.checkout is not None and bool(
            git(self.checkout, "tag", "--list", f"v{release}").strip()
        )

    def distance(self, release: str) -> int:
        """Count the commits that are on one side only, the tree's or the release's."""
        sides = f"v{release}...HEAD"
        return int(git(self.package, "rev-list", "--count", sides))

    def kept_in(self, release: str) -> frozenset[Path]:
        """Name the files that a release's tag has of the package: others are made by its build."""
        # Relative to the folder that git is called in, and only what is below it.
        listed = git(self.package, "ls-tree", "-rz", "--name-only", f"v{release}", "--", ".")
        return frozenset(Path(name) for name in listed.split("\0") if name)

    def native_changes(self, release: str, accelerator: str, released: Path) -> list[str]:
        """Name what the release's compiled parts and packages do not fit.

        The requirements of ``accelerator`` count; ``released`` is the release's installed package.
        """
        if self.checkout is None:
            return sorted(_other_compiled(self.package, released))
        requirements = [f"requirements/{name}.txt" for name in ("common", accelerator)]
        known = git(
            self.checkout, "diff", "--name-only", f"v{release}", "--", *NATIVE, *requirements
        )
        added = git(self.checkout, "ls-files", "-o", "--exclude-standard", "--", *NATIVE)
        return sorted({*known.splitlines(), *added.splitlines()})


def code_tree(folder: Path) -> CodeTree:
    """Find vLLM's code in a folder: a checkout, a folder of packages, or the package itself."""
    inner = folder / "vllm"
    package = (inner if (inner / "__init__.py").is_file() else folder).resolve()
    if not (package / "__init__.py").is_file() or not (package / "v1").is_dir():
        raise BuildError(
            f"{folder}: expected a checkout of vLLM or a copy of its package, "
            "found no vllm/__init__.py with a folder v1 beside it"
        )
    try:
        top = Path(git(package, "rev-parse", "--show-toplevel").strip())
        kept = git(top, "ls-files", "--", "csrc", "CMakeLists.txt")
        own = git(package, "ls-files", "--", "__init__.py")
    except BuildError:
        return CodeTree(package, None)
    return CodeTree(package, top if kept and own else None)


def require_syntax(path: str, code: str | bytes) -> None:
    """Refuse code that is no Python in UTF-8; the message has the path, and the line if known."""
    try:
        ast.parse(code if isinstance(code, str) else code.decode())
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}:{line}" if line else path
        raise BuildError(f"{place}: Python cannot read it: {error}") from None


def files_below(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder, relative to it, without Python's caches."""
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if _CACHES not in relative.parts and path.is_file():
            yield relative


def _other_compiled(package: Path, released: Path) -> Iterator[str]:
    """Name compiled files of a copy that the release has not, or has otherwise."""
    for path in files_below(package):
        if path.suffix not in COMPILED:
            continue
        mine, theirs = package / path, released / path
        there = theirs.is_file()
        if not there or not (mine.samefile(theirs) or filecmp.cmp(mine, theirs, shallow=False)):
            yield str(path)
