"""What one measurement of a candidate gave, as the state file keeps it."""

from enum import Enum

from pydantic import BaseModel, ConfigDict, Field


class ProbeState(Enum):
    """How a measurement ended."""

    MEASURED = "measured"
    NOT_UP = "does not start"
    """The engine does not come up for the scenario."""
    DIES = "dies"
    """It comes up, and ends in the scenario."""
    NO_VALUE = "gave no measurement"
    """The engine lives, and a trial could not be measured."""
    NOT_HAD = "cannot be had"
    """There is no such build here, or its engine was not up in time."""


class ProbeOutcome(BaseModel):
    """One measurement.

    Attributes:
        state: How it ended.
        reason: Why there is none, in a line.
        label: The build, as its engine reported it.
        run: Id of the run that it was read from; empty when there is none.
        counts: Worst trial of each exact metric.
        metric: Of a timed one, what was timed.
        ratios: Of that, the log ratio of each block against the first candidate.
        minutes: What it took.
        block_minutes: What a block took, and of a duet the start of its engines.
        doubts: Of a timed one, what is held against the machine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: ProbeState
    reason: str = ""
    label: str = ""
    run: str = ""
    counts: dict[str, float] = Field(default_factory=dict)
    metric: str = ""
    ratios: tuple[float, ...] = ()
    minutes: float = 0.0
    block_minutes: float = 0.0
    doubts: tuple[str, ...] = ()
