"""Every fix there is, by its entry and module, and what turns fixes on and off in a process."""

import pkgutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Final

from hybridwatch_engine import fixes
from hybridwatch_engine.fixes.fix import Finding, Fix, Header
from hybridwatch_engine.fixes.headers import NAME, headers, own_headers
from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.settings import load_own
from hybridwatch_engine.source import SourceTree, installed_tree

_OURS: Final = {"fix", "headers", "registry"}
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


class Switchboard:
    """The fixes of one process."""

    def __init__(self, tree: SourceTree, fixes: Mapping[str, Fix] = FIXES) -> None:
        self._fixes = fixes
        self._findings: dict[str, Finding] = {id_: fix.probe(tree) for id_, fix in fixes.items()}
        self._patches: dict[str, PatchSet] = {}

    def states(self) -> dict[str, str]:
        """State of each fix, in the words of the record (``record.identity.FixState``)."""
        return {id_: self._state(id_) for id_ in self._fixes}

    def _state(self, fix_id: str) -> str:
        if parts := self._fixes[fix_id].parts:
            return self._state_of_whole({self._state(part) for part in parts})
        native = self._findings[fix_id].state
        patches = self._patches.get(fix_id)
        if patches is None or not patches.in_place:
            return native
        return "reverted" if native == "present" else "applied"

    @staticmethod
    def _state_of_whole(parts: set[str]) -> str:
        """A fix is as good as its worst part, and in our hands when any part is."""
        order = ("not-applicable", "reverted", "lacking", "applied", "present")
        return next(state for state in order if state in parts)

    def switch(self, fix_id: str, wanted: bool) -> str:
        """Make a fix present or absent from now on.

        Raises:
            ValueError: There is no such fix, or it cannot be switched that way in this release.
        """
        if fix_id not in self._fixes:
            raise ValueError(f"no fix {fix_id!r}; known: {', '.join(self._fixes)}")
        for part in self._fixes[fix_id].parts:
            self.switch(part, wanted)
        if self._fixes[fix_id].parts:
            return self._state(fix_id)
        native = self._findings[fix_id].state
        if wanted == (native == "present"):
            if fix_id in self._patches:
                self._patches[fix_id].remove()
        else:
            self._choose_patch(fix_id, native).install()
        return self._state(fix_id)

    def _choose_patch(self, fix_id: str, native: str) -> PatchSet:
        """Patches that turn what the release has into its opposite, made once."""
        if fix_id not in self._patches:
            fix = self._fixes[fix_id]
            make = fix.revert if native == "present" else fix.apply
            if native == "not-applicable" or make is None:
                verb = "taken out of" if native == "present" else "put into"
                raise ValueError(f"fix {fix_id} cannot be {verb} this release ({native})")
            self._patches[fix_id] = make()
        return self._patches[fix_id]


_BOARD: list[Switchboard] = []


def switchboard() -> Switchboard:
    """The one switchboard of this process."""
    if not _BOARD:
        _BOARD.append(Switchboard(installed_tree()))
    return _BOARD[0]
