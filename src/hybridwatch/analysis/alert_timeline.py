"""What alerts are about, when each subject went bad, and when it was good again.

An alert is about a subject: everything in one area that is bad for the same reason, so that an
engine that died is one alert and not one for each metric that it took along. A timeline depends on
the records and the policy alone, so it can be kept as long as these stay the same.

=================  ==============================  =============================================
area               bad                             shown good
=================  ==============================  =============================================
engine             a trial of a metric failed      that metric was measured: the engine lived
measurement        a metric is missing             that metric was measured
every other        a regression, or an expecta-    equivalent or improved
                   tion that stays broken, as the
                   policy says: *block*, *warn*
                   (lower), *watch* not
=================  ==============================  =============================================

A subject is over when every metric that was bad since it opened has been shown good. What shows
nothing (inconclusive, not comparable, not in the run) leaves it as it was; so does what is worse
within the margin, of which a gate warns and no person is called.

A regression that may be chance, such as the luck of a start, is not bad by itself. What chance can
move (everything but a contract) and was bad in one run alone, and is not in the next, was *not
repeated*: that is no recovery, since it is not known whether anything was wrong.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias

from hybridwatch.analysis.cause import Area, Cause, CausePart, find_area, find_causes
from hybridwatch.analysis.detection import kind_of
from hybridwatch.analysis.gate import outcome
from hybridwatch.analysis.policy import STRICT, Action, Policy
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.metrics import Kind
from hybridwatch.records.identity import compares_releases

CONTROL: Final = "known-bad control"
"""Stands where a metric stands in what a control says that was, or was not, caught."""


@dataclass(frozen=True, slots=True, order=True)
class AlertQuestion:
    """The same things compared, whichever runs measured them.

    ``metric`` is an id or ``CONTROL``; ``baseline`` and ``contender`` are lines of builds;
    ``digest`` is of the scenario's definition: one load may be bad and another be good.
    """

    scenario: str
    metric: str
    statistic: str
    baseline: str
    contender: str
    testbed: str
    digest: str = ""

    @property
    def key(self) -> str:
        """The key of the alert that this had when every metric had one of its own."""
        facts = asdict(self)
        del facts["digest"]
        return _key(facts)


@dataclass(frozen=True, slots=True)
class AlertSubject:
    """What an alert is about; ``baseline`` and ``contender`` are lines of builds."""

    scenario: str
    area: Area
    baseline: str
    contender: str
    testbed: str

    @property
    def key(self) -> str:
        """A name for addresses and tables; equal for equal subjects, on every machine."""
        return _key(self.facts())

    @property
    def compares_releases(self) -> bool:
        """Whether it is about two releases."""
        return compares_releases(self.baseline, self.contender)

    def facts(self) -> dict[str, str]:
        """Give each part by its name, as texts."""
        return {**asdict(self), "area": self.area.value}


@dataclass(frozen=True, slots=True)
class JudgedMetric:
    """One verdict on a question, of the contender's run.

    Attributes:
        effect: Relative change, or the difference; ``None`` when there is none.
        sure: Whether it stands under Holm's control (``gate.stands``).
        lasts: Whether it is more than chance gives from run to run (``noise``).
    """

    question: AlertQuestion
    verdict: Verdict
    effect: float | None
    run_id: str
    started_at: datetime
    sure: bool = True
    lasts: bool = True

    @property
    def area(self) -> Area:
        """What the verdict is about."""
        return area_for(self.question.metric, self.verdict)


def area_for(metric: str, verdict: Verdict) -> Area:
    """Say what a verdict is about, as ``find_area``; a failed control is no engine that failed."""
    return Area.OTHER if metric == CONTROL else find_area(metric, verdict)


def _key(facts: Mapping[str, str]) -> str:
    """Digest of facts, in plain ASCII, so that none can be taken for another; 32 digits."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


