"""What was asked on a pull request, as the bot's own comment keeps it out of sight.

The state is one line of the comment, right before its marker. Who can write there is GitHub's
business: the comment is found by the number of its author, and only people with write access can
edit it. It is read strictly all the same; what does not fit is no state.
"""

import base64
import binascii
import re
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
    """One command.

    Attributes:
        comment: The number of the comment that asked; the command's name.
        words: The command as it was understood; of a refused one as it was written.
        who: Name of the account.
        at: When it was asked.
        state: Where it stands.
        note: Why it was refused or failed, or what else there is to say in a line.
        link: Where it runs; empty for nowhere.
    """

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
    """What was asked on one pull request.

    Attributes:
        version: Of this form.
        floor: Every comment up to this number was answered, and is not named any more.
        asked: The commands, the first one first.
    """

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
        """Add a command, or put it in the place of what was known of it.

        The oldest that are over make room.
        """
        others = [one for one in self.asked if one.comment != new.comment]
        asked = sorted([*others, new], key=lambda one: one.comment)
        over = [one for one in asked if not one.is_open]
        gone = {one.comment for one in over[: max(0, len(asked) - MOST_KEPT)]}
        kept = tuple(one for one in asked if one.comment not in gone)
        return self.model_copy(update={"floor": max([self.floor, *gone]), "asked": kept})

    def find(self, comment: int) -> CommentRequest | None:
        """Give a command by the comment that asked."""
        return next((one for one in self.asked if one.comment == comment), None)


def state_line(queue: RequestQueue) -> str:
    """Write the state as a hidden line."""
    packed = base64.urlsafe_b64encode(queue.model_dump_json().encode()).decode()
    return f"<!-- hybridwatch queue: {packed} -->\n"


def queue_in(body: str | None) -> RequestQueue:
    """Read the state of our comment; an empty queue where there is none.

    Only the line right before the marker counts: whatever records and commands left above it is
    anybody's word.
    """
    found = _STATE_LINE.search((body or "").replace("\r\n", "\n").rstrip())
    if found is None:
        return RequestQueue()
    try:
        return RequestQueue.model_validate_json(base64.urlsafe_b64decode(found[1]))
    except (ValidationError, binascii.Error, ValueError):
        return RequestQueue()
