"""The type of a fix."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.source import SourceTree

NOWHERE = "no release"
"""Value of ``Header.present_from`` for a fix that upstream does not have."""

State = Literal["present", "lacking", "not-applicable"]


@dataclass(frozen=True, slots=True)
class Header:
    """What a reader must know about a fix; the table in ``engine/README.md`` is made from it.

    Attributes:
        id: Name used on the command line and in records.
        target: What in vLLM is changed.
        why: What goes wrong without it.
        how: What the fix does.
        upstream: The pull request.
        present_from: First release that has it, or ``NOWHERE``.
        switch: ``live`` on a running engine, ``start`` only at its start, ``probe`` when we can
            only tell whether it is there.
        scenario: Scenario that proves it.
        remove_when: When this module can go.
    """

    id: str
    target: str
    why: str
    how: str
    upstream: str
    present_from: str
    switch: Literal["live", "start", "probe"]
    scenario: str
    remove_when: str


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
class Fix:
    """A fix with everything that can be done with it.

    Attributes:
        header: For readers.
        probe: Tells whether a source tree has it.
        apply: Patches that put it into a release that lacks it; ``None`` when we cannot.
        revert: Patches that take it out of a release that has it; ``None`` when we cannot.
        parts: Ids of the fixes that make up this one; it is switched by switching them.
    """

    header: Header
    probe: Callable[[SourceTree], Finding]
    apply: Callable[[], PatchSet] | None = None
    revert: Callable[[], PatchSet] | None = None
    parts: tuple[str, ...] = ()
