"""Reads ``engine/mutants/*.toml``, which are part of the package, and those of somebody's own."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from hybridwatch_engine.settings import from_environment

_FOLDER: Final = Path(__file__).parent
FILES: Final = ("first.toml", "second.toml")

Process = Literal["worker", "scheduler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantHeader:
    """One ``[mutant.<name>]`` table; the head of ``first.toml`` says what each key means.

    Attributes:
        file: Where the table stands, for messages.
        folder: Where the code of somebody's own lies; ``None`` for this package's.
    """

    name: str
    file: str
    folder: Path | None = None
    half: str = "own"
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
    """Give every mutant by its name, in the order of the files, those of somebody's own last.

    Raises:
        ValueError: A file is wrong.
    """
    files: list[tuple[Path, Path | None]] = [(_FOLDER / file, None) for file in FILES]
    for own in from_environment().own_mutants:
        files += [(file, own) for file in sorted(own.glob("*.toml"))]
    found: dict[str, MutantHeader] = {}
    for file, folder in files:
        called = f"engine/mutants/{file.name}" if folder is None else str(file)
        for name, keys in tomllib.loads(file.read_text(encoding="utf-8"))["mutant"].items():
            place = f"{called}: mutant.{name}"
            if name in found:
                raise ValueError(f"{place}: expected one table, found two")
            found[name] = header_from(name, keys, place, folder)
    return found


def header_from(
    name: str, keys: Mapping[str, Any], place: str, folder: Path | None = None
) -> MutantHeader:
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
