"""Alerts: their status, the run they began with, people's decisions, and groups of one cause.

When an alert opened, resolved and reopened is read off the verdicts themselves
(``alert_timeline``), so that it does not depend on who looked when. Only what people did is kept
(``database.decisions``).

A group is one thing to look into, derived and kept nowhere, as Perfherder folds what one push
caused into one summary (mozilla/treeherder, ``perf/alerts.py``).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from hybridwatch.analysis.alert_decisions import (
    CLOSING,
    UNDECIDED,
    DecisionEntry,
    Decisions,
    Seen,
    SeenPart,
    TriageAction,
)
from hybridwatch.analysis.alert_timeline import CONTROL, RunVerdict, Timeline, area_for
from hybridwatch.analysis.cause import Area, CausePart
from hybridwatch.analysis.policy import Action

_GREW: Final = 2.0
"""An effect more than this many times the one answered is another one."""


class Status(Enum):
    """How an alert stands, in the order of reading."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    MUTED = "muted"
    RELEASE = "release"
    """Of two releases, and unanswered: known for good, so no person has to be called for it."""
    CLOSED = "closed"
    """A person said that nothing is to be done: accepted, invalid or a duplicate."""
    RESOLVED = "resolved"
    NOT_REPEATED = "not repeated"
    """One run alone was bad, and the next is not: luck, or repaired; which of them is not known."""

    @property
    def is_over(self) -> bool:
        """Whether the verdicts say that nothing is bad any more."""
        return self in {Status.RESOLVED, Status.NOT_REPEATED}


class Since(Enum):
    """What became of an alert since a person saw it."""

    NOTHING = "nothing"
    """It is as bad as it was, or better."""
    WORSE = "worse"
    """Another metric blocks, it blocks now where it warned, or an effect grew much larger."""
    BACK = "came back"
    """It was shown good, and is bad again."""


@dataclass(frozen=True, slots=True)
class Alert(Timeline):
    """Bad news about one subject, and what became of it; ``muted_until`` if its status is muted."""

    status: Status
    decisions: Decisions
    muted_until: datetime | None = None

    @property
    def rank(self) -> Action:
        """``BLOCK``, or ``WARN`` for the lower rank."""
        return self.cause.action

    @property
    def seen(self) -> Seen:
        """What a person sees who acts on the alert."""
        newest, lead = self.newest, self.cause.lead
        parts = tuple(SeenPart(p.metric, p.statistic, p.effect) for p in self.cause.parts)
        return Seen(newest.run_id, newest.started_at, lead.verdict, lead.effect, self.rank, parts)


def since(alert: Alert, seen: Seen) -> Since:
    """Say what became of an unresolved alert since a person saw it; ``seen`` has its ``parts``."""
    after = list(_after(seen, alert))
    if any(one.recovers for one in after):
        return Since.BACK
    known = {part.key for part in seen.parts}
    for part in alert.cause.parts:
        joined = part.action is Action.BLOCK and (part.metric, part.statistic) not in known
        if joined or any(_is_worse(one, part, seen) for one in after):
            return Since.WORSE
    return Since.NOTHING


def answered(
    timelines: Iterable[Timeline], decided: Mapping[str, Decisions], now: datetime
) -> tuple[Alert, ...]:
    """Derive every alert there is, by ``now``, which has a time zone.

    Of the newest timelines alone, one that came back counts as still acknowledged. ``decided`` has
    what people did, by the key of the subject, and by the keys that single metrics had when each
    had an alert of its own; others are passed over.

    Open ones come first, then the others as ``Status`` has them; within these what blocks before
    what warns, the most severe area first, the newest before older ones.
    """
    alerts = (_alert(timeline, _decisions(timeline, decided), now) for timeline in timelines)
    return tuple(sorted(alerts, key=_urgency))


def _alert(timeline: Timeline, decisions: Decisions, now: datetime) -> Alert:
    parts = {one.name: getattr(timeline, one.name) for one in fields(Timeline)}
    status, until = _status(timeline, decisions, now)
    return Alert(**parts, status=status, decisions=decisions, muted_until=until)


