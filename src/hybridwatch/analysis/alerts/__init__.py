"""What people decide about bad news.

``alert_key`` says what verdicts and alerts are about, ``timeline`` derives from verdicts what went
bad and when, ``actions`` says what a person can do about it, ``decisions`` what follows from that,
``alerts`` how each alert stands now, ``alert_group`` which of them have one cause, and ``database``
keeps what people did. Importing this package loads no database library; ``database`` does.
"""

from hybridwatch.analysis.alerts.actions import (
    Decision,
    TriageAction,
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
from hybridwatch.analysis.alerts.alert_key import CONTROL, AlertQuestion, AlertSubject, JudgedMetric
from hybridwatch.analysis.alerts.alerts import Alert, Since, Status, answered, build_alerts, since
from hybridwatch.analysis.alerts.decisions import (
    UNDECIDED,
    DecisionEntry,
    Decisions,
    Seen,
    SeenPart,
    TriageConflict,
)
from hybridwatch.analysis.alerts.timeline import (
    RunVerdict,
    Timeline,
    Transition,
    TransitionKind,
    build_timelines,
)

__all__ = [
    "CONTROL",
    "UNDECIDED",
    "Alert",
    "AlertGroup",
    "AlertQuestion",
    "AlertSubject",
    "Decision",
    "DecisionEntry",
    "Decisions",
    "JudgedMetric",
    "RunVerdict",
    "Seen",
    "SeenPart",
    "Since",
    "Status",
    "Timeline",
    "Transition",
    "TransitionKind",
    "TriageAction",
    "TriageConflict",
    "accept",
    "acknowledge",
    "answered",
    "assign",
    "build_alerts",
    "build_timelines",
    "duplicate",
    "group_alerts",
    "invalid",
    "link",
    "mute",
    "note",
    "reopen",
    "since",
    "unmute",
]
