"""Histories whose culprit is known, on a machine of a certain noise, that searches are tried on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.orchestration.bisect.posterior import (
    SESSION_SCATTER,
    Costs,
    Effect,
    NextProbe,
    compute_effect,
)

COMMITS: Final = 64
BROKEN: Final = 5
BUDGET: Final = 60.0
"""Minutes behind the measurement of the ends."""
_END_SESSIONS: Final = (2, 6)
"""The fewest and the most."""
_KINDS: Final = ((4.0, 0.25), (1.0, 0.5), (0.05, 0.25))
"""Weights of commits, and how many have each."""
DISTURBED: Final = 0.03
HOW_MUCH: Final = 8.0
"""Share of the blocks that something disturbs, and how many times as noisy they are."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How two builds are timed.

    Attributes:
        name: What the page calls it.
        costs: Minutes that a session takes.
        blocks: Of a session, where the way to search does not choose.
        end_blocks: Of a session of the ends.
        pair_blocks: Of the pair that a search names, side by side.
        restarts: Whether each block starts its engines again, and so is a session.
    """

    name: str
    costs: Costs
    blocks: int
    end_blocks: int
    pair_blocks: int
    restarts: bool = False


IN_TURN: Final = Timing("in turn", Costs(start=0.75, block=0.1), 10, 10, 20)
DUETS: Final = Timing("duets", Costs(start=0.0, block=1.0), 2, 2, 4, restarts=True)


@dataclass(frozen=True, slots=True)
class HistorySetting:
    """A machine and a change.

    Attributes:
        noise: Standard deviation of a block's log ratio.
        step: By how much the culprit is slower; 0.06 is 6 %.
        scatter: Standard deviation of sessions of the same builds, as a log ratio.
        timing: How two builds are timed.
    """

    noise: float
    step: float
    scatter: float = SESSION_SCATTER
    timing: Timing = IN_TURN


@dataclass(slots=True)
class MadeHistory:
    """Commits of which one changed a time, on a machine of a certain noise."""

    weights: tuple[float, ...]
    culprit: int
    broken: frozenset[int]
    setting: HistorySetting
    rng: Generator
    minutes: float = field(default=0.0)
    sessions: int = field(default=0)

    @property
    def timing(self) -> Timing:
        """How its commits are timed."""
        return self.setting.timing

    def ends(self) -> Effect:
        """Measure the ends until they differ beyond noise."""
        fewest, most = _END_SESSIONS
        restarts = self.timing.restarts
        sessions: list[list[float]] = []
        while len(sessions) < most:
            sessions.append(self._session(self.timing.end_blocks, is_changed=True))
            if len(sessions) >= fewest and compute_effect(sessions, restarts=restarts).is_clear:
                break
        return compute_effect(sessions, restarts=restarts)

    def measure(self, choice: NextProbe) -> Sequence[float] | None:
        """Measure a commit in turn with the good end."""
        self.sessions += 1
        if choice.at in self.broken:
            self.minutes += self.timing.costs.of(1) / 2
            return None
        self.minutes += self.timing.costs.of(choice.blocks)
        return self._session(choice.blocks, is_changed=choice.at >= self.culprit)

    def pair(self, good: int, bad: int) -> list[float]:
        """Measure two commits side by side."""
        self.sessions += 1
        blocks = self.timing.pair_blocks
        self.minutes += self.timing.costs.of(blocks)
        return self._session(blocks, is_changed=good < self.culprit <= bad)

    def may_go_on(self) -> bool:
        """Whether there is time left."""
        return self.minutes < BUDGET

    def _session(self, blocks: int, *, is_changed: bool) -> list[float]:
        setting, sessions = self.setting, blocks if self.timing.restarts else 1
        center = math.log1p(setting.step) if is_changed else 0.0
        offset = setting.scatter * self.rng.standard_normal(sessions)
        spread = np.where(self.rng.random(blocks) < DISTURBED, HOW_MUCH, 1.0) * setting.noise
        drawn: list[float] = (center + offset + spread * self.rng.standard_normal(blocks)).tolist()
        return drawn


def made_history(setting: HistorySetting, rng: Generator) -> MadeHistory:
    """Draw commits, the one that did it, and those that do not start."""
    weights, shares = zip(*_KINDS, strict=True)
    drawn = rng.choice(weights, size=COMMITS, p=shares)
    culprit = int(rng.choice(COMMITS, p=drawn / drawn.sum())) + 1
    others = [at for at in range(1, COMMITS) if at != culprit]
    broken = frozenset(map(int, rng.choice(others, size=BROKEN, replace=False)))
    return MadeHistory(tuple(drawn.tolist()), culprit, broken, setting, rng)
