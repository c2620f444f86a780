"""Folders of somebody's own faults or fixes: of the home, and of packages that name themselves.

Files there say what each is, modules beside the files what it does. The engine is given the
folders, so a package is installed beside hybridwatch alone.
"""

from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from hybridwatch.errors import HybridwatchError, ScenarioError
from hybridwatch.system.home import home, is_extending

FILES: Final = "*.toml"

Kind = Literal["fixes", "mutants"]
"""What a folder has: the folder of the home is called so, and the entry point ``hybridwatch.``."""


def own_folders(kind: Kind) -> tuple[Path, ...]:
    """Find the folders that have something: the home's, then those of packages.

    Raises:
        ScenarioError: An entry point names no package.
    """
    folders = [*_of_the_home(kind), *map(_of_a_package, entry_points(group=f"hybridwatch.{kind}"))]
    return tuple(folder for folder in folders if any(folder.glob(FILES)))


def own_files(kind: Kind) -> tuple[Path, ...]:
    """Find the files that say what there is, folder by folder.

    Raises:
        ScenarioError: An entry point names no package.
    """
    return tuple(file for folder in own_folders(kind) for file in sorted(folder.glob(FILES)))


def _of_the_home(kind: Kind) -> list[Path]:
    try:
        folder = home()
    except HybridwatchError:
        return []
    return [folder / kind] if is_extending(folder) else []


def _of_a_package(point: EntryPoint) -> Path:
    try:
        spec = find_spec(point.value)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise ScenarioError(
            f"entry point {point.name} of {point.group}: expected a package, found {point.value}"
        )
    return Path(spec.submodule_search_locations[0])
