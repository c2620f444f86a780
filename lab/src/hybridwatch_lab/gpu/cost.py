"""What something costs in a step of an engine, as a study measured it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ratio:
    """Step time of one form by that of another: median over rounds, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What one thing costs at one size of batch; ``forms`` are such as ``ours/upstream``."""

    device: str
    subject: str
    batch: int
    forms: str
    step_time: Ratio
    remark: str
    source: str
