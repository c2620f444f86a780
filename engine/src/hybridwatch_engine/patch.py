"""Replacing a name of the engine, and putting the original back.

A patch that is not in place costs nothing: the original object itself is restored, so a switched
off fix or probe adds no call. Patches of one name nest: the last in must be the first out.
"""

from collections.abc import Callable
from typing import Any


class Patch:
    """One name of one owner (a class or a module), replaced while in place.

    Args:
        owner: Class or module that holds the name.
        name: Attribute to replace; must exist, so that a renamed target fails at once.
        make: Gets the original as it is when the patch goes in, returns the replacement.

    Raises:
        AttributeError: The owner has no such name.
    """

    def __init__(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        getattr(owner, name)
        self._owner = owner
        self._name = name
        self._make = make
        self._own = False
        self._original: Any = None
        self._replacement: Any = None
        self.in_place = False

    def install(self) -> None:
        """Put the replacement in; nothing happens when it is in already."""
        if self.in_place:
            return
        self._own = self._name in vars(self._owner)
        # vars() and not getattr(): a classmethod must be put back as the object it was.
        self._original = (
            vars(self._owner)[self._name] if self._own else getattr(self._owner, self._name)
        )
        self._replacement = self._make(self._original)
        setattr(self._owner, self._name, self._replacement)
        self.in_place = True

    def remove(self) -> None:
        """Put the original back; nothing happens when it is there already.

        Raises:
            RuntimeError: Another patch of the same name went in later and is still there.
        """
        if not self.in_place:
            return
        if vars(self._owner).get(self._name) is not self._replacement:
            raise RuntimeError(f"{self._owner}.{self._name} was patched again since")
        if self._own:
            setattr(self._owner, self._name, self._original)
        else:
            delattr(self._owner, self._name)
        self.in_place = False


class PatchSet:
    """Patches that go in together, in order, and come out in the opposite order."""

    def __init__(self, *patches: Patch) -> None:
        self._patches = patches

    @property
    def in_place(self) -> bool:
        """Whether the set is in."""
        return any(patch.in_place for patch in self._patches)

    def install(self) -> None:
        """Put every replacement in."""
        for patch in self._patches:
            patch.install()

    def remove(self) -> None:
        """Put every original back."""
        for patch in reversed(self._patches):
            patch.remove()
