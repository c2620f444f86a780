"""What is planted: the nights, the commits, the noise, and each fault as data."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter

from hybridwatch.records.identity import Testbed

TRUTH_FILE: Final = "truth.json"
SHORTEST: Final = 30
"""Nights that a world needs so that its faults do not run into each other."""

CHAT, DECODE, PREFIX, PROMPT, DRAFT, BATCH = SCENARIOS = (
    "planted/chat",
    "planted/decode",
    "planted/prefix-cache",
    "planted/long-prompt",
    "planted/draft",
    "planted/batch",
)
MORE: Final = tuple(f"planted/more-{nth:02}" for nth in range(len(SCENARIOS) + 1, 21))
"""Of a larger world; nothing is planted in these alone."""
WITH_ANSWERS: Final = (CHAT, PROMPT)
"""Scenarios that ask questions; those of the others are times, rates and contracts."""

_FIRST_NIGHT: Final = datetime(2026, 6, 1, 22, tzinfo=UTC)
_MOST_COMMITS: Final = 5

TESTBEDS: Final = (
    Testbed("epyc-a", "AMD EPYC 9654", 8, 64 * 2**30, "6.1.0-18"),
    Testbed("epyc-b", "AMD EPYC 7R13", 4, 32 * 2**30, "6.1.0-18"),
    Testbed(
        "h100-c",
        "Intel Xeon Platinum 8480C",
        16,
        256 * 2**30,
        "6.8.0-45",
        gpus=("NVIDIA H100 80GB HBM3",),
        driver="550.90.07",
        cuda="12.4",
    ),
)
A, B, C = (testbed.id for testbed in TESTBEDS)
SPEED: Final = ("output_throughput", "ttft", "tpot")
ACCURACY: Final = "accuracy.recall"
CONTRACT: Final = "contract.padded_rows_prefilling"


class Kind(StrEnum):
    """What is planted. The value is what a reader should be told of it."""

    STEP = "step"
    COMMON_STEP = "step on three testbeds"
    IMPROVEMENT = "improvement"
    ANSWERS = "answers lost"
    DEAD = "dead engine"
    DRIFT = "drift"
    MACHINE = "machine changed"
    FACTS = "machine facts changed"
    START_MODES = "two modes by start"
    TRIAL_MODES = "two modes by trial"
    START_LUCK = "luck of starts"
    GAP = "gap"
    LOAD = "new series"
    RELEASE = "release pair"
    CONTRACT = "contract broken"
    ONCE = "red once"


ON_DUTY: Final = frozenset(
    {
        Kind.STEP,
        Kind.COMMON_STEP,
        Kind.ANSWERS,
        Kind.DEAD,
        Kind.DRIFT,
        Kind.MACHINE,
        Kind.GAP,
        Kind.CONTRACT,
        Kind.ONCE,
    }
)
"""What somebody on duty should hear of. An improvement is news but no trouble; the others are
properties of a series, or findings about a release."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something planted, and the truth about it.

    Attributes:
        metrics: What moves; empty where nothing is measured at all.
        last: Last night, itself included; of a drift, that on which it ends to grow.
        commit: The culprit, 40 digits; empty where no commit is to blame.
        size: Relative change of times at its end, so +0.08 is 8 % slower; for answers the share
            that is lost, for a contract the count. Modes and luck: how far apart they lie.
        stays: Whether it is still there when the world ends.
    """

    kind: Kind
    scenarios: tuple[str, ...]
    testbeds: tuple[str, ...]
    metrics: tuple[str, ...]
    first: int
    last: int
    commit: str
    size: float
    stays: bool

    @property
    def line(self) -> str:
        """All of it for a terminal."""
        nights = f"night {self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        where = f"{' '.join(self.scenarios)} on {' '.join(self.testbeds)}"
        by = f", by {self.commit[:9]}" if self.commit else ""
        size = f"{self.size:+.0%}" if set(self.metrics) & set(SPEED) else f"{self.size:g}"
        return f"{self.kind}: {where}, {nights}, {size}{by}"

    def covers(self, scenario: str, testbed: str) -> bool:
        """Whether it shows there."""
        return scenario in self.scenarios and testbed in self.testbeds


@dataclass(frozen=True, slots=True)
class Noise:
    """How much numbers scatter without any cause.

    Attributes:
        trial: Standard deviation from trial to trial, relative.
        outliers: Share of trials that take 5 to 25 % longer.
        tails: Degrees of freedom of the trials' distribution (Student's t); 0 for Gaussian.
        within: Correlation of neighbouring trials, whichever side they are of.
        wander: Standard deviation of the machine's level, which is alike from night to night.
        slow_nights: Share of nights on which the whole machine is 8 to 20 % slower.
        start: An engine's start moves all its trials by up to this, either way.
        start_modes: Distance of two modes, one of which a start draws.
        trial_modes: The same, drawn by each trial.
    """

    trial: float = 0.015
    outliers: float = 0.0
    tails: int = 0
    within: float = 0.0
    wander: float = 0.0
    slow_nights: float = 0.0
    start: float = 0.0
    start_modes: float = 0.0
    trial_modes: float = 0.0


USUAL: Final = Noise(
    trial=0.015, outliers=0.01, within=0.3, wander=0.008, slow_nights=0.03, start=0.003
)
NOTHING: Final[Mapping[str, Noise]] = {
    "gaussian": Noise(),
    "heavy-tails": Noise(outliers=0.05, tails=3),
    "autocorrelated": Noise(within=0.6, wander=0.02),
    "slow-nights": Noise(slow_nights=0.1),
    "start-luck": Noise(start=0.04),
    "start-modes": Noise(start_modes=0.06),
    "trial-modes": Noise(trial_modes=0.06),
    "usual": USUAL,
}
"""Worlds without a fault, by the noise that they have."""


@dataclass(frozen=True, slots=True)
class World:
    """A world as it is planned.

    Attributes:
        seed: Equal seeds give equal worlds.
        commits: Of each night, those that came since the night before; the last is measured.
    """

    seed: int
    nights: int
    scenarios: tuple[str, ...]
    testbeds: tuple[str, ...]
    noise: Noise
    commits: tuple[tuple[str, ...], ...]
    faults: tuple[Fault, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """Every commit, oldest first."""
        return tuple(commit for night in self.commits for commit in night)

    def of(self, kind: Kind) -> Fault:
        """The fault of a kind; there is one of each but of release pairs."""
        return next(fault for fault in self.faults if fault.kind is kind)

    def night_of(self, moment: datetime) -> int:
        """The night in which something was measured."""
        return (moment - _FIRST_NIGHT) // timedelta(days=1)

    def to_json(self) -> str:
        """The truth, to be kept beside the records."""
        return json.dumps(asdict(self), indent=1) + "\n"


def evening(night: int) -> datetime:
    """When a night's measurements begin, UTC."""
    return _FIRST_NIGHT + timedelta(days=night)


