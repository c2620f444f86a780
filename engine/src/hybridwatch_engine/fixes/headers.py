"""Reads ``engine/fixes.toml``, which is part of the package."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

from hybridwatch_engine.fixes.fix import Header

NAME: Final = "engine/fixes.toml"
_FILE: Final = Path(__file__).parents[1] / "fixes.toml"
_KEYS: Final = {one.name: one for one in fields(Header) if one.name != "id"}


def header(fix_id: str) -> Header:
    """Give the entry of a fix.

    Raises:
        ValueError: There is none, or the file is wrong.
    """
    known = headers()
    if fix_id not in known:
        raise ValueError(f"{NAME}: fix.{fix_id}: missing; expected one, found {', '.join(known)}")
    return known[fix_id]


@cache
def headers() -> Mapping[str, Header]:
    """Give every entry by its id, in the order of the file.

    Raises:
        ValueError: The file is wrong.
    """
    return headers_of(tomllib.loads(_FILE.read_text(encoding="utf-8")))


def headers_of(content: Mapping[str, Any]) -> dict[str, Header]:
    """Give every entry of a file that has been read.

    Raises:
        ValueError: A key is unknown or missing, or a part is no fix.
    """
    found = {fix_id: _header(fix_id, entry) for fix_id, entry in content["fix"].items()}
    for one in found.values():
        for part in one.parts:
            if part not in found:
                raise ValueError(
                    f"{NAME}: fix.{one.id}.parts: expected ids of fixes, found {part!r}"
                )
    return found


def _header(fix_id: str, entry: Mapping[str, Any]) -> Header:
    for key in entry:
        if key not in _KEYS:
            raise ValueError(
                f"{NAME}: fix.{fix_id}: unknown key: expected one of {', '.join(_KEYS)}, "
                f"found {key!r}"
            )
    for key, field in _KEYS.items():
        if field.default is field.default_factory is MISSING and key not in entry:
            raise ValueError(f"{NAME}: fix.{fix_id}.{key}: missing; expected a value, found none")
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return Header(id=fix_id, **{**entry, **lists})
