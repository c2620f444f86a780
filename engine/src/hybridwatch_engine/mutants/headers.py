"""Reads the tables of the folders of mutants that the settings name."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from hybridwatch_engine.settings import from_environment

OWN: Final = "own"
"""The half of those that are the user's own."""
Process = Literal["worker", "scheduler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantHeader:
    """One ``[mutant.<name>]`` table; the head of ``first.toml`` says what each key means.

    Attributes:
        file: Where the table stands, for messages.
        folder: Where its code lies.
    """

    name: str
    file: str
    folder: Path
    half: str = OWN
    mechanism: str
    target: tuple[str, ...]
    by: str
    resembles: str
    what: str
    process: Process = "worker"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    phase: str = "answers"
    equivalent: str = ""


_KEYS: Final = {
    one.name: one for one in fields(MutantHeader) if one.name not in {"name", "file", "folder"}
}


@cache
def mutant_headers() -> Mapping[str, MutantHeader]:
    """Give every mutant by its name, in the order of folders and files, the user's own last.

    Raises:
        ValueError: A file is wrong.
    """
    settings = from_environment()
    folders = (*settings.mutants, *settings.own_mutants)
    found: dict[str, MutantHeader] = {}
    for file in (file for folder in folders for file in sorted(folder.glob("*.toml"))):
        for name, keys in tomllib.loads(file.read_text(encoding="utf-8"))["mutant"].items():
            place = f"{file}: mutant.{name}"
            if name in found:
                raise ValueError(f"{place}: expected one table, found two")
            found[name] = header_from(name, keys, place, file.parent)
    return found


def header_from(name: str, keys: Mapping[str, Any], place: str, folder: Path) -> MutantHeader:
    """Make a header of what a table says.

    Args:
        name: Of the mutant.
        keys: Of its table.
        place: Where the table stands, for messages.
        folder: As ``MutantHeader`` has it.

    Raises:
        ValueError: A key is missing or unknown.
    """
    if unknown := keys.keys() - _KEYS.keys():
        raise ValueError(f"{place}.{min(unknown)}: expected one of {', '.join(_KEYS)}")
    for key, one in _KEYS.items():
        if one.default is MISSING and one.default_factory is MISSING and key not in keys:
            raise ValueError(f"{place}.{key}: expected a value, found none")
    return MutantHeader(
        name=name, file=place, folder=folder, **{**keys, "target": tuple(keys["target"])}
    )
