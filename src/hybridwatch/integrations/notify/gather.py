"""Gathers the topics of news: the alerts, and what was not measured."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from hybridwatch.analysis.alert_decisions import Seen
from hybridwatch.analysis.alerts import Alert, AlertGroup, Since, Status, since
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.freshness import Gap
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Report
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.database.queries import Index
from hybridwatch.errors import NotifyError
from hybridwatch.history.alerts import find_gaps, find_groups
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.entry import load_entry
from hybridwatch.history.machine_changes import MachineChange, machine_changes
from hybridwatch.history.runs import runs_by_id
from hybridwatch.integrations.notify.news import Content, MessagePart, Topic, TopicStatus
from hybridwatch.orchestration.bisect.alert_answers import answer_line, find_answer, is_final
from hybridwatch.pages.address import address
from hybridwatch.reports.alert_text import (
    CLOSED,
    describe_change,
    describe_place,
    group_text,
    own_report,
)

_STANDINGS: Final = {
    Status.OPEN: TopicStatus.OPEN,
    Status.ACKNOWLEDGED: TopicStatus.QUIET,
    Status.MUTED: TopicStatus.QUIET,
    Status.RELEASE: TopicStatus.CLOSED,
    Status.CLOSED: TopicStatus.CLOSED,
    Status.RESOLVED: TopicStatus.OVER,
    Status.NOT_REPEATED: TopicStatus.NOT_REPEATED,
}
_GAP: Final = "gap"
_MACHINE: Final = "machine"
_NEWS: Final = timedelta(days=7)
_KEY_DIGITS: Final = 32
_SEEN: Final = TypeAdapter(Seen)


@dataclass(frozen=True, slots=True)
class TopicPlace:
    """Where the records lie, and what judges them."""

    results: Path
    index: Index
    checkout: Checkout
    dashboard: str = ""


def gather_topics(place: TopicPlace, now: datetime) -> tuple[Topic, ...]:
    """Say how every alert stands, the most urgent first, and what became of machines.

    Without a single record that is a ``NotifyError``: in a wrong folder all would seem to be over.
    """
    if not place.index.counts["runs"]:
        raise NotifyError(
            f"{place.results}: expected a results folder with records, found none that can be read"
        )
    groups = find_groups(place.results, place.index, place.checkout, now)
    found = find_gaps(place.results, place.index, place.checkout, now)
    machines = machine_changes(place.index)
    return (
        *(
            _alert_topic(alert, group, place)
            for group in groups
            for alert in sorted(group.members, key=lambda one: one.subject.key != group.key)
        ),
        *_gap_topics(found, place),
        *(_machine_topic(one, place, now) for one in machines if one.slower),
    )


def _alert_topic(alert: Alert, group: AlertGroup, place: TopicPlace) -> Topic:
    return Topic(
        key=alert.subject.key,
        standing=_STANDINGS[alert.status],
        rank=alert.rank,
        scenarios=(alert.subject.scenario,),
        testbed=alert.subject.testbed,
        is_gap=False,
        seen=_seen_text(alert.seen),
        searched=_searched(group, place),
        since=lambda seen: since(alert, _SEEN.validate_json(seen)),
        content=partial(_build_content, group, place),
        cause=group.key,
    )


def _build_content(group: AlertGroup, place: TopicPlace) -> Content:
    lead, text = group.lead, group_text(group, _find_report(group.lead, place))
    subjects = [alert.subject for alert in group.current]
    many = len(subjects) > 1
    return Content(
        what=f"{text.what} in {describe_place(group)}" if many else text.what,
        detail=text.detail,
        scenario=_only({subject.scenario for subject in subjects}),
        testbed=_only({subject.testbed for subject in subjects}),
        rank=group.rank.value,
        area=lead.subject.area.value,
        baseline=_only({subject.baseline for subject in subjects}),
        contender=lead.subject.contender,
        run=lead.bad.run_id,
        since=_moment(group.opened_by.started_at),
        metrics=tuple(
            MessagePart(
                one.metric, one.statistic, one.verdict.value, one.effect, describe_change(one)
            )
            for one in lead.cause.parts
        ),
        members=tuple(map(_member, group.current)) if many else (),
        note=_closed_by(lead),
        searched=_searched(group, place),
        link=_link(place, alert=group.key),
    )


def _searched(group: AlertGroup, place: TopicPlace) -> str:
    """Say what a search of the alert found, once it is over."""
    found = find_answer(place.results, group.members)
    return "" if found is None or not is_final(found) else answer_line(found)


def _only(names: set[str]) -> str:
    return next(iter(names)) if len(names) == 1 else ""


def _member(alert: Alert) -> str:
    subject, change = alert.subject, describe_change(alert.cause.lead)
    where = f"{subject.scenario} on {subject.testbed} against {subject.baseline}"
    return where if change == numbers.ABSENT else f"{where}: {alert.cause.lead.metric} {change}"


def _find_report(alert: Alert, place: TopicPlace) -> Report | None:
    """Read why the engine failed, which is all that the index does not have."""
    if alert.subject.area is not Area.ENGINE:
        return None
    row = runs_by_id(place.index).get(alert.bad.run_id)
    return own_report(alert, load_entry(place.results / row.record) if row else None)


def _closed_by(alert: Alert) -> str:
    if alert.status is Status.RELEASE:
        return "a difference between two releases, which is listed with the builds"
    answer = alert.decisions.answer
    if alert.status is not Status.CLOSED or answer is None:
        return ""
    return f"{CLOSED[answer.decision.action]} by {answer.who}: {answer.decision.text}"


def _seen_text(seen: Seen) -> str:
    facts = asdict(seen) | {
        "started_at": seen.started_at.isoformat(),
        "verdict": seen.verdict.value,
        "rank": seen.rank.value,
    }
    return json.dumps(facts, sort_keys=True)


def _gap_topics(found: Sequence[Gap], place: TopicPlace) -> Iterator[Topic]:
    """Put together what one machine did not measure: a machine that is away is one cause."""
    by_testbed: defaultdict[str, list[Gap]] = defaultdict(list)
    for gap in found:
        by_testbed[gap.testbed].append(gap)
    for testbed, gaps in by_testbed.items():
        missing = sorted(gap.scenario for gap in gaps)
        yield Topic(
            key=hashlib.sha256(f"{_GAP} {testbed}".encode()).hexdigest()[:_KEY_DIGITS],
            standing=TopicStatus.OPEN,
            rank=Action.BLOCK,  # as in the gate
            scenarios=tuple(one for one in missing if one),
            testbed=testbed,
            is_gap=True,
            seen=json.dumps(missing),
            since=partial(_since, missing),
            content=partial(_gap_content, gaps, testbed, place),
        )


def _machine_topic(change: MachineChange, place: TopicPlace, now: datetime) -> Topic:
    """Tell once that a machine changed: it is news for a week, and nothing that could recover."""
    name = f"{_MACHINE} {change.testbed} {change.at.isoformat()}"
    return Topic(
        key=hashlib.sha256(name.encode()).hexdigest()[:_KEY_DIGITS],
        standing=TopicStatus.OPEN if now - change.at < _NEWS else TopicStatus.QUIET,
        rank=Action.WARN,
        scenarios=(),
        testbed=change.testbed,
        is_gap=False,
        seen="",
        since=lambda _: Since.NOTHING,
        content=lambda: Content(
            what="The machine changed",
            detail=f"{change.text}; no commit is to blame",
            scenario="",
            testbed=change.testbed,
            rank=Action.WARN.value,
            area=_MACHINE,
            link=_link(place),
        ),
    )


def _since(missing: Sequence[str], seen: str) -> Since:
    return Since.NOTHING if set(missing) <= set(json.loads(seen)) else Since.WORSE


def _gap_content(gaps: Sequence[Gap], testbed: str, place: TopicPlace) -> Content:
    started = [gap.last.started_at for gap in gaps if gap.last is not None]
    one = gaps[0].scenario if len(gaps) == 1 else ""
    return Content(
        what="Not measured",
        detail="" if one else plural(len(gaps), "expected scenario"),
        scenario=one,
        testbed=testbed,
        rank=Action.BLOCK.value,
        area=_GAP,
        since=_moment(min(started)) if started else "",
        missing=tuple(f"{gap.scenario or 'everything'}: {gap.reason}" for gap in gaps),
        link=_link(place),
    )


def _moment(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _link(place: TopicPlace, **parameters: str) -> str:
    if not place.dashboard:
        return ""
    return f"{place.dashboard}/{address('alerts', **parameters).href()}"
