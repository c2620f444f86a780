"""The type of a fix."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.source import SourceTree

NOWHERE = "no release"
"""Value of ``Header.present_from`` for a fix that upstream does not have."""

State = Literal["present", "lacking", "not-applicable"]


Behaviour = Mapping[str, Any]
"""What an exercise saw, in values that JSON has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What ``engine/fixes.toml`` says of a fix; the file says what each key means.

    The table in ``engine/README.md`` is made from it.
    """

    id: str
    target: str
    why: str
    how: str
    upstream: str
    present_from: str
    switch: Literal["live", "start", "probe"]
    scenario: str
    occasion: str
    remove_when: str
    releases: Mapping[str, State]
    parts: tuple[str, ...] = ()
    module: str = ""
    ways: tuple[Literal["apply", "revert"], ...] = ()
    accelerator: Literal["cpu", "cuda"] | None = None
    lossless: bool = False
    breaks: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a probe saw.

    Attributes:
        state: Whether the code has the fix.
        evidence: Where that can be seen, in one line.
    """

    state: State
    evidence: str


@dataclass(frozen=True, slots=True)
class Exercise:
    """How to see a fix.

    Attributes:
        observe: ``module:function``, imported when it is called and not by an engine that serves.
            Drives the engine's functions; sees the same again as long as nothing is switched.
        with_fix: What it must see when the fix is in, by the release or by our patch.
        without_fix: What it must see when the fix is out.
    """

    observe: str
    with_fix: Behaviour
    without_fix: Behaviour


@dataclass(frozen=True, slots=True)
class Fix:
    """A fix with everything that can be done with it.

    Attributes:
        header: For readers.
        probe: Finds out whether a source tree has it.
        apply: Patches that put it into a release that lacks it; ``None`` when we cannot.
        revert: Patches that take it out of a release that has it; ``None`` when we cannot.
        exercise: How to see it; ``None`` for one that cannot be switched, or by its parts alone.
    """

    header: Header
    probe: Callable[[SourceTree], Finding]
    apply: Callable[[], PatchSet] | None = None
    revert: Callable[[], PatchSet] | None = None
    exercise: Exercise | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """Ids of the fixes that make up this one; it is switched by switching them."""
        return self.header.parts

    @property
    def ways(self) -> tuple[str, ...]:
        """How it can be switched by itself."""
        return tuple(way for way in ("apply", "revert") if getattr(self, way) is not None)
