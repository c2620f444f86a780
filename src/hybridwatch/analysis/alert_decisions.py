"""Decisions of people about alerts: their kinds, their checks, and their effect on an alert.

Texts are kept as written; a screen shows them escaped. Decisions are only ever added.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import TriageError

LONGEST_TEXT: Final = 4000
"""Characters of a reason or a note; a page of text."""
LONGEST_NAME: Final = 100
LONGEST_URL: Final = 2000
LONGEST_MUTE: Final = timedelta(days=366)
"""A longer silence outlives those who requested it."""

_STEERING: Final = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
"""Bidirectional controls: they make a text read as another one."""
_URL: Final = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
"""What RFC 3986 lets a URL consist of; browsers copy addresses in this form."""
_KEY: Final = re.compile(r"(?:[^\s]*[?&]alert=)?([0-9a-f]{32})(?:[&#][^\s]*)?")
"""The key of an alert, alone or in the address of its page."""


class TriageAction(Enum):
    """The kinds of acts; the values are stored."""

    ACKNOWLEDGE = "acknowledge"
    """It is known, for the reason given."""
    LINK = "link"
    """An issue is where it is being worked on; the newest counts."""
    ASSIGN = "assign"
    """A person is to see to it; the newest counts, an empty name is no person."""
    MUTE = "mute"
    """It is not to be heard of until a date."""
    UNMUTE = "unmute"
    NOTE = "note"
    REOPEN = "reopen"
    """Takes back what was answered or muted, and doubts a recovery."""
    ACCEPT = "accept"
    """It is expected: what was measured is the new level, for the reason given."""
    INVALID = "invalid"
    """The measurement was wrong, for the reason given."""
    DUPLICATE = "duplicate"
    """Another alert, or an issue, speaks of the same."""


CLOSING: Final = frozenset({TriageAction.ACCEPT, TriageAction.INVALID, TriageAction.DUPLICATE})
"""After these nothing is left to be done."""
ANSWERS: Final = frozenset({TriageAction.ACKNOWLEDGE, TriageAction.REOPEN, *CLOSING})
"""What says what is to become of an alert; the newest counts."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision, fit to be kept; made by ``make_decision``. ``until`` is when a mute ends."""

    action: TriageAction
    text: str = ""
    until: datetime | None = None


def make_decision(
    action: TriageAction, text: str, until: datetime | None, now: datetime
) -> Decision:
    """Make a decision of any kind; a ``TriageError`` says why it may not be said like this.

    ``text`` is a reason (may be empty for all but answers), a note, a name (empty for no person),
    or the ``https`` address of an issue, without a user's name or password. A duplicate takes the
    other alert's key or address, of which its key is kept, or the address of an issue. ``until`` is
    when a mute ends, at most a year ahead, and ``None`` for all else; both times have a time zone.
    """
    if until is not None and action is not TriageAction.MUTE:
        raise TriageError(f"until: expected no end of {action.value}, found {until.isoformat()}")
    match action:
        case TriageAction.MUTE:
            end = _checked_end(until, now)
            return Decision(action, _checked("reason", text) if text else "", end)
        case TriageAction.LINK:
            return Decision(action, _checked_issue(text))
        case TriageAction.DUPLICATE:
            return Decision(action, _checked_other(text))
        case TriageAction.ASSIGN:
            return Decision(action, checked_name("assignee", text) if text else "")
        case TriageAction.NOTE:
            return Decision(action, _checked("note", text))
        case TriageAction.UNMUTE | TriageAction.REOPEN if not text:
            return Decision(action)
        case _:
            return Decision(action, _checked("reason", text))


def _checked_other(of: str) -> str:
    found = _KEY.fullmatch(of.strip())
    if found is not None:
        return found[1]
    try:
        return _checked_issue(of)
    except TriageError as error:
        raise TriageError(
            "duplicate of: expected the key or the address of an alert, or that of an issue, "
            f"found {of[:LONGEST_NAME]!r}"
        ) from error


def _checked_issue(url: str) -> str:
    if len(url) > LONGEST_URL:
        raise TriageError(f"issue: expected at most {LONGEST_URL} characters, found {len(url)}")
    if not _URL.fullmatch(url) or not _leads_somewhere(url):
        raise TriageError(
            "issue: expected an address such as https://github.com/vllm-project/vllm/issues/1, "
            f"without spaces, user or password, found {url[:LONGEST_NAME]!r}"
        )
    return url


def _checked_end(until: datetime | None, now: datetime) -> datetime:
    if until is None:
        raise TriageError("mute: expected a day, found none")
    if until.tzinfo is None:
        raise TriageError(f"mute: expected a date with a time zone, found {until.isoformat()}")
    if not now < until <= now + LONGEST_MUTE:
        raise TriageError(
            f"mute: expected an end within the next {LONGEST_MUTE.days} days, found "
            f"{until.isoformat(sep=' ', timespec='minutes')}"
        )
    return until.astimezone(UTC)


