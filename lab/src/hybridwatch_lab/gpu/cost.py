"""What something costs in a step of an engine, as a study measured it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ratio:
    """Step time of one form by that of another.

    Attributes:
        value: Median over rounds.
        low: Lower end of its 95 % interval.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What one thing costs at one size of batch.

    Attributes:
        device: Name of the GPU that it was measured on, or ``cpu``.
        subject: A fix, the probe, or the read of a flag.
        batch: Requests in the batch.
        forms: Which form by which, such as ``ours/upstream``.
        step_time: Of the one by that of the other.
        remark: What was counted besides; empty where nothing was.
        source: File that it was read from, relative to the results folder.
    """

    device: str
    subject: str
    batch: int
    forms: str
    step_time: Ratio
    remark: str
    source: str
