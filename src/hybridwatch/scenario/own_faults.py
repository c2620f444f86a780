"""Faults of somebody's own, which can be mutants, and planted by a label (``cpu-0.27.1+mine``).

Each lies in a folder: that of the home, ``mutants/``, or a package that names itself by the entry
point ``hybridwatch.mutants``. Files say what they are, modules beside the files what they do. The
engine is given the folders, so a package is installed here alone.
"""

from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from hybridwatch.errors import HybridwatchError, ScenarioError
from hybridwatch.home import home, is_extending
from hybridwatch.scenario.mutant import OWN, Mutant, load_mutants

GROUP: Final = "hybridwatch.mutants"
_FOLDER: Final = "mutants"
_FILES: Final = "*.toml"


class OwnFault(NamedTuple):
    """A fault, and the file that describes it."""

    mutant: Mutant
    file: Path


def fault_folders() -> tuple[Path, ...]:
    """Find the folders that have faults: the home's, then those of packages.

    Raises:
        ScenarioError: An entry point names no package.
    """
    folders = [*_of_the_home(), *map(_of_a_package, entry_points(group=GROUP))]
    return tuple(folder for folder in folders if any(folder.glob(_FILES)))


def own_faults() -> dict[str, OwnFault]:
    """Read every fault of somebody's own, by name.

    Raises:
        ScenarioError: A file is wrong, or has a name that another one has.
    """
    found: dict[str, OwnFault] = {}
    for file in (file for folder in fault_folders() for file in sorted(folder.glob(_FILES))):
        for name, mutant in load_mutants(file).items():
            if name in found:
                raise ScenarioError(
                    f"{file}: mutant.{name}: expected a name that is not taken yet, found one that "
                    f"{found[name].file} has"
                )
            if mutant.half != OWN:
                raise ScenarioError(
                    f"{file}: mutant.{name}.half: expected none, found {mutant.half}: the halves "
                    "are of what is shipped"
                )
            found[name] = OwnFault(mutant, file)
    return found


def _of_the_home() -> list[Path]:
    try:
        folder = home()
    except HybridwatchError:
        return []
    return [folder / _FOLDER] if is_extending(folder) else []


def _of_a_package(point: EntryPoint) -> Path:
    try:
        spec = find_spec(point.value)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise ScenarioError(
            f"entry point {point.name} of {GROUP}: expected a package, found {point.value}"
        )
    return Path(spec.submodule_search_locations[0])
