"""Fixes that one of two builds has and the other lacks: switching one may prove the cause."""

from collections.abc import Iterator
from dataclasses import dataclass

from hybridwatch.engine.builds import parse_label
from hybridwatch.engine.check import check_build
from hybridwatch.scenario.fixes import CATALOGUE, FIX_PARTS


@dataclass(frozen=True, slots=True)
class Switch:
    """A build with one fix switched to what the other build of a pair has.

    Attributes:
        fix: The fix.
        label: The build with it.
        is_first: Whether it is the earlier build that was switched; it then is to become as the
            later one, otherwise the later one as the earlier.
    """

    fix: str
    label: str
    is_first: bool


def switches_between(first: str, last: str) -> tuple[Switch, ...]:
    """List what could be switched to make one build of a pair as the other.

    Args:
        first: Label of the earlier build.
        last: Label of the later one.

    Raises:
        BuildError: A build cannot be probed.
    """
    states = [check_build(parse_label(label).spec).fixes for label in (first, last)]
    differing = [
        fix
        for fix in CATALOGUE
        if fix not in FIX_PARTS
        and {found[fix].state for found in states if fix in found} == {"present", "lacking"}
    ]
    return tuple(
        switch
        for fix in differing
        for switch in _of_fix(fix, first, last, states[0][fix].state == "present")
    )


def _of_fix(fix: str, first: str, last: str, first_has_it: bool) -> Iterator[Switch]:
    ways = CATALOGUE[fix].ways
    for label, has_it, is_first in ((first, first_has_it, True), (last, not first_has_it, False)):
        way, mark = ("revert", "~") if has_it else ("apply", "+")
        if way in ways:
            yield Switch(fix, f"{label}{mark}{fix}", is_first)
