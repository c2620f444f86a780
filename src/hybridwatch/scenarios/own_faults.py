"""Faults of somebody's own, which can be mutants, and planted by a label (``cpu-0.27.1+mine``)."""

from pathlib import Path
from typing import NamedTuple

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.mutant import OWN, Mutant, load_mutants
from hybridwatch.scenarios.own_folders import own_files


class OwnFault(NamedTuple):
    """A fault, and the file that describes it."""

    mutant: Mutant
    file: Path


def own_faults() -> dict[str, OwnFault]:
    """Read every fault of somebody's own, by name.

    Raises:
        ScenarioError: A file is wrong, or has a name that another one has.
    """
    found: dict[str, OwnFault] = {}
    for file in own_files("mutants"):
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
