"""What people decide about bad news.

``alerts`` derives from verdicts what is open, ``act`` says what a person can do about it,
``decisions`` what follows from that, and ``database`` keeps it. Importing this package loads no
database library; ``database`` does.
"""

from hybridwatch.triage.act import (
    Act,
    Deed,
    acknowledge,
    assign,
    link,
    mute,
    note,
    reopen,
    unmute,
)
from hybridwatch.triage.alerts import Alert, Change, Judged, Matter, Status, Turn, alerts_of
from hybridwatch.triage.decisions import UNDECIDED, Decisions, Entry, Seen, TriageConflict

__all__ = [
    "UNDECIDED",
    "Act",
    "Alert",
    "Change",
    "Decisions",
    "Deed",
    "Entry",
    "Judged",
    "Matter",
    "Seen",
    "Status",
    "TriageConflict",
    "Turn",
    "acknowledge",
    "alerts_of",
    "assign",
    "link",
    "mute",
    "note",
    "reopen",
    "unmute",
]
