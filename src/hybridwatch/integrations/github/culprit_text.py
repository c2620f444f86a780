"""What a search found, in Markdown: on the pull request that asked, and on the one that did it."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Final

from hybridwatch.analysis.culprit import CommitRange
from hybridwatch.orchestration.bisect.answer_file import Culprit, SearchAnswer, Suspect
from hybridwatch.orchestration.bisect.question import Wanted
from hybridwatch.reports.escape import as_code, as_item, escape, fenced

_NAMED: Final = 10
_DIGITS: Final = 10
"""Of a commit."""
_WORDS: Final = {Wanted.REGRESSION: "worse", Wanted.FIX: "better"}


def answer_text(found: SearchAnswer) -> str:
    """Say what came of a search that somebody asked for."""
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
        yield as_item(f"the pair measured anew, {word}: {sure.seen}")
    if answer.culprit is None:
        suspects = [_name(one) for one in answer.suspects[:_NAMED]]
        more = len(answer.suspects) - len(suspects)
        yield f"- not told apart: {', '.join(suspects)}{f' and {more} more' if more else ''}"


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
