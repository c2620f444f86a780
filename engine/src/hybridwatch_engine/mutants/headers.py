"""Reads ``engine/mutants/*.toml``, which are part of the package."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

_FOLDER: Final = Path(__file__).parent
FILES: Final = ("first.toml", "second.toml")

Process = Literal["worker", "scheduler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantHeader:
    """One ``[mutant.<name>]`` table; the head of ``first.toml`` says what each key means.

    Attributes:
        file: Where the table stands, for messages.
    """

    name: str
    file: str
    half: str
    mechanism: str
    target: tuple[str, ...]
    by: str
    resembles: str
    what: str
    process: Process = "worker"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    phase: str = "answers"
    equivalent: str = ""


_KEYS: Final = {one.name: one for one in fields(MutantHeader) if one.name not in {"name", "file"}}


@cache
def mutant_headers() -> Mapping[str, MutantHeader]:
    """Give every mutant by its name, in the order of the files.

    Raises:
        ValueError: A file is wrong.
    """
    found: dict[str, MutantHeader] = {}
    for file in FILES:
        text = (_FOLDER / file).read_text(encoding="utf-8")
        for name, keys in tomllib.loads(text)["mutant"].items():
            if name in found:
                raise ValueError(f"{_place(file, name)}: expected one table, found two")
            found[name] = header_from(name, keys, file)
    return found


def header_from(name: str, keys: Mapping[str, Any], file: str) -> MutantHeader:
    """Make a header of what a table says.

    Raises:
        ValueError: A key is missing or unknown.
    """
    place = _place(file, name)
    if unknown := keys.keys() - _KEYS.keys():
        raise ValueError(f"{place}.{min(unknown)}: expected one of {', '.join(_KEYS)}")
    for key, one in _KEYS.items():
        if one.default is MISSING and one.default_factory is MISSING and key not in keys:
            raise ValueError(f"{place}.{key}: expected a value, found none")
    return MutantHeader(name=name, file=place, **{**keys, "target": tuple(keys["target"])})


def _place(file: str, name: str) -> str:
    return f"engine/mutants/{file}: mutant.{name}"
