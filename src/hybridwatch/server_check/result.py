"""What a check found: relations that held, broke or could not be checked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from hybridwatch.server_check.answer import Reply

RELATIONS: Final[Mapping[str, str]] = {
    "company": "a request with others is answered as alone",
    "cached": "a prompt from the cache is answered as a new one",
    "short": "prompts of 1 to 8 tokens, and around the ends of blocks",
    "parts": "a prompt with its answer's beginning continues the same",
    "long": "long prompts, alone, with others and cached",
    "stop": "stops cut where they must",
    "parameters": "each parameter does what it says, to its own request alone",
    "count": "usage, logprobs, lists of prompts and n agree with the tokens",
    "stream": "a stream, joined, is the whole answer",
    "abort": "clients that go away harm no one else",
    "idle": "the same after a pause and after many requests",
    "drift": "the last answers are the first ones, and the cache comes back",
}
"""Every relation with what must hold."""
PAIR_RELATIONS: Final[Mapping[str, str]] = {
    "tokens": "a request alone is answered as by the first server",
    "answers": "questions are answered right as often as by the first server",
}
"""What two servers are checked for as well."""
_SHOWN: Final = 3
"""Breaks that are kept of a relation."""


@dataclass(frozen=True, slots=True)
class Break:
    """A relation that did not hold, with the smallest requests that show it.

    Attributes:
        said: One sentence.
        expected: As it can be written as JSON; so is ``found``.
        curl: Commands for a shell.
    """

    said: str
    expected: Any
    found: Any
    curl: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Write it for ``--json``."""
        return {
            "said": self.said,
            "expected": self.expected,
            "found": self.found,
            "curl": list(self.curl),
        }


@dataclass(slots=True)
class Tally:
    """What came of one relation so far.

    Attributes:
        broken: Breaks in all, of which a few are kept.
        undecided: Answers that differ where the server gives no logarithms to tell why.
        reason: Why it was not checked, or not all of it.
    """

    name: str
    checked: int = 0
    within_rounding: int = 0
    undecided: int = 0
    broken: int = 0
    breaks: list[Break] = field(default_factory=list)
    reason: str = ""
    tried: bool = False

    def add_break(self, found: Break) -> None:
        """Count a break, and keep it if it is one of the first."""
        self.broken += 1
        if len(self.breaks) < _SHOWN:
            self.breaks.append(found)

    @property
    def is_full(self) -> bool:
        """Whether further breaks are only counted."""
        return len(self.breaks) >= _SHOWN

    @property
    def is_decided(self) -> bool:
        """Whether it held or broke."""
        return self.outcome not in {"not asked", "unknown"}

    @property
    def outcome(self) -> str:
        """``held``, ``broke``, ``within rounding``, ``not asked`` or ``unknown``."""
        if self.broken:
            return "broke"
        if self.undecided or (self.tried and not self.checked and not self.reason):
            return "unknown"
        if not self.checked:
            return "not asked"
        return "within rounding" if self.within_rounding else "held"

    def as_json(self) -> dict[str, Any]:
        """Write it for ``--json``."""
        return {
            "name": self.name,
            "outcome": self.outcome,
            "checked": self.checked,
            "broken": self.broken,
            "within_rounding": self.within_rounding,
            "reason": self.reason,
            "breaks": [one.as_json() for one in self.breaks],
        }


@dataclass(slots=True)
class Side:
    """What one server of two gave in a block.

    Attributes:
        ttft: Seconds to the first token of each request alone.
        tpot: Seconds of each further token.
        seconds: Of all requests alone.
        throughput: Tokens per second of the same requests at once; ``None`` where not measured.
    """

    ttft: list[float] = field(default_factory=list)
    tpot: list[float] = field(default_factory=list)
    seconds: float = 0.0
    throughput: float | None = None

    def add(self, reply: Reply) -> None:
        """Add what a stream of a request alone took."""
        first = reply.seconds if reply.first_s is None else reply.first_s
        self.ttft.append(first)
        self.seconds += reply.seconds
        if (further := len(reply.answers[0].tokens) - 1) > 0:
            self.tpot.append((reply.seconds - first) / further)


@dataclass(slots=True)
class TimedBlock:
    """Equal requests to both servers, one right behind the other."""

    started_at: datetime
    sides: tuple[Side, Side] = field(default_factory=lambda: (Side(), Side()))


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a task with both servers' answers, and both requests for a shell."""

    prompt: str
    target: str
    responses: tuple[str, str]
    curl: tuple[str, ...]


@dataclass(slots=True)
class PairResult:
    """What two servers gave side by side.

    Attributes:
        url: Of the second one.
        speeds: Times and rates as ratios, written for ``--json``.
    """

    url: str
    blocks: list[TimedBlock] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    speeds: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class CheckResult:
    """What a check of one server found.

    Attributes:
        releases: Of each server, empty where it does not report one.
        minutes: That it took.
        margin: Nats within which two tokens are a near tie; ``None`` before it was learned.
        errors: Of the server, by status or kind.
        stopped: Why it ended before its time; empty if it did not.
    """

    url: str
    gentle: bool = False
    strict: bool = False
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    model: str = ""
    releases: list[str] = field(default_factory=list)
    minutes: float = 0.0
    requests: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    margin: float | None = None
    tallies: dict[str, Tally] = field(
        default_factory=lambda: {name: Tally(name) for name in RELATIONS}
    )
    refused: dict[str, str] = field(default_factory=dict)
    stopped: str = ""
    interrupted: bool = False
    pair: PairResult | None = None

    @property
    def broke(self) -> list[str]:
        """Names of the relations that did not hold."""
        return [name for name, tally in self.tallies.items() if tally.broken]

    @property
    def is_empty(self) -> bool:
        """Whether nothing could be checked."""
        return not any(tally.checked or tally.broken for tally in self.tallies.values())

    def as_json(self) -> dict[str, Any]:
        """Write what ``hybridwatch check --json`` prints."""
        return {
            "schema_version": 1,
            "url": self.url,
            **({"against": self.pair.url} if self.pair else {}),
            "started_at": self.started_at.isoformat(timespec="seconds"),
            "releases": self.releases,
            "model": self.model,
            "minutes": round(self.minutes, 3),
            "requests": self.requests,
            "errors": dict(self.errors),
            "margin_nats": self.margin,
            "refused": self.refused,
            "stopped": self.stopped,
            "relations": [tally.as_json() for tally in self.tallies.values()],
            "broke": self.broke,
            **({"speeds": self.pair.speeds} if self.pair else {}),
        }
