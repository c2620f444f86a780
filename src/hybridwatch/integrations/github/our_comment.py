"""The parts of our one comment: the verdict, what was asked, its newest result, and the state.

``hybridwatch comment`` writes the verdict and leaves the rest alone, ``hybridwatch answer`` does
the reverse. Hidden marks part them; in what records and commands left there a mark is written so
that it is none.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Final

from hybridwatch.integrations.github.requests import (
    CommentRequest,
    RequestQueue,
    queue_in,
    state_line,
)
from hybridwatch.reports.escape import as_code, escape
from hybridwatch.reports.pull_request import LIMIT, ChangeNews, news_in

_ASKED: Final = "<!-- hybridwatch asked -->\n"
_RESULT: Final = "<!-- hybridwatch result -->\n"
_MARK: Final = "<!-- hybridwatch"
_NO_MARK: Final = "<!-\u200b- hybridwatch"
_TOO_LONG: Final = "The result is too long to stand here beside the rest; the link above has it.\n"


@dataclass(frozen=True, slots=True)
class OurComment:
    """Our comment.

    Attributes:
        verdict: Markdown; empty while nothing was measured.
        result: Of the newest command that had one, Markdown; may be empty.
        news: What the verdict brought.
    """

    verdict: str = ""
    result: str = ""
    queue: RequestQueue = field(default_factory=RequestQueue)
    news: ChangeNews = ChangeNews.ASKED


def read_comment(body: str | None) -> OurComment:
    """Take our comment apart; ``None`` for one that is not there yet."""
    if body is None:
        return OurComment()
    text = body.replace("\r\n", "\n")
    news = news_in(text) or ChangeNews.ASKED
    shown = text.rstrip().rpartition("\n")[0]
    queue = queue_in(text)
    if not queue.asked:
        return OurComment(shown.strip("\n"), news=news)
    verdict, _, rest = shown.rpartition("\n")[0].partition(_ASKED)
    return OurComment(verdict.strip("\n"), rest.partition(_RESULT)[2].strip("\n"), queue, news)


def with_verdict(body: str | None, text: str) -> str:
    """Put a verdict, with its marker as the last line, into our comment; ``None`` for none yet."""
    now = read_comment(body)
    if not now.queue.asked:
        return text
    verdict = text.rstrip().rpartition("\n")[0]
    return write_comment(replace(now, verdict=verdict, news=news_in(text) or ChangeNews.ASKED))


def write_comment(comment: OurComment) -> str:
    """Put our comment together, as much of it as GitHub takes.

    A result that is too long goes first, then all of the verdict but its first line.
    """
    first = comment.verdict.partition("\n")[0]
    forms = (
        comment,
        replace(comment, result=_TOO_LONG),
        replace(comment, result=_TOO_LONG, verdict=first),
    )
    texts = map(_joined, forms)
    return next((text for text in texts if len(text.encode()) <= LIMIT), _joined(forms[-1]))


def _joined(comment: OurComment) -> str:
    parts = [f"{_inert(comment.verdict)}\n\n"] if comment.verdict else []
    parts += [_ASKED, _table(comment.queue)]
    if comment.result:
        parts += [_RESULT, _inert(comment.result), "\n\n"]
    return "".join(
        [*parts, state_line(comment.queue), f"<!-- hybridwatch: {comment.news.value} -->\n"]
    )


def _inert(text: str) -> str:
    return text.strip("\n").replace(_MARK, _NO_MARK)


def _table(queue: RequestQueue) -> str:
    head = ["**Requested here**", "", "| command | by | when | state |", "|---|---|---|---|"]
    return "\n".join([*head, *_rows(queue), "", ""])


def _rows(queue: RequestQueue) -> Iterator[str]:
    for one in reversed(queue.asked):
        when = f"{one.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        yield f"| {as_code(one.words)} | {escape(one.who)} | {when} | {_state(one)} |"


def _state(one: CommentRequest) -> str:
    word = f"[{one.state.value}]({one.link})" if one.link else one.state.value
    return f"{word}: {escape(one.note)}" if one.note else word
