"""What an alert is called: what happened, by how much, and what comes of it.

Plain text from records; whoever shows it as Markdown or HTML escapes it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hybridwatch.analysis.cause import Part
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.sight import kind_of
from hybridwatch.analysis.verdict import Report
from hybridwatch.triage import CONTROL, Alert, Deed, Story
from hybridwatch.wording import numbers
from hybridwatch.wording.cause_text import CauseText, cause_text

CLOSED: Final[Mapping[Deed, str]] = {
    Deed.ACCEPT: "expected",
    Deed.INVALID: "invalid",
    Deed.DUPLICATE: "duplicate",
}
"""What a closed alert is said to be."""
_NOT_CAUGHT: Final = CauseText("Known-bad control not caught", "")


def alert_text(alert: Alert | Story, report: Report | None = None) -> CauseText:
    """Put into words what an alert is about.

    Args:
        alert: The alert, or what the verdicts tell of it.
        report: Of its newest bad run; without it no reason of a failure is known.
    """
    return _NOT_CAUGHT if is_control(alert) else cause_text(alert.cause, report)


def is_control(alert: Alert | Story) -> bool:
    """Whether it is about a known-bad control that was not caught."""
    return alert.cause.lead.metric == CONTROL


def own_report(alert: Alert, report: Report) -> Report:
    """Leave of a report what speaks of an alert; of a known-bad control that is all."""
    if is_control(alert):
        return report
    parts = {(part.metric, part.statistic) for part in alert.cause.parts}
    own = [c for c in report.comparisons if (c.metric.id, c.statistic) in parts]
    return replace(report, comparisons=tuple(own))


def change_of(part: Part) -> str:
    """Write the change of a metric, ``-`` without one."""
    kind = kind_of(part.metric)
    return numbers.effect(part.effect, kind) if kind else numbers.ABSENT


def rank_of(alert: Alert) -> str:
    """Say what the gate's policy makes of it."""
    return "blocks" if alert.rank is Action.BLOCK else "warns"
