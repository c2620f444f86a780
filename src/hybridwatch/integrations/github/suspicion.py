"""Comments on the pull requests whose commits a search suspects.

Of a few commits each gets one; of many none does: nearly all would get a wrong message.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from github import GithubException

from hybridwatch.analysis.difference import CommitRange
from hybridwatch.integrations.github.client import GitHubClient, PullRequest, RepositoryAccess
from hybridwatch.orchestration.bisect.journal import Culprit, SearchAnswer, Suspect
from hybridwatch.orchestration.bisect.question import ChangeDirection
from hybridwatch.reports.escape import as_code, as_item, escape, fenced

_NAMED: Final = 10
_DIGITS: Final = 10
"""Of a commit."""
_WORDS: Final = {ChangeDirection.REGRESSION: "worse", ChangeDirection.FIX: "better"}
MOST: Final = 3
"""Most suspects whose pull requests get a comment; of more, none do."""
_MARKER: Final = re.compile(r"<!-- hybridwatch suspect: ([0-9a-f]{40}) (one|some) -->\s*\Z")
_HINTS: Final = {
    401: "the token in GITHUB_TOKEN is not valid",
    403: "the token in GITHUB_TOKEN may not do this: it takes the permission "
    "`pull-requests: write`",
}
_UNKNOWN: Final = frozenset({404, 409, 422})
"""How GitHub says that a repository has no such commit."""


def answer_text(found: SearchAnswer) -> str:
    """Render the answer of a requested search."""
    answer = found.answer
    if answer is None:
        return "The change is not there: the ends do not differ in this way."
    what = f"{as_code(answer.metric)} became {_WORDS[answer.find]}{_size(answer)}"
    place = f"between {_end(answer.good)} and {_end(answer.bad)}"
    named = answer.culprit
    head = f"**{what} with {_name(named)}.**" if named else f"**{what} {place}.**"
    return "\n\n".join([head, "\n".join(_facts(found, answer)), *_repeat(found)])


def suspicion_text(found: SearchAnswer, suspect: Suspect) -> str:
    """Say to the author of a change what it did, or that it is one of a few that may have."""
    answer = found.answer
    assert answer is not None  # noqa: S101 - there are suspects
    what = f"{as_code(answer.metric)} became {_WORDS[answer.find]}{_size(answer)}"
    where = f"in {as_code(found.scenario)}"
    others = [one for one in found.suspects if one != suspect]
    by = f"with one of {len(others) + 1} commits, of which this is one" if others else "with this"
    head = f"**{what} {where} {by}: {_name(suspect)}.**"
    footer = f"hybridwatch {version('hybridwatch')}; `hybridwatch suspects` wrote this once"
    facts = "\n".join(_facts(found, answer))
    return "\n\n".join([head, facts, *_repeat(found), f"<sub>{footer}</sub>"])


def _facts(found: SearchAnswer, answer: Culprit) -> Iterator[str]:
    yield f"- before: {_end(answer.good)}"
    if all(Suspect(name=end).is_commit for end in (answer.good, answer.bad)):
        commits = CommitRange(answer.good[:_DIGITS], answer.bad[:_DIGITS], len(answer.suspects))
        yield f"- commits that were left: {as_code(commits.text)}{commits.size}"
    if answer.certainty is not None:
        yield f"- how sure: {answer.certainty:.1%}, by all sessions of the search"
    if (sure := found.confirmation) is not None:
        word = "confirmed" if sure.holds else "NOT confirmed"
        yield as_item(f"the pair measured again, {word}: {sure.seen}")
    if answer.culprit is None:
        suspects = [_name(one) for one in answer.suspects[:_NAMED]]
        more = len(answer.suspects) - len(suspects)
        yield f"- not distinguished: {', '.join(suspects)}{f' and {more} more' if more else ''}"


def _size(answer: Culprit) -> str:
    if answer.effect is None:
        return ""
    if answer.interval is None:
        return f" ({answer.effect:+.1%})"
    low, high = answer.interval
    return f" ({answer.effect:+.1%}; with 95 % between {low:+.1%} and {high:+.1%})"


def _end(name: str) -> str:
    return _name(Suspect(name=name))


def _name(suspect: Suspect) -> str:
    name = suspect.name[:_DIGITS] if suspect.is_commit else suspect.name
    return f"{as_code(name)} {escape(suspect.title, 100)}".rstrip()


def _repeat(found: SearchAnswer) -> Iterator[str]:
    if found.repeat:
        yield f"To measure it again:\n\n{fenced(found.repeat)}"


@dataclass(frozen=True, slots=True)
class SuspectNotice:
    """What became of a suspect: ``posted``, ``edited``, ``silent`` (said before), or why not."""

    suspect: Suspect
    number: int | None
    done: str


def hindrance(found: SearchAnswer) -> str:
    """Say why no pull request gets a comment on what a search found; empty if some do."""
    if found.answer is None or not found.suspects:
        return "nothing was confirmed"
    if found.answer.find is not ChangeDirection.REGRESSION:
        return "it was a fix that was looked for"
    if not all(one.is_commit for one in found.suspects):
        return "it names a release, not a commit: search on with --repo"
    if len(found.suspects) > MOST:
        commits = f"{len(found.suspects)} commits could not be distinguished"
        return f"{commits}; at most {MOST} get a comment"
    return ""


def notify_authors(
    access: RepositoryAccess, repository: str, found: SearchAnswer
) -> Iterator[SuspectNotice]:
    """Comment on each suspect's pull request once, and again if it is the one of a few."""
    client = GitHubClient(access, repository, _HINTS)
    kind = "one" if len(found.suspects) == 1 else "some"
    for suspect in found.suspects:
        number = _find_pull_request(client, repository, suspect.name)
        if number is None:
            yield SuspectNotice(suspect, None, "no merged pull request has this commit")
            continue
        marker = f"<!-- hybridwatch suspect: {suspect.name} {kind} -->"
        text = f"{suspicion_text(found, suspect)}\n\n{marker}\n"
        pull = PullRequest(access, repository, number)
        yield SuspectNotice(suspect, number, _post(pull, suspect, kind, text))


def _post(pull: PullRequest, suspect: Suspect, kind: str, text: str) -> str:
    def kind_in(body: str) -> str | None:
        found = _MARKER.search(body)
        return found[2] if found and found[1] == suspect.name else None

    def text_after(body: str | None) -> str | None:
        posted = None if body is None else kind_in(body)
        return None if posted == "one" or posted == kind else text

    return pull.comment(lambda body: kind_in(body) is not None, text_after)


def _find_pull_request(client: GitHubClient, repository: str, sha: str) -> int | None:
    with client.errors(f"read the pull requests of commit {sha[:12]} of"):
        try:
            pulls = list(client.github.get_repo(repository).get_commit(sha).get_pulls())
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
