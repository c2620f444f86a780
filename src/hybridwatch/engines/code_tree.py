"""vLLM's Python code: commits of a clone, which is only read, and what a folder has.

It is copied over an installed release, so that no edit reaches an engine in the middle of a run.
"""

import ast
import filecmp
import importlib.util
import json
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hybridwatch.engines.other_python import Installed
from hybridwatch.errors import BuildError
from hybridwatch.system.python_command import python_command, run_captured

_LIMIT_S: Final = 120.0


def git(folder: Path, *words: str) -> str:
    """Call git in a folder, and return what it prints."""
    try:
        return run_captured(("git", "-C", str(folder), *words), _LIMIT_S).stdout
    except subprocess.CalledProcessError as error:
        raise BuildError(f"{folder}: git {words[0]}: {error.stderr.strip()}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{folder}: git {words[0]}: {error}") from None


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
    """Lay a commit out for a while, as a clone that shares objects: git works there, too."""
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


COMPILED: Final = (".so", ".pyd", ".a", ".o")
GENERATED: Final = "_version.py"
"""Python that no checkout keeps and every installed package has."""

_CACHES: Final = "__pycache__"
_VERSION: Final = re.compile(r"""__version__ = (?:version = )?['"]([^'"]+)['"]""")


@dataclass(frozen=True, slots=True)
class CodeTree:
    """Python code of vLLM.

    ``checkout`` is the top of its git checkout, if that also keeps what the compiled parts are made
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
        """Name what the release's compiled parts and packages for ``accelerator`` do not fit."""
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
            "found no vllm/__init__.py with a folder v1 next to it"
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
    for path in files_below(package):
        if path.suffix not in COMPILED:
            continue
        mine, theirs = package / path, released / path
        there = theirs.is_file()
        if not there or not (mine.samefile(theirs) or filecmp.cmp(mine, theirs, shallow=False)):
            yield str(path)


ORIGIN: Final = "hybridwatch-origin.json"
"""Which commit the code is from; the plugin puts it into the engine's identity."""


def lay_tree(tree: CodeTree, release: str, base: Installed, python: Path, into: Path) -> None:
    """Copy a tree into a new folder ``into/vllm``, and link what the release at ``python`` has."""
    package = into / "vllm"
    laid = set()
    for path in tree.files():
        same = _copy(tree.package / path, base.package / path, package / path)
        if path.suffix == ".py" and not same:
            require_syntax(f"{PACKAGE}/{path}", (tree.package / path).read_bytes())
        laid.add(path)
    kept = tree.kept_in(release) if tree.checkout else None
    for path in files_below(base.package):
        # Code that the tree lacks was taken out there, unless no tree has it.
        made = path not in kept if kept is not None else path.name == GENERATED
        if path not in laid and (path.suffix != ".py" or made):
            (package / path).parent.mkdir(parents=True, exist_ok=True)
            (package / path).symlink_to((base.package / path).resolve())
    _note_revision(tree, python, into)


def unpack_wheel(wheel: Path, base: Installed, into: Path, revision: str = "") -> Installed:
    """Unpack a wheel into a new folder, over a release's packages; its commit may be unknown."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            parsed = Parser().parsestr(archive.read(metadata).decode())
            requires = tuple(parsed.get_all("Requires-Dist", []))
            if "vllm/__init__.py" not in names:
                raise BuildError(f"{wheel}: expected a wheel of vLLM, found {parsed['Name']}")
            if other := sorted(_plain(requires) ^ _plain(base.requires)):
                lines = "\n".join(f"  {line}" for line in other)
                raise BuildError(
                    f"{wheel}: refused, as it requires other packages than {base.distribution} "
                    f"{base.release}:\n{lines}"
                )
            archive.extractall(into)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise BuildError(f"{wheel}: expected a wheel of vLLM: {error}") from None
    if revision:
        _keep_revision({"revision": revision}, into)
    name, release = canonicalize_name(str(parsed["Name"])), str(parsed["Version"])
    return Installed(into / "vllm", name, release, requires, base.held, base.has_plugin)


def _copy(source: Path, released: Path, target: Path) -> bool:
    """Copy a file; True for Python as released, whose byte code, a minute's work, comes along."""
    target.parent.mkdir(parents=True, exist_ok=True)
    same = (
        source.suffix == ".py"
        and released.is_file()
        and source.read_bytes() == released.read_bytes()
    )
    if not same:
        shutil.copy2(source, target)
        return False
    shutil.copy2(released, target)  # with its time, which the byte code is for
    cached = Path(importlib.util.cache_from_source(str(released)))
    for code in cached.parent.glob(f"{released.stem}.*.pyc"):
        (target.parent / code.parent.name).mkdir(exist_ok=True)
        shutil.copy2(code, target.parent / code.parent.name / code.name)
    return True


def _note_revision(tree: CodeTree, python: Path, into: Path) -> None:
    words = ("-m", "hybridwatch_engine.revision", str(tree.package))
    try:
        done = run_captured(python_command(*words, python=python), _LIMIT_S, cwd="/")
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise BuildError(f"{tree.package}: its revision cannot be had: {error}") from None
    _keep_revision(found, into)


def _keep_revision(found: Mapping[str, str], into: Path) -> None:
    (into / ORIGIN).write_text(json.dumps(found) + "\n", encoding="utf-8")


def _plain(requires: Iterable[str]) -> set[str]:
    """Requirements without those of extras, and without marks such as ``+cpu``."""
    every = [Requirement(line) for line in requires]
    return {str(one).replace("+cpu", "") for one in every if "extra" not in str(one.marker)}