def morning(night: int) -> datetime:
    """When somebody looks at what a night gave, UTC."""
    return evening(night) + timedelta(hours=10)


def read_truth(folder: Path) -> World:
    """Read what was planted in a results folder."""
    return TypeAdapter(World).validate_json((folder / TRUTH_FILE).read_bytes())


def plan_world(
    seed: int,
    nights: int = 90,
    scenarios: Sequence[str] = SCENARIOS,
    testbeds: Sequence[str] = (A, B, C),
) -> World:
    """Plan a world with one fault of every kind; night numbers shrink with the world."""
    if nights < SHORTEST:
        raise ValueError(f"nights: expected at least {SHORTEST}, found {nights}")
    bare = plan_nothing(seed, nights, USUAL, scenarios, testbeds)
    faults = tuple(_faults(bare))
    return replace(bare, faults=faults)


def plan_nothing(
    seed: int,
    nights: int,
    noise: Noise,
    scenarios: Sequence[str] = SCENARIOS,
    testbeds: Sequence[str] = (A, B, C),
) -> World:
    """Plan a world with noise and no fault."""
    commits = tuple(_commits(seed, nights))
    return World(seed, nights, tuple(scenarios), tuple(testbeds), noise, commits, ())


def _commits(seed: int, nights: int) -> Iterator[tuple[str, ...]]:
    rng = np.random.default_rng([seed, 0])
    for night in range(nights):
        count = int(rng.integers(1, _MOST_COMMITS + 1))
        yield tuple(
            hashlib.sha256(f"{seed} {night} {nth}".encode()).hexdigest()[:40]
            for nth in range(count)
        )


