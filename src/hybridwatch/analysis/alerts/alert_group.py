"""Alerts of one cause together: what one build did in one area in one night, wherever it shows.

A slow-down that four scenarios show on three machines is one thing to look into, as Perfherder
folds what one push caused into one summary (mozilla/treeherder, ``perf/alerts.py``). Each alert
keeps its own state and its own answers; a group is derived from them and kept nowhere.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from hybridwatch.analysis.alerts.alert_key import CONTROL
from hybridwatch.analysis.alerts.alerts import Alert, Status
from hybridwatch.analysis.alerts.decisions import DecisionEntry, Decisions
from hybridwatch.analysis.alerts.timeline import RunVerdict
from hybridwatch.analysis.policy import Action

_NIGHT: Final = timedelta(hours=12)
"""A build that is measured again after a night has had its chance to be seen; what opens then
stays apart."""
_Kind: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class AlertGroup:
    """One cause; an alert that stands alone is a group of one.

    Attributes:
        members: Never empty, the most urgent first: open as long as one of them is.
    """

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
        every = (entry for one in self.members for entry in one.decisions.all)
        alike: dict[object, DecisionEntry] = {}
        for entry in every:
            alike.setdefault((entry.at, entry.who, entry.decision), entry)
        return Decisions(tuple(sorted(alike.values(), key=lambda entry: entry.at)))


def group_alerts(alerts: Sequence[Alert], builds: Mapping[str, str]) -> tuple[AlertGroup, ...]:
    """Put together the alerts that one build opened in one area in one night.

    Other nights, builds and areas stay apart: lost answers and a slow-down have two causes as long
    as it is not shown that they have one.

    ``alerts`` are in the order of ``answered``. ``builds`` says what the contender of a run was, to
    the commit; runs that are not there open alerts that stand alone. The most urgent group comes
    first.
    """
    nights: defaultdict[_Kind, list[list[Alert]]] = defaultdict(list)
    for alert in sorted(alerts, key=_opening):
        found = nights[_kind(alert, builds)]
        opened = alert.opened_by.started_at
        if not found or opened - found[-1][0].opened_by.started_at >= _NIGHT:
            found.append([])
        found[-1].append(alert)
    urgency = {alert.subject.key: place for place, alert in enumerate(alerts)}

    def place(alert: Alert) -> int:
        return urgency[alert.subject.key]

    groups = [
        AlertGroup(tuple(sorted(one, key=place))) for found in nights.values() for one in found
    ]
    return tuple(sorted(groups, key=lambda group: place(group.lead)))


def _kind(alert: Alert, builds: Mapping[str, str]) -> _Kind:
    subject = alert.subject
    build = builds.get(alert.opened_by.run_id) or subject.key
    return build, subject.area, subject.compares_releases, alert.cause.lead.metric == CONTROL


def _opening(alert: Alert) -> tuple[datetime, str, str]:
    return (*alert.opened_by.place, alert.subject.key)
