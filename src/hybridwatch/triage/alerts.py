"""From verdicts to alerts: what is open, since which run, and what people said about it.

Pure, and without memory: when an alert opened, resolved and reopened is read off the verdicts
themselves, so that it does not depend on who looked when. Only what people did is kept
(``database``).

=============================  =================================================================
verdict of the newest run      what becomes of the alert
=============================  =================================================================
regression                     opens it as the policy says: *block*, *warn* (lower), *watch* not
failed, missing                opens it under *block* and *warn*, and as *warn* under *watch*
equivalent, improvement        resolves it
inconclusive, not comparable   leaves it as it was: nothing was shown
=============================  =================================================================

Under *watch* any value that was measured resolves it, since only its absence opened it.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from hybridwatch.analysis.gate import outcome
from hybridwatch.analysis.policy import STRICT, Action, Policy
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.triage.act import Deed
from hybridwatch.triage.decisions import UNDECIDED, Decisions, Entry, Seen

_GREW: Final = 2.0
"""An effect more than this many times the one acknowledged is another one."""
_KEY: Final = 32
"""Hexadecimal digits of a key."""


@dataclass(frozen=True, slots=True, order=True)
class Matter:
    """What an alert is about: the same things compared, whichever runs measured them.

    Attributes:
        scenario: Its id.
        metric: Its id.
        statistic: What trials were reduced to.
        baseline: Label of the first side's build.
        contender: Label of the second side's build.
        testbed: Its id.
    """

    scenario: str
    metric: str
    statistic: str
    baseline: str
    contender: str
    testbed: str

    @property
    def key(self) -> str:
        """A name for addresses and tables; equal for equal matters, on every machine."""
        return hashlib.sha256(self.told().encode()).hexdigest()[:_KEY]

    def told(self) -> str:
        """Write the matter as JSON in plain ASCII, whatever is in it."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Judged:
    """One verdict on a matter.

    Attributes:
        matter: What was compared.
        verdict: What it says.
        effect: Relative change, or the difference; ``None`` when there is none.
        run_id: The contender's run.
        started_at: When that run started, with a time zone.
        sure: Whether it stands under Holm's control (``gate.is_sure``).
    """

    matter: Matter
    verdict: Verdict
    effect: float | None
    run_id: str
    started_at: datetime
    sure: bool = True

    @property
    def place(self) -> tuple[datetime, str]:
        """Where it stands in time among verdicts on the same matter."""
        return self.started_at, self.run_id


class Change(Enum):
    """What a verdict did to an alert."""

    OPENED = "opened"
    RESOLVED = "resolved"
    REOPENED = "reopened"


@dataclass(frozen=True, slots=True)
class Turn:
    """A change of an alert, and the verdict that made it."""

    change: Change
    by: Judged