def _faults(world: World) -> Iterator[Fault]:
    """Place each fault: its nights as shares of the world's, its size drawn."""
    rng = np.random.default_rng([world.seed, 1])
    end = world.nights - 1

    def at(share: float) -> int:
        return round(share * world.nights)

    def culprit(night: int) -> str:
        return str(rng.choice(world.commits[night]))

    def slow(kind: Kind, scenario: str, testbeds: tuple[str, ...], first: int, size: float):
        return Fault(kind, (scenario,), testbeds, SPEED, first, end, culprit(first), size, True)

    everywhere = world.testbeds
    yield slow(Kind.STEP, CHAT, (A,), at(0.55), float(rng.uniform(0.06, 0.10)))
    yield slow(Kind.COMMON_STEP, DECODE, everywhere, at(0.35), float(rng.uniform(0.06, 0.10)))
    yield slow(Kind.IMPROVEMENT, PREFIX, (B,), at(0.5), float(rng.uniform(-0.10, -0.07)))
    yield Fault(
        Kind.ANSWERS, (PROMPT,), (B,), (ACCURACY,), at(0.6), end, culprit(at(0.6)), 0.14, True
    )
    dead = at(0.3)
    yield Fault(Kind.DEAD, (DRAFT,), (A,), (), dead, dead + 3, culprit(dead), 0.0, False)
    drift = at(0.4), at(0.4 + 40 / 90)
    yield Fault(Kind.DRIFT, (BATCH,), (B,), SPEED, *drift, "", 0.08, True)
    yield from _of_machines(world, at, end)
    yield Fault(Kind.START_MODES, (PREFIX,), (A,), SPEED, 0, end, "", 0.06, True)
    yield Fault(Kind.TRIAL_MODES, (BATCH,), (A,), SPEED, 0, end, "", 0.06, True)
    yield Fault(Kind.START_LUCK, (DRAFT,), (B,), SPEED, 0, end, "", 0.04, True)
    yield Fault(Kind.LOAD, (CHAT,), everywhere, SPEED, at(0.2), end, "", 6.0, True)
    for first in (at(0.25), at(0.5)):
        yield Fault(Kind.RELEASE, (PROMPT, DECODE), (A,), SPEED, first, first, "", 0.07, False)
    bad = at(0.65)
    yield Fault(Kind.CONTRACT, (PROMPT,), (A,), (CONTRACT,), bad, bad, culprit(bad), 7.0, False)
    once = at(0.45)
    yield Fault(Kind.ONCE, (PROMPT,), (C,), ("ttft",), once, once, "", 0.08, False)


def _of_machines(world: World, at: Any, end: int) -> Iterator[Fault]:
    every = world.scenarios
    yield Fault(Kind.MACHINE, every, (C,), SPEED, at(0.7), end, "", 0.099, True)
    yield Fault(Kind.FACTS, every, (A,), (), at(0.75), end, "", 0.0, True)
    gap = at(0.1)
    yield Fault(Kind.GAP, every, (B,), (), gap, gap + 6, "", 0.0, False)
