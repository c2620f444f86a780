"""The source of the engine plugin: a checkout's, which people edit, or what a wheel carries."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from hybridwatch.system.home import is_checkout, is_extending, shipped_engine


def plugin_digest(home: Path) -> str | None:
    """Return the SHA-256 over what an environment has of the plugin; ``None`` without a plugin.

    Of a checkout's it is the project file alone: an environment uses the source where it lies. What
    a wheel carries is copied, and another wheel carries other source.
    """
    folder = shipped_engine(home)
    project = folder / "pyproject.toml"
    if not project.is_file():
        return None
    if _is_edited(home):
        return hashlib.sha256(project.read_bytes()).hexdigest()
    return _digest_of(folder)


@cache  # asked for each build of a list
def _digest_of(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in {".py", ".toml"}):
        total.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@contextmanager
def plugin_to_install(home: Path) -> Iterator[Sequence[str]]:
    """Give the words that name the plugin to ``pip install``.

    pip builds in the folder that it is given, and nothing may be written into what a wheel carries:
    it gets a copy.
    """
    folder = shipped_engine(home)
    if _is_edited(home):
        yield ("--editable", str(folder))
        return
    with tempfile.TemporaryDirectory(prefix="hybridwatch-") as work:
        yield (str(shutil.copytree(folder, Path(work) / "engine")),)


def _is_edited(home: Path) -> bool:
    return is_checkout() or not is_extending(home)
