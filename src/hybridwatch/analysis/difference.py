"""What differs between two sides besides the label of the build: the suspects of a change."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.verdict import FailedTrial
from hybridwatch.records.identity import EngineBuild, FixState
from hybridwatch.scenarios.fixes import CATALOGUE

_ABSENT = "unset"
_UNKNOWN = "not recorded"
_NAMED = 3
"""Patched files that are named; more are counted."""
_READ: Final = frozenset({FixState.PRESENT, FixState.LACKING, FixState.NOT_APPLICABLE})
"""States that a probe has read from the code, and that were not switched."""
_FILE: Final = re.compile(r"[\w/]+\.py")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is known of both sides.

    Attributes:
        what: Such as ``fix padded-rows-prefilling``, ``flag --max-num-seqs`` or ``testbed cores``.
        old: Of the baseline.
        new: Of the contender.
    """

    what: str
    old: str
    new: str

    @property
    def differs(self) -> bool:
        """Whether the sides disagree."""
        return self.old != self.new


def differences_between(baseline: OneSide, contender: OneSide) -> tuple[str, ...]:
    """List every differing fact, one line each: fixes, flags, release, packages, machine."""
    facts = facts_between(baseline, contender)
    return tuple(f"{fact.what}: {fact.old} -> {fact.new}" for fact in facts if fact.differs)


def facts_between(baseline: OneSide, contender: OneSide) -> Iterator[Fact]:
    """Yield what is known of both sides' engines and machines, whether or not it differs."""
    left, right = baseline.build, contender.build
    yield from _together("fix ", _fixes(left, right), _fixes(right, left))
    yield from _together("flag ", left.flags, right.flags)
    for name in ("release", "distribution", "accelerator"):
        yield Fact(name, getattr(left, name), getattr(right, name))
    yield Fact("lock", left.lock_digest[:12], right.lock_digest[:12])
    yield Fact("wheel", left.wheel_digest[:12], right.wheel_digest[:12])
    if left.code_digest or right.code_digest:
        yield Fact("vLLM's Python files", _short(left.code_digest), _short(right.code_digest))
    if left.changed_files or right.changed_files:
        yield Fact("patched Python files", _patched(left), _patched(right))
    if left.revision or right.revision:
        yield Fact("revision", _revision(left), _revision(right))
    for field in fields(baseline.run.testbed):
        old = getattr(baseline.run.testbed, field.name)
        new = getattr(contender.run.testbed, field.name)
        yield Fact(f"testbed {field.name}", _text(old), _text(new))


def find_failed_trials(baseline: OneSide, contender: OneSide) -> tuple[FailedTrial, ...]:
    """List every failed trial, the baseline's first."""
    return tuple(
        FailedTrial(
            side=name,
            phase=trial.phase,
            index=trial.index,
            reason=trial.failure.reason,
            log_tail=trial.failure.log_tail,
            engine_died=trial.failure.engine_died,
        )
        for name, side in (("baseline", baseline), ("contender", contender))
        for trial in side.run.failed(side.index)
        if trial.failure is not None
    )


def _fixes(build: EngineBuild, other: EngineBuild) -> dict[str, str]:
    """Say where each fix stands in an engine.

    Of one release two readings can only differ where the code that decides was edited. The probe
    does not know those lines, and its guess is nothing to accuse a build of.
    """
    return {
        fix: f"unknown, changed in {_edited(build, fix)}"
        if build.changed_files
        and build.release == other.release
        and {state, other.fixes.get(fix, state)} <= _READ
        and state is not other.fixes.get(fix, state)
        else state.value
        for fix, state in build.fixes.items()
    }


def _edited(build: EngineBuild, fix: str) -> str:
    """Name the edited files that decide about a fix; all that were edited where none is known."""
    target = CATALOGUE[fix].target if fix in CATALOGUE else ""
    named = [file for file in _FILE.findall(target) if file in (build.changed_files or ())]
    return ", ".join(dict.fromkeys(named)) or _patched(build)


def _together(prefix: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Fact]:
    for key in sorted(old.keys() | new.keys()):
        yield Fact(prefix + key, old.get(key, _ABSENT), new.get(key, _ABSENT))


def _short(digest: str | None) -> str:
    return digest[:12] if digest else _UNKNOWN


def _patched(build: EngineBuild) -> str:
    if build.changed_files is None:
        return _UNKNOWN
    few = list(build.changed_files[:_NAMED])
    more = len(build.changed_files) - len(few)
    return ", ".join(few + ([f"{more} more"] if more else [])) or "none"


def _revision(build: EngineBuild) -> str:
    if build.revision is None:
        return _ABSENT
    changes = f", changes {build.diff_digest[:8]}" if build.diff_digest else ""
    return f"{build.revision[:12]}{changes}"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return _ABSENT if value is None else str(value)
