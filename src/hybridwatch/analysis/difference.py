"""What differs between two sides besides the label of the build: the suspects of a change."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.verdict import FailedTrial
from hybridwatch.record.identity import EngineBuild

_ABSENT = "unset"
_UNKNOWN = "not recorded"
_NAMED = 3
"""Patched files that are named; more are counted."""


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
    old_fixes = {fix: state.value for fix, state in left.fixes.items()}
    new_fixes = {fix: state.value for fix, state in right.fixes.items()}
    yield from _together("fix ", old_fixes, new_fixes)
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


def failed_trials_of(baseline: OneSide, contender: OneSide) -> tuple[FailedTrial, ...]:
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
