"""What people decided about one alert, read off what they did.

Only acts are kept, and they are only ever added; who has it and whether it is muted follows from
them, here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hybridwatch.analysis.alerts.act import ANSWERS, Act, Deed
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
    """One act as kept.

    ``number`` counts the acts on its alert from 1, ``at`` is in UTC, and ``seen`` is what the
    person had before the eyes.
    """

    number: int
    at: datetime
    who: str
    act: Act
    seen: Seen


@dataclass(frozen=True, slots=True)
class Decisions:
    """Every act on one alert, oldest first, and what follows from them.

    Attributes:
        earlier: Acts on parts of it, from when each had an alert of its own: on single metrics, and
            on single builds of a line.
    """

    entries: tuple[DecisionEntry, ...] = ()
    earlier: tuple[DecisionEntry, ...] = ()

    @property
    def version(self) -> int:
        """How many acts on the alert there are; who acts next names it, so that none is missed."""
        return len(self.entries)

    @property
    def all(self) -> tuple[DecisionEntry, ...]:
        """Every act, those on parts of it too, oldest first."""
        return (*sorted(self.earlier, key=lambda entry: entry.at), *self.entries)

    @property
    def issue(self) -> str:
        """URL of the issue linked last; empty without."""
        return self._text(Deed.LINK)

    @property
    def assignee(self) -> str:
        """Who sees to it; empty for no person."""
        return self._text(Deed.ASSIGN)

    @property
    def notes(self) -> tuple[DecisionEntry, ...]:
        """Every note, oldest first."""
        return tuple(entry for entry in self.all if entry.act.deed is Deed.NOTE)

    @property
    def answer(self) -> DecisionEntry | None:
        """The newest act that says what is to become of the alert."""
        return self._newest(*ANSWERS)

    def about(self, metric: str, statistic: str) -> "Decisions":
        """Leave out the acts on other single metrics."""
        kept = (e for e in self.earlier if (metric, statistic) in {p.key for p in e.seen.parts})
        return Decisions(self.entries, tuple(kept))

    def muted_until(self, now: datetime) -> datetime | None:
        """When the silence ends that holds now; ``None`` if none does."""
        entry = self._newest(Deed.MUTE, Deed.UNMUTE, Deed.REOPEN)
        until = entry.act.until if entry else None
        return until if until and now < until else None

    def _newest(self, *deeds: Deed) -> DecisionEntry | None:
        fitting = (entry for entry in reversed(self.all) if entry.act.deed in deeds)
        return next(fitting, None)

    def _text(self, deed: Deed) -> str:
        entry = self._newest(deed)
        return entry.act.text if entry else ""


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
        f"{entry.who} ({entry.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC): {entry.act.deed.value}"
        for entry in entries
    ]