class Status(Enum):
    """How an alert stands, in the order of reading."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    MUTED = "muted"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Alert:
    """Bad news about one matter, and what became of it.

    Attributes:
        matter: What it is about.
        status: How it stands now.
        rank: ``BLOCK``, or ``WARN`` for the lower rank.
        bad: The newest bad verdict.
        newest: The newest verdict of any kind.
        turns: How it opened, resolved and reopened; never empty.
        decisions: What people did.
        muted_until: Set when the status is muted.
    """

    matter: Matter
    status: Status
    rank: Action
    bad: Judged
    newest: Judged
    turns: tuple[Turn, ...]
    decisions: Decisions
    muted_until: datetime | None = None

    @property
    def opened_by(self) -> Judged:
        """The verdict that opened it last."""
        opening = (turn for turn in reversed(self.turns) if turn.change is not Change.RESOLVED)
        return next(opening).by

    @property
    def resolved_by(self) -> Judged | None:
        """The verdict that resolved it last, if nothing bad came since."""
        last = self.turns[-1]
        return last.by if last.change is Change.RESOLVED else None

    @property
    def seen(self) -> Seen:
        """What whoever acts on the alert has before the eyes."""
        newest, bad = self.newest, self.bad
        return Seen(newest.run_id, newest.started_at, bad.verdict, bad.effect, self.rank)


def alerts_of(
    judged: Iterable[Judged],
    decided: Mapping[str, Decisions],
    now: datetime,
    policy: Policy = STRICT,
) -> tuple[Alert, ...]:
    """Derive every alert there is.

    Args:
        judged: Verdicts in any order. With earlier ones, alerts tell their history; with the newest
            of each matter alone, what is inconclusive now is no alert, and one that came back
            counts as still acknowledged. Known-bad controls are not to be among them: they are bad
            on purpose.
        decided: What people did, by the key of the matter; others than ``judged`` holds are
            passed over.
        now: With a time zone.
        policy: What becomes of which metric.

    Returns:
        Open ones first, then acknowledged, muted and resolved; within these what blocks before
        what warns, failed and missing before slow, the newest before older ones.
    """
    histories: defaultdict[Matter, list[Judged]] = defaultdict(list)
    for one in sorted(judged, key=lambda one: one.place):
        histories[one.matter].append(one)
    alerts = [
        _alert(history, decided.get(matter.key, UNDECIDED), now, asked, turns)
        for matter, history in histories.items()
        if (turns := _turns(history, asked := policy.rule_for(*_ids(matter)).action))
    ]
    return tuple(sorted(alerts, key=_urgency))


def _ids(matter: Matter) -> tuple[str, str]:
    return matter.scenario, matter.metric


def _alert(
    history: Sequence[Judged],
    decisions: Decisions,
    now: datetime,
    asked: Action,
    turns: tuple[Turn, ...],
) -> Alert:
    bad = next(one for one in reversed(history) if _is_bad(one, asked))
    muted = decisions.muted_until(now)
    status = _status(history, decisions, asked, turns, muted=muted is not None)
    return Alert(
        matter=bad.matter,
        status=status,
        rank=_rank(bad, asked),
        bad=bad,
        newest=history[-1],
        turns=turns,
        decisions=decisions,
        muted_until=muted if status is Status.MUTED else None,
    )


def _turns(history: Iterable[Judged], asked: Action) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for one in history:
        is_open = bool(turns) and turns[-1].change is not Change.RESOLVED
        if _is_bad(one, asked) and not is_open:
            turns.append(Turn(Change.REOPENED if turns else Change.OPENED, one))
        elif _is_good(one, asked) and is_open:
            turns.append(Turn(Change.RESOLVED, one))
    return tuple(turns)


def _status(
    history: Sequence[Judged],
    decisions: Decisions,
    asked: Action,
    turns: Sequence[Turn],
    *,
    muted: bool,
) -> Status:
    if turns[-1].change is Change.RESOLVED and not _is_doubted(history, decisions, asked):
        return Status.RESOLVED
    if muted:
        return Status.MUTED
    attitude = decisions.attitude
    if attitude is None or attitude.act.deed is Deed.REOPEN:
        return Status.OPEN
    return Status.ACKNOWLEDGED if _still_holds(attitude, history, asked) else Status.OPEN


def _is_doubted(history: Sequence[Judged], decisions: Decisions, asked: Action) -> bool:
    """Whether somebody reopened the alert and no verdict has been good since."""
    return any(
        entry.act.deed is Deed.REOPEN
        and not any(_is_good(one, asked) for one in _after(entry, history))
        for entry in decisions.entries
    )


def _still_holds(entry: Entry, history: Sequence[Judged], asked: Action) -> bool:
    """Whether it is still the trouble that was acknowledged: no other, no worse, never gone."""
    return not any(
        _is_good(one, asked) or (_is_bad(one, asked) and _is_other(one, entry.seen, asked))
        for one in _after(entry, history)
    )


def _after(entry: Entry, history: Iterable[Judged]) -> Iterator[Judged]:
    seen = (entry.seen.started_at, entry.seen.run_id)
    return (one for one in history if one.place > seen)


def _is_other(one: Judged, seen: Seen, asked: Action) -> bool:
    if one.verdict is not seen.verdict:
        return True
    if _rank(one, asked) is Action.BLOCK and seen.rank is not Action.BLOCK:
        return True
    if one.effect is None or seen.effect is None:
        return False
    return abs(one.effect) > _GREW * abs(seen.effect)


def _rank(one: Judged, asked: Action) -> Action:
    return outcome(one.verdict, asked, sure=one.sure)


def _is_bad(one: Judged, asked: Action) -> bool:
    return _rank(one, asked) is not Action.WATCH


def _is_good(one: Judged, asked: Action) -> bool:
    found = one.verdict
    if asked is Action.WATCH and (found is Verdict.REGRESSION or found is Verdict.INCONCLUSIVE):
        return True
    return found is Verdict.EQUIVALENT or found is Verdict.IMPROVEMENT


_READING: Final = {status: place for place, status in enumerate(Status)}


def _urgency(alert: Alert) -> tuple[int, bool, bool, float, Matter]:
    return (
        _READING[alert.status],
        alert.rank is not Action.BLOCK,
        alert.bad.verdict is Verdict.REGRESSION,
        -alert.opened_by.started_at.timestamp(),
        alert.matter,
    )
