"""One comment on each pull request whose commit a confirmed search names.

Where a search leaves a few commits, each of their pull requests gets it: people who know what they
changed tell them apart faster than a night of measuring. Where it leaves many, none does: nearly
all of them would be told something wrong.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from github import GithubException

from hybridwatch.integrations.github.culprit_text import suspicion_text
from hybridwatch.integrations.github.door import Access, Door
from hybridwatch.integrations.github.pull_request import PullRequest
from hybridwatch.orchestration.bisect.answer_file import SearchAnswer, Suspect
from hybridwatch.orchestration.bisect.question import Wanted

MOST: Final = 3
"""Suspects that are told; of more, nobody is."""

_MARKER: Final = re.compile(r"<!-- hybridwatch suspect: ([0-9a-f]{40}) (one|some) -->\s*\Z")
_HINTS: Final = {
    401: "the token in GITHUB_TOKEN is not valid",
    403: "the token in GITHUB_TOKEN may not do this: it takes the permission "
    "`pull-requests: write`",
}
_RETRIED: Final = frozenset({"GET"})
_UNKNOWN: Final = frozenset({404, 409, 422})
"""How GitHub says that a repository has no such commit."""


@dataclass(frozen=True, slots=True)
class Telling:
    """What became of a suspect.

    Attributes:
        suspect: The commit.
        number: Of its pull request; ``None`` if none that was merged has it.
        done: ``posted``, ``edited``, ``silent`` (told before), or why there is no comment.
    """

    suspect: Suspect
    number: int | None
    done: str


def hindrance(found: SearchAnswer) -> str:
    """Say why nobody is told of what a search found; empty if somebody is to be."""
    if found.answer is None or not found.suspects:
        return "nothing was confirmed"
    if found.answer.find is not Wanted.REGRESSION:
        return "it was a fix that was looked for"
    if not all(one.is_commit for one in found.suspects):
        return "it names a release, not a commit: search on with --repo"
    if len(found.suspects) > MOST:
        return f"{len(found.suspects)} commits could not be told apart; at most {MOST} are told"
    return ""


def tell_authors(access: Access, repository: str, found: SearchAnswer) -> Iterator[Telling]:
    """Comment on the pull request of each suspect, unless it was told before.

    A pull request that was told to be one of a few hears it again when it is the one.

    Args:
        access: How to get in.
        repository: ``owner/name``.
        found: Without a ``hindrance``.

    Raises:
        GithubError: GitHub refuses us.
    """
    door = Door(access, repository, _RETRIED, _HINTS)
    kind = "one" if len(found.suspects) == 1 else "some"
    for suspect in found.suspects:
        number = _pull_request_of(door, repository, suspect.name)
        if number is None:
            yield Telling(suspect, None, "no merged pull request has this commit")
            continue
        marker = f"<!-- hybridwatch suspect: {suspect.name} {kind} -->"
        text = f"{suspicion_text(found, suspect)}\n\n{marker}\n"
        pull = PullRequest(access, repository, number)
        yield Telling(suspect, number, _tell(pull, suspect, kind, text))


def _tell(pull: PullRequest, suspect: Suspect, kind: str, text: str) -> str:
    def kind_in(body: str) -> str | None:
        found = _MARKER.search(body)
        return found[2] if found and found[1] == suspect.name else None

    def text_after(body: str | None) -> str | None:
        said = None if body is None else kind_in(body)
        return None if said == "one" or said == kind else text

    return pull.comment(lambda body: kind_in(body) is not None, text_after)


def _pull_request_of(door: Door, repository: str, sha: str) -> int | None:
    """Give the first merged pull request that has a commit."""
    with door.errors(f"read the pull requests of commit {sha[:12]} of"):
        try:
            pulls = list(door.github.get_repo(repository).get_commit(sha).get_pulls())
        except GithubException as error:
            if error.status in _UNKNOWN:
                return None
            raise
        merged = [
            pull.number
            for pull in pulls
            if pull.merged_at is not None and pull.base.repo.full_name.lower() == repository.lower()
        ]
        return min(merged, default=None)
