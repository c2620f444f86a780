"""Every fix there is: entries of ``engine/fixes.toml`` and of the user's own, and their modules."""

import pkgutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Final

from hybridwatch_engine import fixes
from hybridwatch_engine.fixes.fix import Fix, Header
from hybridwatch_engine.fixes.headers import NAME, headers, own_headers
from hybridwatch_engine.own_module import load_own

_OURS: Final = {"fix", "headers", "registry", "switchboard"}
"""Modules of the package that hold no fix."""


def registered(
    entries: Mapping[str, Header], folder: Sequence[str], package: str
) -> dict[str, Fix]:
    """Find the fixes of a package by the ids of their entries.

    Args:
        entries: By id.
        folder: Where the package's modules are.
        package: Its name.

    Returns:
        The fixes in the order of the entries.

    Raises:
        ValueError: An entry has no module or no fix in it, a module has no entry, or both say
            different things about how a fix can be switched.
    """
    modules = {one.name for one in pkgutil.iter_modules(folder)} - _OURS
    named = {fix_id: _module(entry, entries) for fix_id, entry in entries.items()}
    for fix_id, module in named.items():
        if module not in modules:
            raise ValueError(
                f"{NAME}: fix.{fix_id}: expected a module {module}.py in {folder[0]}, found "
                f"{', '.join(sorted(modules))}"
            )
    if orphans := modules - set(named.values()):
        raise ValueError(
            f"{NAME}: expected an entry for each module in {folder[0]}, found none for "
            f"{', '.join(sorted(orphans))}"
        )
    found = {one.header.id: one for name in sorted(modules) for one in _of(f"{package}.{name}")}
    for fix_id, module in named.items():
        _check(f"{NAME}: fix.{fix_id}", found.get(fix_id), module)
    return {fix_id: found[fix_id] for fix_id in entries}


def own_fixes() -> dict[str, Fix]:
    """Load the fixes of the user's own by their ids, in the order of their files.

    Raises:
        ValueError: A file is wrong, or an entry has no module or no fix in it, or both say
            different things about how it can be switched.
    """
    found: dict[str, Fix] = {}
    for file, entries in own_headers().items():
        for fix_id, entry in entries.items():
            place, module = f"{file}: fix.{fix_id}", _module(entry, entries)
            loaded = load_own(file.parent, module, f"{place}.module")
            fixes = {one.header.id: one for one in _fixes_in(loaded)}
            found[fix_id] = _check(place, fixes.get(fix_id), module)
    return found


def _module(entry: Header, entries: Mapping[str, Header]) -> str:
    wholes = [whole for whole in entries.values() if entry.id in whole.parts]
    if wholes and not entry.module:
        return _module(wholes[0], entries)
    return entry.module or entry.id.replace("-", "_")


def _of(module: str) -> Sequence[Fix]:
    return _fixes_in(import_module(module))


def _fixes_in(module: ModuleType) -> Sequence[Fix]:
    return [one for one in vars(module).values() if isinstance(one, Fix)]


def _check(place: str, fix: Fix | None, module: str) -> Fix:
    if fix is None:
        raise ValueError(f"{place}: expected a Fix of this id in {module}.py, found none")
    if fix.header.ways != fix.ways:
        raise ValueError(
            f"{place}.ways: expected {list(fix.ways)} as in {module}.py, found "
            f"{list(fix.header.ways)}"
        )
    return fix


FIXES: Final[dict[str, Fix]] = {
    **registered(headers(), list(fixes.__path__), fixes.__name__),
    **own_fixes(),
}
