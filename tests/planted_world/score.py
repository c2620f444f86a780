"""What the product said, held against what is planted.

``score`` gives an answer for each planted fault: what was told, when, which commits, and every way
in which it falls short of what a reader needs. Nothing short means that it was told right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from hybridwatch.analysis.cause import Area
from tests.planted_world import questions
from tests.planted_world.needs import SHORT_OF, Case, Short
from tests.planted_world.plan import ON_DUTY, Fault, Kind
from tests.planted_world.questions import NIGHTLY, Change, Place
from tests.planted_world.replay import Replay, replay
from tests.planted_world.told import AREAS, Told, cause_of, places_in, told_in

MESSAGES: Final = 2
"""Messages of ``notify`` that a cause may take: it began, it ended."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was told of a planted fault.

    Attributes:
        commits: How many commits the first one blames; ``None`` where it blames none.
        holds: Whether the culprit is among them; ``None`` where there is no culprit or no set.
        is_open: Whether an alert about it is open at the end.
        changes: The changes that the line of nightlies is said to have, worded shortly.
        short: What is missing or wrong.
    """

    fault: Fault
    night: int | None
    alerts: int
    commits: int | None
    holds: bool | None
    is_open: bool
    changes: tuple[str, ...]
    short: tuple[Short, ...]

    @property
    def line(self) -> str:
        """What was told, for a terminal; what falls short comes apart."""
        told = "not told" if self.night is None else f"told after night {self.night}"
        holds = {True: ", with the culprit", False: ", without the culprit", None: ""}[self.holds]
        commits = "no commits" if self.commits is None else f"{self.commits} commits{holds}"
        seen = f"; {', '.join(self.changes)}" if self.changes else ""
        planted = f"planted on night {self.fault.first}, {told}"
        return f"{planted}, {self.alerts} alerts, {commits}{', open' * self.is_open}{seen}"

    def to_json(self) -> dict[str, Any]:
        """All of it, for other programs."""
        names = ("night", "alerts", "commits", "holds", "is_open", "changes", "short")
        return {"fault": asdict(self.fault)} | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Score:
    """What the product said of a world.

    Attributes:
        causes: Faults that somebody on duty should hear of.
        lasting: Of them, those that are still there at the end and that an alert is about: of a
            machine that changed a message and the overview tell, and nobody's answer ends it.
        without_cause: Of these, the ones that no planted fault explains, where and when.
        messages: What ``notify`` sent over all nights.
        gate: Causes that the gate names at the end.
        gate_without_cause: Of these, the ones that no planted fault explains.
    """

    answers: tuple[Answer, ...]
    causes: int
    lasting: int
    open: int
    opened: int
    without_cause: tuple[str, ...]
    messages: int
    gate: int
    gate_without_cause: tuple[tuple[Place, Area], ...]
    rows: int

    @property
    def line(self) -> str:
        """What was told of the whole world, for a terminal."""
        strange = f"{len(self.without_cause)} without a cause"
        return (
            f"{self.causes} causes, {self.lasting} still there: {self.open} alerts open, "
            f"{self.opened} ever opened, {strange}; {self.messages} messages; the gate names "
            f"{self.gate} causes, {len(self.gate_without_cause)} that are none; the overview has "
            f"{self.rows} rows"
        )

    def to_json(self) -> dict[str, Any]:
        """All of it, for other programs."""
        names = ("causes", "lasting", "open", "opened", "without_cause", "messages", "gate", "rows")
        counts = {name: getattr(self, name) for name in names}
        strange = [[*place, area.value] for place, area in self.gate_without_cause]
        answers = [answer.to_json() for answer in self.answers]
        return {"answers": answers} | counts | {"gate_without_cause": strange}

    def of(self, kind: Kind) -> tuple[Answer, ...]:
        """The answers about faults of a kind."""
        return tuple(answer for answer in self.answers if answer.fault.kind is kind)


def score(results: Path, since: int = 0) -> Score:
    """Ask the product about a world on every morning from night ``since`` on."""
    return score_of(replay(results, since))


def score_of(whole: Replay) -> Score:
    """Hold what the product said against what is planted."""
    faults = whole.world.faults
    on_duty = [fault for fault in faults if fault.kind in ON_DUTY]
    told = {one: cause_of(one, on_duty) for one in told_in(whole)}
    gate = questions.named_by_gate(whole)
    return Score(
        answers=tuple(_answer(fault, whole, told) for fault in faults),
        causes=len(on_duty),
        lasting=sum(fault.stays for fault in on_duty if fault.kind is not Kind.MACHINE),
        open=sum(one.open_at_end for one in told),
        opened=len(told),
        without_cause=tuple(one.line for one, cause in told.items() if cause is None),
        messages=sum(len(morning.messages) for morning in whole.mornings),
        gate=len(gate),
        gate_without_cause=tuple(one for one in gate if not _is_there(one, on_duty)),
        rows=len(questions.grid_at(whole.end)),
    )


def _is_there(named: tuple[Place, Area], on_duty: Sequence[Fault]) -> bool:
    place, area = named
    return any(
        fault.stays and AREAS.get(fault.kind) is area and fault.covers(*place) for fault in on_duty
    )


def _answer(fault: Fault, whole: Replay, told: Mapping[Told, Fault | None]) -> Answer:
    mine = tuple(one for one, cause in told.items() if cause is fault)
    changes = tuple(_changes(fault, whole))
    case = Case(fault, whole, tuple(told), mine, changes)
    commits = case.first.commits if case.first else None
    return Answer(
        fault=fault,
        night=case.night,
        alerts=len(mine),
        commits=None if commits is None else len(commits),
        holds=fault.commit in commits if fault.commit and commits is not None else None,
        is_open=any(one.open_at_end for one in mine),
        changes=tuple(map(_worded, changes)),
        short=tuple(SHORT_OF[fault.kind](case)),
    )


def _changes(fault: Fault, whole: Replay) -> list[Change]:
    return [
        change
        for place in places_in(fault)
        for change in questions.changes_at(whole.end, place, fault.metrics, NIGHTLY, whole.world)
    ]


def _worded(change: Change) -> str:
    nights = f"{min(change.nights)}-{max(change.nights)}"
    return f"{change.metric} {'drift' if change.is_drift else 'step'} {nights} {change.effect:+.1%}"