def _decisions(timeline: Timeline, decided: Mapping[str, Decisions]) -> Decisions:
    if not decided:
        return UNDECIDED
    own = decided.get(timeline.subject.key, UNDECIDED)
    earlier = tuple(_of_metrics(timeline, decided))
    return replace(own, earlier=own.earlier + earlier) if earlier else own


def _of_metrics(timeline: Timeline, decided: Mapping[str, Decisions]) -> Iterator[DecisionEntry]:
    """Yield what was decided about the metrics of an alert when each had one of its own."""
    for question in timeline.questions:
        for entry in decided.get(question.key, UNDECIDED).all:
            if area_for(question.metric, entry.seen.verdict) is timeline.subject.area:
                part = SeenPart(question.metric, question.statistic, entry.seen.effect)
                yield replace(entry, seen=replace(entry.seen, parts=(part,)))


def _status(
    timeline: Timeline, decisions: Decisions, now: datetime
) -> tuple[Status, datetime | None]:
    if timeline.is_over and not _is_doubted(timeline, decisions):
        return Status.NOT_REPEATED if timeline.is_not_repeated else Status.RESOLVED, None
    stopping = [part for part in timeline.cause.parts if part.action is Action.BLOCK]
    needed = stopping or timeline.cause.parts
    answers = {_answer(part, timeline, decisions) for part in needed}
    if answers <= CLOSING:
        return Status.CLOSED, None
    silences = [decisions.about(p.metric, p.statistic).muted_until(now) for p in needed]
    ends = [until for until in silences if until is not None]
    if len(ends) == len(silences):
        return Status.MUTED, min(ends)
    if None not in answers:
        return Status.ACKNOWLEDGED, None
    answer = decisions.answer
    is_requested = answer is not None and answer.decision.action is TriageAction.REOPEN
    is_known = timeline.subject.compares_releases and not is_requested
    return Status.RELEASE if is_known else Status.OPEN, None


def _answer(part: CausePart, timeline: Timeline, decisions: Decisions) -> TriageAction | None:
    """Say how a bad metric was answered; ``None`` if it was not, or the answer no longer holds."""
    entry = decisions.about(part.metric, part.statistic).answer
    if entry is None or entry.decision.action is TriageAction.REOPEN:
        return None
    known = {seen.key for seen in entry.seen.parts}
    if known and part.action is Action.BLOCK and (part.metric, part.statistic) not in known:
        return None  # it joined later
    return entry.decision.action if _still_holds(entry, part, timeline) else None


def _still_holds(entry: DecisionEntry, part: CausePart, timeline: Timeline) -> bool:
    after = list(_after(entry.seen, timeline))
    if entry.decision.action is TriageAction.INVALID:
        return not any(one.cause is not None or one.recovers for one in after)
    if entry.decision.action is not TriageAction.ACCEPT and any(one.recovers for one in after):
        return False  # what comes back after a recovery is news, unless it is the new level
    return not any(_is_worse(one, part, entry.seen) for one in after)


def _after(seen: Seen, timeline: Timeline) -> Iterator[RunVerdict]:
    place = (seen.started_at, seen.run_id)
    return (one for one in timeline.run_verdicts if one.place > place)


def _is_worse(one: RunVerdict, part: CausePart, seen: Seen) -> bool:
    if one.cause is None:
        return False
    if one.cause.action is Action.BLOCK and seen.rank is not Action.BLOCK:
        return True
    lead = one.cause.lead
    if (lead.metric, lead.statistic) != (part.metric, part.statistic) or lead.effect is None:
        return False
    effects = {each.key: each.effect for each in seen.parts}
    before = effects.get((lead.metric, lead.statistic), seen.effect)
    return before is not None and abs(lead.effect) > _GREW * abs(before)


def _is_doubted(timeline: Timeline, decisions: Decisions) -> bool:
    return any(
        entry.decision.action is TriageAction.REOPEN
        and not any(one.recovers for one in _after(entry.seen, timeline))
        for entry in decisions.all
    )


