"""What a run of two engines is for, and what its sides are called for short.

A suite that sees proves it on engines that are bad on purpose, and on two that are equal. Where a
record does not say that a fix was taken out on purpose, the engines decide.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from hybridwatch.records.identity import EngineBuild, FixState
from hybridwatch.scenarios.fixes import FIX_PARTS, FIXES

AT_WORK: Final = frozenset({FixState.PRESENT, FixState.APPLIED})
"""States in which an engine has a fix."""
_PUT_IN: Final = re.compile(r"\+([^~+]+)")


class Role(Enum):
    """What a run of two engines is for."""

    COMPARISON = "comparison"
    """Two engines whose difference is of interest."""
    KNOWN_BAD = "known-bad"
    """The contender is the baseline without a fix: the suite must see it."""
    PLANTED = "planted"
    """The contender has a fault that was put in, to see what a regression does."""
    A_A = "a-a"
    """One engine against itself: the suite must see nothing."""

    @property
    def is_on_purpose(self) -> bool:
        """Whether the contender is bad on purpose: the run says nothing about a new build."""
        return self in {Role.KNOWN_BAD, Role.PLANTED}


def name_role(
    baseline: EngineBuild, contender: EngineBuild, *, known_bad: bool | None = None
) -> Role:
    """Say what a run of two engines is for; ``known_bad`` is as the record says, if it does."""
    if known_bad is not False and is_known_bad(baseline, contender):
        return Role.KNOWN_BAD
    if planted_in(contender):
        return Role.PLANTED
    return Role.A_A if _is_same(baseline, contender) else Role.COMPARISON


def is_known_bad(baseline: EngineBuild, contender: EngineBuild) -> bool:
    """Whether the contender is the baseline of the same release with fixes switched off.

    Between two releases a lost fix is the worst of news, and so is one that is gone from the code
    of the same release: only what was reverted, or applied on the other side alone, was done on
    purpose.
    """
    lost = lost_fixes(baseline.fixes, contender.fixes)
    # A whole is what its parts are, and lacks a switch of its own where the release lacks a part.
    parts = [fix for fix in lost if fix not in FIX_PARTS] or lost
    switched = (
        contender.fixes.get(fix) is FixState.REVERTED or baseline.fixes[fix] is FixState.APPLIED
        for fix in parts
    )
    return baseline.release == contender.release and bool(lost) and all(switched)


def lost_fixes(before: Mapping[str, FixState], after: Mapping[str, FixState]) -> tuple[str, ...]:
    """Name the fixes that the baseline has and the contender has not, in order of their names."""
    return tuple(
        fix
        for fix in sorted(before)
        if before[fix] in AT_WORK and after.get(fix, before[fix]) not in AT_WORK
    )


def planted_in(engine: EngineBuild) -> tuple[str, ...]:
    """Name the faults that an engine's label puts in: whatever it adds that is no fix."""
    words = _PUT_IN.findall(engine.label)
    return tuple(word for word in words if word not in FIXES and word not in engine.fixes)


def _is_same(baseline: EngineBuild, contender: EngineBuild) -> bool:
    return (
        baseline.label == contender.label
        and baseline.release == contender.release
        and dict(baseline.fixes) == dict(contender.fixes)
    )


LONGEST: Final = 48
"""Characters of a label that fit into a line of 80 with what stands next to it."""

_SWITCH: Final = re.compile(r"([~+])([^~+]+)")
_WORDS: Final[Mapping[str, str]] = {"~": "without", "+": "with"}
_NAMED: Final = 2
"""As many switches as are named; more are counted."""
_RELEASED: Final = "released"
_WHOLES: Final = {part: whole for whole, parts in FIX_PARTS.items() for part in parts}


def side_names(labels: Sequence[str]) -> tuple[str, ...]:
    """Name the sides of a run: by label where all labels are short, else by what differs."""
    if all(len(label) <= LONGEST for label in labels):
        return tuple(labels)
    bases = [re.split(r"[~+]", label, maxsplit=1)[0] for label in labels]
    switched = [dict.fromkeys(_SWITCH.findall(label)) for label in labels]
    shared = [one for one in switched[0] if all(one in others for others in switched)]
    one_base = len(set(bases)) == 1 and len(set(labels)) > 1
    names = []
    for base, switches in zip(bases, switched, strict=True):
        own = _changes_text([one for one in switches if one not in shared])
        if one_base and own:
            names.append(own)
        else:
            plain = " ".join(filter(None, (_RELEASED if one_base else base, own)))
            names.append(plain + _counted(shared))
    return tuple(names) if len(set(names)) == len(set(labels)) else tuple(labels)


def _changes_text(switches: Sequence[tuple[str, str]]) -> str:
    phrases = []
    for mark, how in _WORDS.items():
        words = [_short(word) for sign, word in switches if sign == mark]
        if words:
            few = len(words) <= _NAMED
            phrases.append(f"{how} {' and '.join(words) if few else f'{len(words)} fixes'}")
    return ", ".join(phrases)


def _counted(shared: Sequence[tuple[str, str]]) -> str:
    put_in = sum(mark == "+" for mark, _ in shared)
    out = len(shared) - put_in
    phrases = f" + {put_in} fix{'' if put_in == 1 else 'es'}" if put_in else ""
    return f"{phrases}, {out} out" if out else phrases


def _short(word: str) -> str:
    """A part of a fix goes by what it adds to the name of the whole."""
    whole = _WHOLES.get(word)
    return word if whole is None else word.removeprefix(f"{whole}-")