def check_other(decision: Decision, key: str) -> None:
    """Check that an alert is not called a duplicate of itself."""
    if decision.action is TriageAction.DUPLICATE and decision.text == key:
        raise TriageError("duplicate of: expected another alert, found this one")


def checked_name(what: str, name: str) -> str:
    """Check a person's name: one line that shows as it is."""
    return _checked(what, name, LONGEST_NAME, allowed="")


def _checked(what: str, text: str, longest: int = LONGEST_TEXT, *, allowed: str = "\n\t") -> str:
    if not text.strip():
        raise TriageError(f"{what}: expected some words, found none")
    if len(text) > longest:
        raise TriageError(f"{what}: expected at most {longest} characters, found {len(text)}")
    for place, mark in enumerate(text):
        if mark not in allowed and _steers(mark):
            raise TriageError(
                f"{what}: expected plain text, found the control character U+{ord(mark):04X} "
                f"at position {place + 1}"
            )
    return text


def _steers(mark: str) -> bool:
    """Whether a character steers a display, or (surrogates) cannot be stored."""
    odd = unicodedata.category(mark) in {"Cc", "Cs", "Zl", "Zp"}
    return odd or unicodedata.bidirectional(mark) in _STEERING


def _leads_somewhere(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port  # read for its check
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc


@dataclass(frozen=True, slots=True)
class SeenPart:
    """A bad metric of an alert that a person acted on."""

    metric: str
    statistic: str
    effect: float | None

    @property
    def key(self) -> tuple[str, str]:
        """What distinguishes it from the other metrics of its alert."""
        return self.metric, self.statistic


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of an alert that a person acted on; later verdicts are compared with it.

    ``run_id`` is the newest run that had been judged. ``parts`` has every bad metric, the leading
    one first; empty where that is not known, which stands for whatever was bad.
    """

    run_id: str
    started_at: datetime
    verdict: Verdict
    effect: float | None
    rank: Action
    parts: tuple[SeenPart, ...] = ()


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """A stored decision, the ``number``-th on its alert from 1; ``at`` is in UTC."""

    number: int
    at: datetime
    who: str
    decision: Decision
    seen: Seen


@dataclass(frozen=True, slots=True)
class Decisions:
    """Every decision on one alert, and ``earlier`` ones on its metrics or builds; oldest first."""

    entries: tuple[DecisionEntry, ...] = ()
    earlier: tuple[DecisionEntry, ...] = ()

    @property
    def version(self) -> int:
        """How many decisions on the alert there are; the next one names it: none is missed."""
        return len(self.entries)

    @property
    def all(self) -> tuple[DecisionEntry, ...]:
        """Every decision, those on parts of it too, oldest first."""
        return (*sorted(self.earlier, key=lambda entry: entry.at), *self.entries)

    @property
    def issue(self) -> str:
        """URL of the issue linked last; empty without."""
        return self._text(TriageAction.LINK)

    @property
    def assignee(self) -> str:
        """Who sees to it; empty for no person."""
        return self._text(TriageAction.ASSIGN)

    @property
    def notes(self) -> tuple[DecisionEntry, ...]:
        """Every note, oldest first."""
        return tuple(entry for entry in self.all if entry.decision.action is TriageAction.NOTE)

    @property
    def answer(self) -> DecisionEntry | None:
        """The newest decision that says what is to become of the alert."""
        return self._newest(*ANSWERS)

    def about(self, metric: str, statistic: str) -> "Decisions":
        """Leave out the decisions on other single metrics."""
        kept = (e for e in self.earlier if (metric, statistic) in {p.key for p in e.seen.parts})
        return Decisions(self.entries, tuple(kept))

    def muted_until(self, now: datetime) -> datetime | None:
        """When the silence ends that holds now; ``None`` if none does."""
        entry = self._newest(TriageAction.MUTE, TriageAction.UNMUTE, TriageAction.REOPEN)
        until = entry.decision.until if entry else None
        return until if until and now < until else None

    def _newest(self, *actions: TriageAction) -> DecisionEntry | None:
        return next((e for e in reversed(self.all) if e.decision.action in actions), None)

    def _text(self, action: TriageAction) -> str:
        entry = self._newest(action)
        return entry.decision.text if entry else ""


UNDECIDED = Decisions()
"""Nothing was done yet."""


class TriageConflict(TriageError):  # noqa: N818 (no fault but an answer)
    """Another person acted on the alert meanwhile; nothing was kept.

    ``meanwhile`` is what they did, oldest first; empty if the version named was never reached.
    ``decisions`` are all until now.
    """

    def __init__(self, decisions: Decisions, seen_version: int) -> None:
        self.decisions = decisions
        self.meanwhile = decisions.entries[seen_version:]
        entries = (
            f"{one.who} ({one.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC): {one.decision.action.value}"
            for one in self.meanwhile
        )
        super().__init__(
            "nothing was kept, because another person acted on this alert meanwhile: "
            + ("; ".join(entries) or "look at it again")
        )
