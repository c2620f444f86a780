"""Reads ``engine/fixes.toml``, which is part of the package, and files of the user's own fixes."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

from hybridwatch_engine.fixes.fix import NOWHERE, Header
from hybridwatch_engine.settings import from_environment

NAME: Final = "engine/fixes.toml"
_FILE: Final = Path(__file__).parents[1] / "fixes.toml"
_KEYS: Final = {one.name: one for one in fields(Header) if one.name != "id"}

OWN_DEFAULTS: Final[Mapping[str, Any]] = {
    "upstream": "none",
    "present_from": NOWHERE,
    "scenario": "",
    "occasion": "replays",
    "remove_when": "",
    "releases": {},
}
"""What a fix of the user's own need not say; the harness has the same (``scenarios.fixes``)."""


def header(fix_id: str) -> Header:
    """Give the entry of a fix, shipped or of the user's own."""
    known = dict(headers())
    for entries in own_headers().values():
        known |= entries
    if fix_id not in known:
        raise ValueError(f"{NAME}: fix.{fix_id}: missing; expected one, found {', '.join(known)}")
    return known[fix_id]


@cache
def headers() -> Mapping[str, Header]:
    """Give every entry of what is shipped by its id, in the order of the file."""
    return read_headers(tomllib.loads(_FILE.read_text(encoding="utf-8")))


@cache
def own_headers() -> Mapping[Path, Mapping[str, Header]]:
    """Give the entries of the user's own fixes by the file that they stand in.

    Raises:
        ValueError: A file is wrong, or has an id that another one has.
    """
    found: dict[Path, Mapping[str, Header]] = {}
    places = dict.fromkeys(headers(), NAME)
    for file in (
        file for own in from_environment().own_fixes for file in sorted(own.glob("*.toml"))
    ):
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        entries = {fix_id: {**OWN_DEFAULTS, **keys} for fix_id, keys in content["fix"].items()}
        for fix_id in entries:
            if fix_id in places:
                raise ValueError(
                    f"{file}: fix.{fix_id}: expected an id that is not taken yet, found one that "
                    f"{places[fix_id]} has"
                )
            places[fix_id] = str(file)
        found[file] = read_headers({"fix": entries}, str(file))
    return found


def read_headers(content: Mapping[str, Any], file: str = NAME) -> dict[str, Header]:
    """Give every entry of a file that has been read.

    Args:
        content: Of the file.
        file: How messages call it.

    Raises:
        ValueError: A key is unknown or missing, or a part is no fix.
    """
    found = {
        fix_id: _header(fix_id, entry, f"{file}: fix.{fix_id}")
        for fix_id, entry in content["fix"].items()
    }
    for one in found.values():
        for part in one.parts:
            if part not in found:
                raise ValueError(
                    f"{file}: fix.{one.id}.parts: expected ids of fixes, found {part!r}"
                )
    return found


def _header(fix_id: str, entry: Mapping[str, Any], place: str) -> Header:
    for key in entry:
        if key not in _KEYS:
            raise ValueError(
                f"{place}: unknown key: expected one of {', '.join(_KEYS)}, found {key!r}"
            )
    for key, field in _KEYS.items():
        if field.default is field.default_factory is MISSING and key not in entry:
            raise ValueError(f"{place}.{key}: missing; expected a value, found none")
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return Header(id=fix_id, **{**entry, **lists})
