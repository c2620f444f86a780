"""What people decided about one alert, read off what they did.

Only decisions are kept, and they are only ever added; who has it and whether it is muted follows
from them, here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hybridwatch.analysis.alerts.actions import ANSWERS, Decision, TriageAction
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import TriageError


@dataclass(frozen=True, slots=True)
class SeenPart:
    """A bad metric of an alert that a person acted on."""

    metric: str
    statistic: str
    effect: float | None

    @property
    def key(self) -> tuple[str, str]:
        """What distinguishes it from the other metrics of its alert."""
        return self.metric, self.statistic


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of an alert that a person acted on; later verdicts are held against it.

    Attributes:
        run_id: The newest run that had been judged.
        verdict: The newest bad verdict of the leading metric.
        rank: What the policy made of it.
        parts: Every bad metric, the leading one first; empty where that is not known, which
            stands for whatever was bad.
    """

    run_id: str
    started_at: datetime
    verdict: Verdict
    effect: float | None
    rank: Action
    parts: tuple[SeenPart, ...] = ()


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """One decision as kept.

    ``number`` counts the decisions on its alert from 1, ``at`` is in UTC, and ``seen`` is what the
    person had before the eyes.
    """

    number: int
    at: datetime
    who: str
    decision: Decision
    seen: Seen


@dataclass(frozen=True, slots=True)
class Decisions:
    """Every decision on one alert, oldest first, and what follows from them.

    Attributes:
        earlier: Acts on parts of it, from when each had an alert of its own: on single metrics, and
            on single builds of a line.
    """

    entries: tuple[DecisionEntry, ...] = ()
    earlier: tuple[DecisionEntry, ...] = ()

    @property
    def version(self) -> int:
        """How many decisions on the alert there are; the next one names it: none is missed."""
        return len(self.entries)

    @property
    def all(self) -> tuple[DecisionEntry, ...]:
        """Every decision, those on parts of it too, oldest first."""
        return (*sorted(self.earlier, key=lambda entry: entry.at), *self.entries)

    @property
    def issue(self) -> str:
        """URL of the issue linked last; empty without."""
        return self._text(TriageAction.LINK)

    @property
    def assignee(self) -> str:
        """Who sees to it; empty for no person."""
        return self._text(TriageAction.ASSIGN)

    @property
    def notes(self) -> tuple[DecisionEntry, ...]:
        """Every note, oldest first."""
        return tuple(entry for entry in self.all if entry.decision.action is TriageAction.NOTE)

    @property
    def answer(self) -> DecisionEntry | None:
        """The newest decision that says what is to become of the alert."""
        return self._newest(*ANSWERS)

    def about(self, metric: str, statistic: str) -> "Decisions":
        """Leave out the decisions on other single metrics."""
        kept = (e for e in self.earlier if (metric, statistic) in {p.key for p in e.seen.parts})
        return Decisions(self.entries, tuple(kept))

    def muted_until(self, now: datetime) -> datetime | None:
        """When the silence ends that holds now; ``None`` if none does."""
        entry = self._newest(TriageAction.MUTE, TriageAction.UNMUTE, TriageAction.REOPEN)
        until = entry.decision.until if entry else None
        return until if until and now < until else None

    def _newest(self, *actions: TriageAction) -> DecisionEntry | None:
        fitting = (entry for entry in reversed(self.all) if entry.decision.action in actions)
        return next(fitting, None)

    def _text(self, action: TriageAction) -> str:
        entry = self._newest(action)
        return entry.decision.text if entry else ""


UNDECIDED = Decisions()
"""Nothing was done yet."""


class TriageConflict(TriageError):  # noqa: N818 (no fault but an answer)
    """Another person acted on the alert meanwhile; nothing was kept.

    Attributes:
        meanwhile: What they did, oldest first; empty if the version named was never reached.
        decisions: Everything decided so far: show it and ask again.
    """

    def __init__(self, decisions: Decisions, seen_version: int) -> None:
        self.decisions = decisions
        self.meanwhile = decisions.entries[seen_version:]
        super().__init__(
            "nothing was kept, because somebody acted on this alert meanwhile: "
            + ("; ".join(_entry_texts(self.meanwhile)) or "look at it again")
        )


def _entry_texts(entries: Sequence[DecisionEntry]) -> list[str]:
    return [
        f"{entry.who} ({entry.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC): "
        f"{entry.decision.action.value}"
        for entry in entries
    ]
