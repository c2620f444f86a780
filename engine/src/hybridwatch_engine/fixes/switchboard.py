"""Which fixes are in, in this process, and turning them on and off."""

from collections.abc import Mapping

from hybridwatch_engine.fixes.fix import Finding, Fix
from hybridwatch_engine.fixes.registry import FIXES
from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.source import SourceTree, installed_tree


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
