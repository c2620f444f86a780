"""Replacing a name of the engine, and putting the original back.

A patch that is not in place costs nothing: the original object itself is restored, so a switched
off fix or probe adds no call. Several patches of one name nest in the order in which they went in,
and any of them may come out first: the rest are wrapped around the original again.
"""

from collections.abc import Callable
from typing import Any


class _Seam:
    """One name of one owner, with the patches that are in place there.

    Attributes:
        patches: In place, innermost first.
    """

    def __init__(self, owner: Any, name: str) -> None:
        self._owner = owner
        self._name = name
        self._own = name in vars(owner)
        # vars() and not getattr(): a classmethod must be put back as the object it was.
        self._original = vars(owner)[name] if self._own else getattr(owner, name)
        self._current = self._original
        self.patches: list[Patch] = []

    def replace(self, patches: "list[Patch]") -> None:
        """Wrap the original by these patches and nothing else.

        Raises:
            RuntimeError: Other code has replaced the name since.
        """
        if self.patches and vars(self._owner).get(self._name) is not self._current:
            raise RuntimeError(f"{self._owner}.{self._name} was patched by other code since")
        current = self._original
        for patch in patches:
            current = patch.make(current)
        if patches or self._own:
            setattr(self._owner, self._name, current)
        else:
            delattr(self._owner, self._name)
        self.patches, self._current = patches, current


_SEAMS: dict[tuple[int, str], _Seam] = {}
"""Seams with at least one patch, by owner and name; a patch in place keeps its owner alive."""


class Patch:
    """One name of one owner (a class or a module), replaced while in place.

    Args:
        owner: Class or module that holds the name.
        name: Attribute to replace; must exist, so that a renamed target fails at once.
        make: Gets what is there without this patch, returns the replacement; called again when
            another patch of the name goes in or out.
    """

    def __init__(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        getattr(owner, name)
        self._owner = owner
        self._key = (id(owner), name)
        self.make = make
        self.in_place = False

    def install(self) -> None:
        """Put the replacement in; nothing happens when it is in already."""
        if self.in_place:
            return
        seam = _SEAMS.get(self._key) or _Seam(self._owner, self._key[1])
        seam.replace([*seam.patches, self])
        _SEAMS[self._key] = seam
        self.in_place = True

    def remove(self) -> None:
        """Take the replacement out; nothing happens when it is out already."""
        if not self.in_place:
            return
        seam = _SEAMS[self._key]
        seam.replace([patch for patch in seam.patches if patch is not self])
        if not seam.patches:
            del _SEAMS[self._key]
        self.in_place = False


class PatchSet:
    """Patches that go in together, in order, and come out in the opposite order.

    Args:
        patches: The patches; part of another set too, when they shall go in with either.
    """

    def __init__(self, *patches: Patch) -> None:
        self.patches = patches

    @property
    def in_place(self) -> bool:
        """Whether the set is in."""
        return any(patch.in_place for patch in self.patches)

    def install(self) -> None:
        """Put every replacement in."""
        for patch in self.patches:
            patch.install()

    def remove(self) -> None:
        """Put every original back."""
        for patch in reversed(self.patches):
            patch.remove()
