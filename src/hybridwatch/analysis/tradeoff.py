"""Two curves compared, as reports and pages show them; nothing here computes."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from hybridwatch.records.run import Clock

Better = Literal["baseline", "contender"]


@dataclass(frozen=True, slots=True)
class Spread:
    """A number of each trial: the median, and the middle four fifths of them."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """What a side gave under one load, over its trials; units are those of ``docs/json.md``.

    ``load`` counts requests in flight, or that arrive per second. ``goodput`` is ``None`` without
    an objective, ``joules_per_token`` where no driver counts energy.
    """

    load: Annotated[int | float, WithJsonSchema({"type": "number"})]
    interactivity: Spread
    throughput: Spread
    goodput: Spread | None
    joules_per_token: Spread | None


@dataclass(frozen=True, slots=True)
class SideCurve:
    """The curve of a side, from the lowest load to the highest; as in ``docs/json.md``.

    ``gpus`` is 0 on a CPU. ``slo`` has the largest seconds of a request that counts as goodput.
    ``clock`` is whose seconds the rates count.
    """

    build: str
    knob: str
    gpus: int
    slo: Mapping[str, float]
    trials: int
    points: tuple[LoadPoint, ...]
    # Left out of JSON: verdicts stored before there was another are to be had again to the letter.
    clock: Annotated[Clock, Field(exclude_if=lambda clock: clock == "wall")] = "wall"

    @property
    def best_goodput(self) -> LoadPoint | None:
        """The load under which the most requests keep the objective; ``None`` without one."""
        stated = [(one, one.goodput.middle) for one in self.points if one.goodput is not None]
        best = max(stated, key=lambda found: found[1], default=None)
        return None if best is None else best[0]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Interactivities, tokens per second, at which one side gives more throughput beyond noise."""

    better: Better
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """Two curves next to each other.

    ``common`` is the lowest and highest interactivity that the median points of both sides reached,
    if there is such a range. ``stretches`` begin at the lowest.
    """

    baseline: SideCurve
    contender: SideCurve
    common: tuple[float, float] | None
    stretches: tuple[Stretch, ...] = ()

    @property
    def crossings(self) -> tuple[tuple[float, float], ...]:
        """The gaps between stretches of which one side is better each."""
        return tuple(
            (before.high, after.low)
            for before, after in pairwise(self.stretches)
            if before.better != after.better
        )
