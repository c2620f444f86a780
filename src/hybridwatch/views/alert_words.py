"""How an alert is called: what happened, and the metric that shows it best."""

from collections.abc import Mapping
from typing import Final

from hybridwatch.analysis.cause import Area, Cause, Part
from hybridwatch.triage import CONTROL, Alert
from hybridwatch.views import numbers
from hybridwatch.views.controls import kind_of
from hybridwatch.views.grid import name_of
from hybridwatch.views.sentence import plural

_HAPPENED: Final[Mapping[Area, str]] = {
    Area.ENGINE: "engine failed",
    Area.ANSWERS: "answers lost",
    Area.CONTRACT: "contract broken",
    Area.MEASUREMENT: "not measured",
    Area.SPEED: "slower",
    Area.HOST: "host waits more",
    Area.OTHER: "worse",
}


def what_happened(alert: Alert) -> str:
    """Say it in two or three words, such as ``engine failed`` or ``slower``."""
    if is_control(alert):
        return f"{CONTROL} not caught"
    return _HAPPENED[alert.matter.area]


def what_shows_it(cause: Cause) -> str:
    """Name the leading metric with its change and count the others; empty for a control."""
    lead, *rest = cause.parts
    if lead.metric == CONTROL:
        return ""
    change = change_of(lead)
    said = name_of_part(lead) + ("" if change == numbers.ABSENT else f" {change}")
    return f"{said} and {plural(len(rest), 'more metric')}" if rest else said


def is_control(alert: Alert) -> bool:
    """Whether it is about a known-bad control that was not caught."""
    return alert.cause.lead.metric == CONTROL


def name_of_part(part: Part) -> str:
    """Name a metric as every other screen does."""
    return name_of(part.metric, part.statistic)[1]


def change_of(part: Part) -> str:
    """Write the change of a metric, ``-`` without one."""
    kind = kind_of(part.metric)
    return numbers.effect(part.effect, kind) if kind else numbers.ABSENT
