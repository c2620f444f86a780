"""The table of a scenario that loads an engine from idle to saturation, and its rules."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from hybridwatch.scenarios.part import Concurrency, Contradiction, Part, Rate, refuse
from hybridwatch.scenarios.workload import Generation

FEWEST_POINTS: Final = 3
"""A line between two points has no shape."""
_MOST_POINTS: Final = 64
_Milliseconds = Annotated[float, Field(ge=0.001, le=10_000_000)]


class Objective(Part):
    """A service-level objective: what each request must keep to be counted as goodput.

    Attributes:
        ttft_ms: The longest time to the first token, milliseconds; None for any.
        tpot_ms: The longest time per output token after it, milliseconds; None for any.
    """

    ttft_ms: _Milliseconds | None = None
    tpot_ms: _Milliseconds | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.bounds:
            refuse(("ttft_ms", "expected it or tpot_ms, found neither"))
        return self

    @property
    def bounds(self) -> Mapping[str, float]:
        """Metric to the largest value that a request may have, seconds."""
        given = {"ttft": self.ttft_ms, "tpot": self.tpot_ms}
        return {metric: ms / 1000 for metric, ms in given.items() if ms is not None}


class Sweep(Part):
    """Loads that a performance trial goes through, in place of the one of ``generation``.

    Attributes:
        max_concurrency: Requests in flight at once, rising.
        request_rate: Requests that arrive per second, rising; in place of the former.
        slo: What a request must keep to be counted as goodput; None where nobody states it.
        known_bad: A planted fault that the curve must tell apart; None where none is named.
    """

    max_concurrency: tuple[Concurrency, ...] = Field(
        default=(), strict=False, max_length=_MOST_POINTS
    )
    request_rate: tuple[Rate, ...] = Field(default=(), strict=False, max_length=_MOST_POINTS)
    slo: Objective | None = None
    known_bad: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")] | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        refuse(*_contradictions(self))
        return self

    @property
    def knob(self) -> str:
        """What is turned: a key of ``generation``."""
        return "request_rate" if self.request_rate else "max_concurrency"

    @property
    def loads(self) -> tuple[float, ...]:
        """The values of the knob, rising."""
        return self.request_rate or self.max_concurrency

    def at(self, load: float, generation: Generation) -> Generation:
        """Give the load of one point."""
        return generation.model_copy(update={self.knob: load})


def _contradictions(sweep: Sweep) -> Iterator[Contradiction]:
    if sweep.max_concurrency and sweep.request_rate:
        yield "request_rate", "expected it or max_concurrency, found both"
    loads = sweep.loads
    if len(loads) < FEWEST_POINTS or any(later <= before for before, later in pairwise(loads)):
        found = ", ".join(f"{load:g}" for load in loads) or "none"
        yield sweep.knob, f"expected at least {FEWEST_POINTS} rising numbers, found {found}"


def contradictions_of_sweep(sweep: Sweep | None, load: Generation) -> Iterator[Contradiction]:
    """Yield each broken rule between a sweep and the load that it varies."""
    if sweep is None:
        return
    most = sweep.max_concurrency[-1] if sweep.max_concurrency else load.max_concurrency
    if most > load.max_concurrency:
        expected = f"at most workload.generation.max_concurrency ({load.max_concurrency})"
        yield "sweep.max_concurrency", f"expected {expected}, found {most}"
    if load.output_tokens == 1:
        yield (
            "workload.generation.output_tokens",
            "expected at least 2 with a sweep: one token has no time per output token",
        )
    if load.request_rate is not None:
        yield (
            "workload.generation.request_rate",
            f"expected none with a sweep, found {load.request_rate:g}",
        )
