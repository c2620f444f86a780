"""What people decide about bad news.

``matter`` says what verdicts and alerts are about, ``story`` derives from verdicts what went bad
and when, ``act`` says what a person can do about it, ``decisions`` what follows from that,
``alerts`` how each alert stands now, ``alert_group`` which of them have one cause, and ``database``
keeps what people did. Importing this package loads no database library; ``database`` does.
"""

from hybridwatch.analysis.alerts.act import (
    Act,
    Deed,
    accept,
    acknowledge,
    assign,
    duplicate,
    invalid,
    link,
    mute,
    note,
    reopen,
    unmute,
)
from hybridwatch.analysis.alerts.alert_group import AlertGroup, group_alerts
from hybridwatch.analysis.alerts.alert_key import CONTROL, Judged, Matter, Question
from hybridwatch.analysis.alerts.alerts import Alert, Since, Status, alerts_of, answered, since
from hybridwatch.analysis.alerts.decisions import (
    UNDECIDED,
    Decisions,
    Entry,
    Seen,
    SeenPart,
    TriageConflict,
)
from hybridwatch.analysis.alerts.story import Change, Ruling, Story, Turn, stories_of

__all__ = [
    "CONTROL",
    "UNDECIDED",
    "Act",
    "Alert",
    "AlertGroup",
    "Change",
    "Decisions",
    "Deed",
    "Entry",
    "Judged",
    "Matter",
    "Question",
    "Ruling",
    "Seen",
    "SeenPart",
    "Since",
    "Status",
    "Story",
    "TriageConflict",
    "Turn",
    "accept",
    "acknowledge",
    "alerts_of",
    "answered",
    "assign",
    "duplicate",
    "group_alerts",
    "invalid",
    "link",
    "mute",
    "note",
    "reopen",
    "since",
    "stories_of",
    "unmute",
]