_READING: Final = {status: place for place, status in enumerate(Status)}
_SEVERITY: Final = {area: place for place, area in enumerate(Area)}


def _urgency(alert: Alert) -> tuple[int, bool, int, float, tuple[str, ...]]:
    return (
        _READING[alert.status],
        alert.rank is not Action.BLOCK,
        _SEVERITY[alert.subject.area],
        -alert.opened_by.started_at.timestamp(),
        tuple(alert.subject.facts().values()),
    )


_NIGHT: Final = timedelta(hours=12)
"""What opens more than a night apart stays apart: a build was measured again by then."""


@dataclass(frozen=True, slots=True)
class AlertGroup:
    """Alerts of one cause, the most urgent first, never empty: open as long as one of them is."""

    members: tuple[Alert, ...]

    @property
    def lead(self) -> Alert:
        """The member to name first."""
        return self.members[0]

    @property
    def key(self) -> str:
        """The key of the member that opened first: it stays when others join or recover."""
        return min(self.members, key=_opening).subject.key

    @property
    def status(self) -> Status:
        """How the most urgent member stands."""
        return self.lead.status

    @property
    def rank(self) -> Action:
        """``BLOCK`` if any member that stands so blocks."""
        return self.lead.rank  # among equals, what blocks comes first

    @property
    def current(self) -> tuple[Alert, ...]:
        """The members that are not over; all, once all are. An answer goes to these."""
        left = tuple(one for one in self.members if not one.status.is_over)
        return left or self.members

    @property
    def opened_by(self) -> RunVerdict:
        """The first run that opened a member."""
        return min(self.members, key=_opening).opened_by

    @property
    def newest(self) -> RunVerdict:
        """The newest run of any member."""
        return max((one.newest for one in self.members), key=lambda run_verdict: run_verdict.place)

    @property
    def muted_until(self) -> datetime | None:
        """When the silence of the most urgent member ends; ``None`` if it is not muted."""
        return self.lead.muted_until

    @property
    def version(self) -> int:
        """How many decisions on its members there are."""
        return sum(one.decisions.version for one in self.members)

    @property
    def decisions(self) -> Decisions:
        """Every decision on a member, oldest first; one that was done to several at once is one."""
        if len(self.members) == 1:
            return self.lead.decisions
        alike: dict[object, DecisionEntry] = {}
        for entry in (entry for one in self.members for entry in one.decisions.all):
            alike.setdefault((entry.at, entry.who, entry.decision), entry)
        return Decisions(tuple(sorted(alike.values(), key=lambda entry: entry.at)))


def group_alerts(alerts: Sequence[Alert], builds: Mapping[str, str]) -> tuple[AlertGroup, ...]:
    """Put together the alerts that one build opened in one area in one night.

    Others stay apart: lost answers and a slow-down have two causes as long as it is not shown that
    they have one. ``alerts`` are in the order of ``answered``; the most urgent group comes first.
    ``builds`` says what the contender of a run was, to the commit; others open groups of one.
    """
    nights: defaultdict[tuple[object, ...], list[list[Alert]]] = defaultdict(list)
    for alert in sorted(alerts, key=_opening):
        found = nights[_kind(alert, builds)]
        opened = alert.opened_by.started_at
        if not found or opened - found[-1][0].opened_by.started_at >= _NIGHT:
            found.append([])
        found[-1].append(alert)
    urgency = {id(alert): place for place, alert in enumerate(alerts)}
    groups = [
        AlertGroup(tuple(sorted(one, key=lambda alert: urgency[id(alert)])))
        for found in nights.values()
        for one in found
    ]
    return tuple(sorted(groups, key=lambda group: urgency[id(group.lead)]))


def _kind(alert: Alert, builds: Mapping[str, str]) -> tuple[object, ...]:
    subject = alert.subject
    build = builds.get(alert.opened_by.run_id) or subject.key
    return build, subject.area, subject.compares_releases, alert.cause.lead.metric == CONTROL


def _opening(alert: Alert) -> tuple[datetime, str, str]:
    return (*alert.opened_by.place, alert.subject.key)