_Bad: TypeAlias = tuple[JudgedMetric, Action]
_BY_ABSENCE: Final = frozenset({Area.ENGINE, Area.MEASUREMENT})
"""Areas in which measuring anything at all is the good news."""
_THERE: Final = 0.5
"""Of the effect that was bad: less in an inconclusive run means that it is not there."""
_PLACE: Final = attrgetter("started_at", "run_id")


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What the contender's run says of a subject.

    Attributes:
        cause: What was bad in it; ``None`` if nothing was.
        is_good: Whether it showed a metric of the subject good, and none that was bad still worse.
        is_over: Whether nothing that was bad is left to be shown good.
    """

    run_id: str
    started_at: datetime
    cause: Cause | None
    is_good: bool
    is_over: bool

    @property
    def place(self) -> tuple[datetime, str]:
        """Where it stands in time."""
        return self.started_at, self.run_id

    @property
    def verdict(self) -> Verdict:
        """The verdict of its leading metric; inconclusive where nothing was shown."""
        if self.cause is not None:
            return self.cause.lead.verdict
        return Verdict.EQUIVALENT if self.is_good else Verdict.INCONCLUSIVE

    @property
    def recovers(self) -> bool:
        """Whether it shows that all is well again."""
        return self.is_good and self.is_over


class TransitionKind(Enum):
    """What a run did to a subject."""

    OPENED = "opened"
    RESOLVED = "resolved"
    NOT_REPEATED = "not repeated"
    """One run alone was bad, and the next is not."""
    REOPENED = "reopened"

    @property
    def is_end(self) -> bool:
        """Whether nothing is bad after it."""
        return self in {TransitionKind.RESOLVED, TransitionKind.NOT_REPEATED}


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of a subject, and the run that made it."""

    change: TransitionKind
    by: RunVerdict


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything that the verdicts say of one subject that was bad at least once.

    Attributes:
        run_verdicts: What each run of these builds says, oldest first.
        transitions: How it opened, resolved and reopened; never empty.
        cause: What is bad and was not shown good since; once it is over, what was bad last.
        questions: What was ever bad, the oldest first.
    """

    subject: AlertSubject
    run_verdicts: tuple[RunVerdict, ...]
    transitions: tuple[Transition, ...]
    cause: Cause
    questions: tuple[AlertQuestion, ...]

    @property
    def bad(self) -> RunVerdict:
        """The newest run that was bad."""
        return next(one for one in reversed(self.run_verdicts) if one.cause is not None)

    @property
    def shown_by(self) -> RunVerdict:
        """The newest run that said what the cause says of its leading metric."""
        lead, causes = self.cause.lead, ((one, one.cause) for one in reversed(self.run_verdicts))
        return next((one for one, cause in causes if cause and lead in cause.parts), self.bad)

    @property
    def newest(self) -> RunVerdict:
        """The newest run."""
        return self.run_verdicts[-1]

    @property
    def is_over(self) -> bool:
        """Whether the verdicts say that all is well again."""
        return self.transitions[-1].change.is_end

    @property
    def is_not_repeated(self) -> bool:
        """Whether it is over, and it is not known whether it was anything."""
        return self.transitions[-1].change is TransitionKind.NOT_REPEATED

    @property
    def is_confirmed(self) -> bool:
        """Whether it can no longer end as not repeated: bad twice, or not of chance."""
        since = self.opened_by.place
        times = sum(one.cause is not None and one.place >= since for one in self.run_verdicts)
        return times > 1 or not all(map(_has_luck, self.cause.parts))

    @property
    def opened_by(self) -> RunVerdict:
        """The run that opened it last."""
        return next(one for one in reversed(self.transitions) if not one.change.is_end).by


def build_timelines(
    judged: Iterable[JudgedMetric], policy: Policy = STRICT
) -> tuple[Timeline, ...]:
    """Put verdicts, in any order, together by subject: one timeline for each that was ever bad.

    With earlier verdicts, timelines say when it began; with the newest of each question alone, what
    is inconclusive now has none. Known-bad controls are not to be among them: they are bad on
    purpose.
    """
    pairs: defaultdict[tuple[str, ...], list[JudgedMetric]] = defaultdict(list)
    for one in judged:
        pair = one.question
        pairs[pair.scenario, pair.baseline, pair.contender, pair.testbed].append(one)
    return tuple(
        timeline
        for (scenario, *sides), found in pairs.items()
        for timeline in _timelines(scenario, sides, sorted(found, key=_PLACE), policy)
    )


def _timelines(
    scenario: str, sides: Sequence[str], judged: Sequence[JudgedMetric], policy: Policy
) -> Iterator[Timeline]:
    runs = [list(run) for _, run in groupby(judged, key=_PLACE)]
    metrics = {one.question.metric for one in judged}
    rules = {metric: policy.rule_for(scenario, metric) for metric in metrics}
    bad: list[list[_Bad]] = [
        [
            (one, rank)
            for one in run
            if one.lasts
            and (rank := outcome(one.verdict, rules[one.question.metric], sure=one.sure))
            is not Action.WATCH
        ]
        for run in runs
    ]
    for area in dict.fromkeys(one.area for run in bad for one, _ in run):
        mine = [[each for each in run if each[0].area is area] for run in bad]
        subject = AlertSubject(scenario, area, *sides)
        yield _timeline(subject, zip(runs, mine, strict=True))


def _timeline(
    subject: AlertSubject, runs: Iterable[tuple[list[JudgedMetric], list[_Bad]]]
) -> Timeline:
    left: dict[AlertQuestion, CausePart] = {}
    last: dict[AlertQuestion, CausePart] = {}
    ever: dict[AlertQuestion, None] = {}
    run_verdicts: list[RunVerdict] = []
    transitions: list[Transition] = []
    times = 0
    for run, bad in runs:
        worse = {one.question: _part(one, rank) for one, rank in bad}
        good = {one.question for one in run if _is_good(one, subject.area)}
        over = good | (_gone(run, left) if times == 1 and not bad else set())
        left = {question: part for question, part in left.items() if question not in over} | worse
        last = left or last
        ever |= dict.fromkeys(worse)
        cause = _cause(worse.values(), subject.area) if bad else None
        still_worse = any(
            one.verdict is Verdict.WORSE_WITHIN and one.question in left for one in run
        )
        is_good = bool(good) and not bad and not still_worse
        run_verdict = RunVerdict(run[0].run_id, run[0].started_at, cause, is_good, not left)
        run_verdicts.append(run_verdict)
        is_open = bool(transitions) and not transitions[-1].change.is_end
        change = None
        if left and not is_open:
            change = TransitionKind.REOPENED if transitions else TransitionKind.OPENED
        elif is_open and not left:
            once = times == 1 and all(map(_has_luck, last.values()))
            change = TransitionKind.NOT_REPEATED if once else TransitionKind.RESOLVED
        if change is not None:
            transitions.append(Transition(change, run_verdict))
        times = times + bool(bad) if left else 0
    cause = _cause(last.values(), subject.area)
    return Timeline(subject, tuple(run_verdicts), tuple(transitions), cause, tuple(ever))


def _gone(
    run: Iterable[JudgedMetric], left: Mapping[AlertQuestion, CausePart]
) -> set[AlertQuestion]:
    """Find what was bad once and is not there any more, though this run alone proves nothing."""
    found = set()
    for one in run:
        before = left.get(one.question)
        if one.verdict is not Verdict.INCONCLUSIVE or one.effect is None or before is None:
            continue
        if _has_luck(before) and one.effect / (before.effect or 1.0) < _THERE:
            found.add(one.question)
    return found


def _has_luck(part: CausePart) -> bool:
    kind = kind_of(part.metric)
    return part.verdict is Verdict.REGRESSION and kind not in {None, Kind.EXACT}


def _part(one: JudgedMetric, rank: Action) -> CausePart:
    return CausePart(one.question.metric, one.question.statistic, one.verdict, one.effect, rank)


def _cause(parts: Iterable[CausePart], area: Area) -> Cause:
    # ``find_causes`` knows nothing of controls, which fail without an engine that did.
    found = tuple(part for cause in find_causes(parts) for part in cause.parts)
    return Cause(area, is_better=False, parts=found)


def _is_good(one: JudgedMetric, area: Area) -> bool:
    if area in _BY_ABSENCE:
        return one.question.metric != CONTROL and one.verdict.is_measured
    return one.verdict.is_good_news and area_for(one.question.metric, Verdict.REGRESSION) is area
