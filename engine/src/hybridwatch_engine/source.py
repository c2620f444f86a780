"""Reading the engine's code without running it.

Probes look at the code and not at the version, because development builds, forks and backports
mix fixes. They read files, so they also work on an unpacked wheel that cannot be imported here.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Mapping
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


class SourceTree:
    """The Python files of one vLLM package."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def module(self, path: str) -> ast.Module | None:
        """Parse one file, ``None`` when the release does not have it."""
        return self._module(path)

    def function(self, path: str, name: str) -> FunctionNode | None:
        """Find ``Class.method`` or ``function`` in a file, ``None`` when it is not there."""
        module = self._module(path)
        if module is None:
            return None
        body: list[ast.stmt] = module.body
        *classes, function = name.split(".")
        for wanted in classes:
            found = [n for n in body if isinstance(n, ast.ClassDef) and n.name == wanted]
            if not found:
                return None
            body = found[0].body
        for node in body:
            if isinstance(node, FunctionNode) and node.name == function:
                return node
        return None

    def files_below(self, folder: str) -> list[str]:
        """Paths of all Python files below a folder, relative to the package."""
        return sorted(
            str(path.relative_to(self.root)) for path in (self.root / folder).rglob("*.py")
        )

    def hashes(self) -> dict[str, str]:
        """SHA-256 of every Python file, by its path relative to the package, in that order."""
        return {
            path: hashlib.sha256((self.root / path).read_bytes()).hexdigest()
            for path in self.files_below(".")
        }

    def digest(self) -> str:
        """SHA-256 over the paths and contents of all Python files, wherever the package lies.

        Of every ``*.py`` and not of those that the wheel's ``RECORD`` lists: a tree installed to be
        edited lists none, and a file that a patch has added is listed nowhere.
        """
        return compute_digest(self.hashes())

    def _module(self, path: str) -> ast.Module | None:
        full = self.root / path
        return _parsed(full) if full.is_file() else None


class WatchedTree(SourceTree):
    """A tree that notes what is read of it: what the answer of a probe hangs on."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._read: dict[str, str] = {}

    def module(self, path: str) -> ast.Module | None:
        """Parse a file, and note the whole of it."""
        self._read[path] = self._text(path)
        return super().module(path)

    def function(self, path: str, name: str) -> FunctionNode | None:
        """Find a function, and note no more of its file."""
        found = super().function(path, name)
        lines = [] if found is None else self._text(path).split("\n")[_place_of(found)]
        self._read[f"{path} {name}"] = "\n".join(lines)
        return found

    def files_below(self, folder: str) -> list[str]:
        """Name files, and note the names."""
        found = super().files_below(folder)
        self._read[f"{folder}/"] = "\n".join(found)
        return found

    def read_digest(self) -> str:
        """SHA-256 over everything that was read, as it stands there, comments included."""
        return compute_digest(dict(sorted(self._read.items())))

    def _text(self, path: str) -> str:
        full = self.root / path
        return full.read_text(encoding="utf-8") if full.is_file() else ""


def _place_of(function: FunctionNode) -> slice:
    """Which lines of its file a function takes, its decorators included."""
    first = min(node.lineno for node in (function, *function.decorator_list))
    return slice(first - 1, function.end_lineno)


def compute_digest(hashes: Mapping[str, str]) -> str:
    """SHA-256 over paths and contents, as ``SourceTree.hashes`` gives them."""
    whole = hashlib.sha256()
    for path, content in hashes.items():
        whole.update(f"{path}\0{content}\n".encode())
    return whole.hexdigest()


def installed_tree() -> SourceTree:
    """The vLLM of this environment."""
    spec = importlib.util.find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("this environment has no package vllm")
    return SourceTree(Path(spec.submodule_search_locations[0]))


def stores_into(function: ast.AST, name: str) -> list[ast.Subscript]:
    """Assignments of the form ``name[...] = value`` inside a function."""
    targets = [
        target
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
    ]
    return [
        target
        for target in targets
        if isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and target.value.id == name
    ]


def assigns(function: ast.AST, name: str) -> bool:
    """Whether a plain variable of this name is assigned inside a function."""
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(function)
    )


def mentions(tree: ast.AST, name: str) -> bool:
    """Whether a name occurs as a variable, attribute, argument, keyword or definition."""
    for node in ast.walk(tree):
        found = (
            getattr(node, "id", None),
            getattr(node, "attr", None),
            getattr(node, "arg", None),
            getattr(node, "name", None),
        )
        if name in found:
            return True
    return False


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    """Calls of a function or method by its last name."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and name in (getattr(node.func, "id", None), getattr(node.func, "attr", None))
    ]


def engine_distribution() -> Distribution:
    """The installed distribution that has the package ``vllm``; it may have another name."""
    for candidate in distributions():
        name = (candidate.metadata["Name"] or "").lower().replace("_", "-")
        if name == "vllm" or name.startswith("vllm-"):
            return candidate
    raise ModuleNotFoundError("no distribution called vllm or vllm-* is installed")
