"""The parts of our comment: the verdict, the commands, the newest result, and the state.

Hidden marks part them, and are disarmed in texts; the state is a line right before the last mark.
"""

import base64
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.reports.escape import as_code, escape
from hybridwatch.reports.pull_request import LIMIT, ChangeNews, news_in

MOST_OPEN: Final = 5
"""Commands of one pull request that may wait or run at a time."""
MOST_KEPT: Final = 20
"""Commands that the comment names."""

_FORGOTTEN: Final = timedelta(days=1)
_LONGEST: Final = 300
_STATE_LINE: Final = re.compile(
    r"\n<!-- hybridwatch queue: ([A-Za-z0-9_=-]+) -->\n(?=<!-- [^\n]*\Z)"
)


class RequestState(Enum):
    """Where a command stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


_OPEN: Final = frozenset({RequestState.QUEUED, RequestState.RUNNING})
_Text = Annotated[str, Field(max_length=_LONGEST)]
_Link = Annotated[str, Field(max_length=_LONGEST, pattern=r"^(https?://[A-Za-z0-9._:/-]+)?$")]


class CommentRequest(BaseModel):
    """One command, under the number of its comment, as understood; a refused one as written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    comment: Annotated[int, Field(gt=0)]
    words: Annotated[str, Field(max_length=2 * _LONGEST)]
    who: Annotated[str, Field(max_length=100)]
    at: datetime
    state: RequestState
    note: _Text = ""
    link: _Link = ""

    @property
    def is_open(self) -> bool:
        """Whether it waits or runs."""
        return self.state in _OPEN


class RequestQueue(BaseModel):
    """The commands on one pull request, first one first; up to ``floor`` all were answered."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    floor: Annotated[int, Field(ge=0)] = 0
    asked: Annotated[tuple[CommentRequest, ...], Field(max_length=MOST_KEPT + MOST_OPEN)] = ()

    def is_full(self, now: datetime) -> bool:
        """Whether no other command may wait; a job without an end counts for a day."""
        recent = [one for one in self.asked if one.is_open and now - one.at < _FORGOTTEN]
        return len(recent) >= MOST_OPEN

    def knows(self, comment: int) -> bool:
        """Whether a comment was answered before: webhooks come twice."""
        return comment <= self.floor or any(one.comment == comment for one in self.asked)

    def having(self, new: CommentRequest) -> Self:
        """Add a command, or put it in its place; the oldest that are over make room."""
        others = [one for one in self.asked if one.comment != new.comment]
        asked = sorted([*others, new], key=lambda one: one.comment)
        over = [one for one in asked if not one.is_open]
        gone = {one.comment for one in over[: max(0, len(asked) - MOST_KEPT)]}
        kept = tuple(one for one in asked if one.comment not in gone)
        return self.model_copy(update={"floor": max([self.floor, *gone]), "asked": kept})

    def find(self, comment: int) -> CommentRequest | None:
        """Find a command by the number of its comment."""
        return next((one for one in self.asked if one.comment == comment), None)


def queue_in(body: str | None) -> RequestQueue:
    """Read the state of our comment, the line right before its marker; else an empty queue."""
    found = _STATE_LINE.search((body or "").replace("\r\n", "\n").rstrip())
    if found is None:
        return RequestQueue()
    try:
        return RequestQueue.model_validate_json(base64.urlsafe_b64decode(found[1]))
    except ValueError:  # of base64, or of pydantic
        return RequestQueue()


_ASKED: Final = "<!-- hybridwatch asked -->\n"
_RESULT: Final = "<!-- hybridwatch result -->\n"
_MARK: Final = "<!-- hybridwatch"
_NO_MARK: Final = "<!-\u200b- hybridwatch"
_TOO_LONG: Final = "The result is too long to stand here with the rest; the link above has it.\n"


@dataclass(frozen=True, slots=True)
class OurComment:
    """Our comment; the result is of the newest command that had one, the news is the verdict's."""

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
    """Put our comment together as GitHub takes it; if too long, the result goes first."""
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
    packed = base64.urlsafe_b64encode(comment.queue.model_dump_json().encode()).decode()
    parts.append(f"<!-- hybridwatch queue: {packed} -->\n")
    return "".join([*parts, f"<!-- hybridwatch: {comment.news.value} -->\n"])


def _inert(text: str) -> str:
    return text.strip("\n").replace(_MARK, _NO_MARK)


def _table(queue: RequestQueue) -> str:
    lines = ["**Requested here**", "", "| command | by | when | state |", "|---|---|---|---|"]
    for one in reversed(queue.asked):
        when = f"{one.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        lines.append(f"| {as_code(one.words)} | {escape(one.who)} | {when} | {_state(one)} |")
    return "\n".join([*lines, "", ""])


def _state(one: CommentRequest) -> str:
    word = f"[{one.state.value}]({one.link})" if one.link else one.state.value
    return f"{word}: {escape(one.note)}" if one.note else word
