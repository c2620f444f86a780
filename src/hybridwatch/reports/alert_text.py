"""What an alert is called, and what a gate prints about a cause, as plain text of records."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from hybridwatch.analysis.alert_decisions import TriageAction
from hybridwatch.analysis.alert_timeline import CONTROL, Timeline
from hybridwatch.analysis.alerts import Alert, AlertGroup
from hybridwatch.analysis.cause import CausePart
from hybridwatch.analysis.change_review import Found
from hybridwatch.analysis.detection import kind_of
from hybridwatch.analysis.gate import known_as
from hybridwatch.analysis.policy import Action, Policy
from hybridwatch.analysis.verdict import Report
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.cause_text import (
    CauseText,
    cause_sentence,
    cause_text,
    find_death,
    name_of_part,
)
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.history.entry import Entry
from hybridwatch.records.store import Broken
from hybridwatch.reports.escape import last_lines, one_line
from hybridwatch.reports.sentence import with_rest, write_line

CLOSED: Final[Mapping[TriageAction, str]] = {
    TriageAction.ACCEPT: "expected",
    TriageAction.INVALID: "invalid",
    TriageAction.DUPLICATE: "duplicate",
}
"""What a closed alert is said to be."""
_NOT_CAUGHT: Final = CauseText("Known-bad control not caught", "")
_LOG_LINES: Final = 5
"""Of an engine's log; all that was kept of it is in the JSON form."""
_SHOWN: Final = 5


def alert_text(alert: Timeline, report: Report | None = None) -> CauseText:
    """Put into words what an alert is about; only the report of its newest bad run says why."""
    return _NOT_CAUGHT if is_control(alert) else cause_text(alert.cause, report)


def group_text(group: AlertGroup, report: Report | None = None) -> CauseText:
    """Put into words what the alerts of one cause are about; of one alert, as ``alert_text``."""
    text = alert_text(group.lead, report)
    sizes = _sizes(group) if len(group.current) > 1 else ""
    return CauseText(text.what, sizes or text.detail)


def describe_place(group: AlertGroup) -> str:
    """Say where a cause shows: ``smoke/a and 3 more scenarios on 3 testbeds``."""
    subjects = [alert.subject for alert in group.current]
    first, *others = sorted({subject.scenario for subject in subjects})
    more = others[0] if len(others) == 1 else f"{len(others)} more scenarios"
    place = f"{first} and {more}" if others else first
    testbeds = {subject.testbed for subject in subjects}
    return f"{place} on {plural(len(testbeds), 'testbed')}" if len(testbeds) > 1 else place


def common(names: Iterable[str], noun: str) -> str:
    """Give the one name that all have, or say how many there are."""
    found = set(names)
    return found.pop() if len(found) == 1 else plural(len(found), noun)


def _sizes(group: AlertGroup) -> str:
    """Say from where to where the leading changes go: ``ttft +6.0 to +9.1 %``; may be empty."""
    leads = [alert.cause.lead for alert in group.current]
    sized = [one for one in leads if one.effect and describe_change(one) != numbers.ABSENT]
    if not sized:
        return ""
    sized.sort(key=lambda part: abs(part.effect or 0.0))
    least, most = describe_change(sized[0]), describe_change(sized[-1])
    span = most if least == most else f"{least.partition(' ')[0]} to {most}"
    names = {name_of_part(one) for one in sized}
    return f"{names.pop()} {span}" if len(names) == 1 else f"by {re.sub('[+-]', '', span)}"


def is_control(alert: Timeline) -> bool:
    """Whether it is about a known-bad control that was not caught."""
    return alert.cause.lead.metric == CONTROL


def own_report(alert: Alert, entry: Entry | Broken | None) -> Report | None:
    """Give of a run's report what is about an alert; of a known-bad control that is all."""
    report = entry.report if isinstance(entry, Entry) else None
    if report is None or is_control(alert):
        return report
    parts = {(part.metric, part.statistic) for part in alert.cause.parts}
    own = [c for c in report.comparisons if (c.metric.id, c.statistic) in parts]
    return replace(report, comparisons=tuple(own))


def describe_change(part: CausePart) -> str:
    """Write the change of a metric, ``-`` without one."""
    kind = kind_of(part.metric)
    return numbers.effect(part.effect, kind) if kind else numbers.ABSENT


def compute_rank(alert: Alert | AlertGroup) -> str:
    """Say what the gate's policy makes of it."""
    return "blocks" if alert.rank is Action.BLOCK else "warns"


def gate_lines(found: Found, policy: Policy, *, many: bool) -> Iterator[str]:
    """Describe a cause for a log of continuous integration; of ``many`` scenarios, with its own."""
    cause, report = found.cause, found.report
    mark = "" if cause.action is Action.BLOCK else "warning: "
    place = f"{found.place}: " if many else ""
    known = {known_as(c, report, policy) for part in cause.parts if (c := part.comparison)} - {""}
    known_builds = f" (known: {', '.join(sorted(known))})" if known else ""
    yield one_line(f"{mark}{place}{cause_sentence(cause, report)}{known_builds}")
    death = find_death(report, cause)
    if death is not None:
        yield f"    {one_line(f'{death.trial.place}: {death.trial.reason}')}"
        yield from (f"    | {line}" for line in last_lines(death.trial.log_tail, _LOG_LINES))
        return
    lines = [one_line(write_line(c)) for part in cause.parts if (c := part.comparison)]
    yield from (f"    {line}" for line in with_rest(lines, _SHOWN))
