"""Fixes that one of two builds has and the other lacks: switching one may prove the cause."""

from collections.abc import Iterator
from dataclasses import dataclass

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import check_build
from hybridwatch.scenarios.fixes import FixEntry, catalogue


@dataclass(frozen=True, slots=True)
class Switch:
    """A build with one fix switched to what the other build of a pair has.

    Attributes:
        is_first: Whether it is the earlier build that was switched; it then is to become as the
            later one, otherwise the later one as the earlier.
    """

    fix: str
    label: str
    is_first: bool


def switches_between(first: str, last: str) -> tuple[Switch, ...]:
    """List what could be switched to make one build of a pair as the other.

    Raises:
        BuildError: A build cannot be probed.
    """
    states = [check_build(parse_label(label).spec).fixes for label in (first, last)]
    differing = {
        name: fix
        for name, fix in catalogue().items()
        if not fix.parts
        and {found[name].state for found in states if name in found} == {"present", "lacking"}
    }
    return tuple(
        switch
        for name, fix in differing.items()
        for switch in _of_fix(name, fix, first, last, states[0][name].state == "present")
    )


def _of_fix(
    name: str, fix: FixEntry, first: str, last: str, first_has_it: bool
) -> Iterator[Switch]:
    for label, has_it, is_first in ((first, first_has_it, True), (last, not first_has_it, False)):
        way, mark = ("revert", "~") if has_it else ("apply", "+")
        if way in fix.ways:
            yield Switch(name, f"{label}{mark}{name}", is_first)
