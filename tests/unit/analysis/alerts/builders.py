"""Verdicts and alerts for the tests, as short as can be said."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta

from hybridwatch.analysis.alert_decisions import Decision, Decisions, TriageAction, make_decision
from hybridwatch.analysis.alert_timeline import (
    AlertQuestion,
    AlertSubject,
    JudgedMetric,
    build_timelines,
)
from hybridwatch.analysis.alerts import Alert, answered
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.analysis.verdict import Verdict

QUESTION = AlertQuestion(
    scenario="smoke/padded-graph-rows",
    metric="output_throughput",
    statistic="median",
    baseline="cpu-0.27.1",
    contender="nightly",
    testbed="epyc-9654-2c-linux",
)
SUBJECT = AlertSubject(
    QUESTION.scenario, Area.SPEED, QUESTION.baseline, QUESTION.contender, QUESTION.testbed
)
MONDAY = datetime(2026, 11, 16, 3, 0, tzinfo=UTC)
"""The first night."""


def _act(action: TriageAction) -> Callable[..., Decision]:
    return lambda text="": make_decision(action, text, None, MONDAY)


acknowledge, accept = _act(TriageAction.ACKNOWLEDGE), _act(TriageAction.ACCEPT)
invalid, duplicate = _act(TriageAction.INVALID), _act(TriageAction.DUPLICATE)
link, assign, note = map(_act, (TriageAction.LINK, TriageAction.ASSIGN, TriageAction.NOTE))
unmute, reopen = _act(TriageAction.UNMUTE), _act(TriageAction.REOPEN)


def mute(until: datetime, now: datetime, reason: str = "") -> Decision:
    return make_decision(TriageAction.MUTE, reason, until, now)


def build_alerts(
    judged: Iterable[JudgedMetric],
    decided: Mapping[str, Decisions],
    now: datetime,
    policy: Policy = STRICT,
) -> tuple[Alert, ...]:
    """The alerts that some verdicts give."""
    return answered(build_timelines(judged, policy), decided, now)


def night(number: int) -> datetime:
    """When a night's run starts."""
    return MONDAY + timedelta(days=number)


def noon(number: int) -> datetime:
    """When somebody looks at the night before, and before the next."""
    return night(number) + timedelta(hours=9)


def nights(*verdicts: Verdict, effect=-0.1, about=QUESTION) -> list[JudgedMetric]:
    """One verdict a night, from the first on."""
    return [
        JudgedMetric(about, verdict, effect, f"{number:08x}", night(number))
        for number, verdict in enumerate(verdicts)
    ]


def alert_of(*verdicts: Verdict, decisions: Decisions | None = None, now=None) -> Alert:
    """The one alert that the nights' verdicts give."""
    decided = {SUBJECT.key: decisions} if decisions else {}
    (alert,) = build_alerts(nights(*verdicts), decided, now or noon(len(verdicts) - 1))
    return alert
