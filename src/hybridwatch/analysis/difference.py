"""What differs between two sides besides the label of the build: the suspects of a change."""

from collections.abc import Iterator, Mapping
from dataclasses import fields

from hybridwatch.analysis.one_side import OneSide

_ABSENT = "unset"


def differences_between(baseline: OneSide, contender: OneSide) -> tuple[str, ...]:
    """List every differing fact, one line each: fixes, flags, release, packages, machine."""
    return tuple(_lines(baseline, contender))


def failures_of(baseline: OneSide, contender: OneSide) -> tuple[str, ...]:
    """List the reason of every failed trial, one line each, the baseline's first."""
    return tuple(
        f"{name}, {trial.phase.value} trial {trial.index}: {trial.failure.reason}"
        for name, side in (("baseline", baseline), ("contender", contender))
        for trial in side.run.failed(side.index)
        if trial.failure is not None
    )


def _lines(baseline: OneSide, contender: OneSide) -> Iterator[str]:
    left, right = baseline.build, contender.build
    old_fixes = {fix: state.value for fix, state in left.fixes.items()}
    new_fixes = {fix: state.value for fix, state in right.fixes.items()}
    yield from _changes("fix ", old_fixes, new_fixes)
    yield from _changes("flag ", left.flags, right.flags)
    for name in ("release", "distribution", "accelerator"):
        yield from _change(name, getattr(left, name), getattr(right, name))
    yield from _change("lock", left.lock_digest[:12], right.lock_digest[:12])
    yield from _change("wheel", left.wheel_digest[:12], right.wheel_digest[:12])
    for field in fields(baseline.run.testbed):
        old = getattr(baseline.run.testbed, field.name)
        new = getattr(contender.run.testbed, field.name)
        yield from _change(f"testbed {field.name}", _text(old), _text(new))


def _changes(prefix: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for key in sorted(old.keys() | new.keys()):
        yield from _change(prefix + key, old.get(key, _ABSENT), new.get(key, _ABSENT))


def _change(what: str, old: str, new: str) -> Iterator[str]:
    if old != new:
        yield f"{what}: {old} -> {new}"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return _ABSENT if value is None else str(value)
