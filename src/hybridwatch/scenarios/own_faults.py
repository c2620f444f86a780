"""Faults of the user's own, which can be mutants, and planted by a label (``cpu-0.27.1+mine``).

They and the user's own fixes are in folders: of the home, and of packages that name themselves.
Files there say what each is, modules next to the files what it does. The engine is given the
folders, so a package is installed with hybridwatch alone.
"""

import hashlib
import tomllib
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.errors import HybridwatchError, ScenarioError
from hybridwatch.scenarios.validation_text import refusing_toml
from hybridwatch.system.home import home, is_extending

FILES: Final = "*.toml"

Kind = Literal["fixes", "mutants"]
"""What a folder has: the folder of the home is called so, and the entry point ``hybridwatch.``."""
OWN: Final = "own"
Half = Literal["first", "second", "own"]
MECHANISMS: Final = (
    *("slot lifetime", "block table", "condense and move", "conv window", "chunk boundary"),
    *("prefix hit", "preemption", "resume", "accepted counts", "draft rows", "padding"),
    *("dummy runs", "transfer", "scheduler budget", "sampler", "dtype", "speed", "host sync"),
)
"""What can be wrong in an engine, in the order of tables."""


def own_folders(kind: Kind) -> tuple[Path, ...]:
    """Find the folders that have something: the home's, then those of packages."""
    folders = [*_of_the_home(kind), *map(_of_a_package, entry_points(group=f"hybridwatch.{kind}"))]
    return tuple(folder for folder in folders if any(folder.glob(FILES)))


def own_files(kind: Kind) -> tuple[Path, ...]:
    """Find the files that say what there is, folder by folder."""
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


class Mutant(BaseModel):
    """One ``[mutant.<name>]`` table; the head of ``first.toml`` says what each key means.

    Those of the user's own belong to neither half of what is shipped.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    half: Half = OWN
    mechanism: str
    target: tuple[str, ...] = Field(strict=False, min_length=1)
    by: str
    resembles: str
    what: str
    parameters: dict[str, bool | int | float | str] = {}
    process: Literal["worker", "scheduler"] = "worker"
    phase: Literal["answers", "host-sync", "performance"] = "answers"
    equivalent: str = ""

    @property
    def digest(self) -> str:
        """Short digest of what it does; one that was changed is measured again."""
        keys = {"target", "by", "parameters", "process", "phase", "equivalent"}
        text = self.model_dump_json(include=keys)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class _FaultsFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    mutant: dict[str, Mutant]


def load_mutants(path: Path, name: Path | None = None) -> dict[str, Mutant]:
    """Read what a file says of mutants, by name.

    Messages call the file ``name``, or by its path when not given.

    Raises:
        ScenarioError: The file cannot be read or says something we do not understand; one line per
            wrong key.
    """
    called = name or path
    with refusing_toml(path, _FaultsFile, ScenarioError, called):
        found = _FaultsFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).mutant
    for mutant, one in found.items():
        if one.mechanism not in MECHANISMS:
            raise ScenarioError(
                f"{called}: mutant.{mutant}.mechanism: expected one of {', '.join(MECHANISMS)}, "
                f"found {one.mechanism}"
            )
    return found


class OwnFault(NamedTuple):
    """A fault, and the file that describes it."""

    mutant: Mutant
    file: Path


def own_faults() -> dict[str, OwnFault]:
    """Read every fault of the user's own, by name.

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
