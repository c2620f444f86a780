"""What came of a release: step by step, what was done and what could not be."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class TrackOutcome(Enum):
    """How a step ended."""

    DONE = "done"
    FAILED = "failed"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class TrackStep:
    """One step.

    Attributes:
        name: What was to be done.
        outcome: How it ended.
        says: What came of it, or why nothing did; the first line is enough to go on with.
    """

    name: str
    outcome: TrackOutcome
    says: str


@dataclass(frozen=True, slots=True)
class Tracked:
    """What came of a release.

    Attributes:
        build: What its build is called.
        branch: Of the change.
        commit: The newest of the branch; empty where there is no branch.
        steps: In the order in which they were taken.
    """

    build: str
    branch: str
    commit: str
    steps: tuple[TrackStep, ...]

    @property
    def failed(self) -> bool:
        """Whether a step failed."""
        return any(step.outcome is TrackOutcome.FAILED for step in self.steps)

    def to_json(self) -> Mapping[str, Any]:
        """As docs/json.md has it."""
        return {
            "build": self.build,
            "branch": self.branch if self.commit else None,
            "commit": self.commit or None,
            "steps": [
                {"step": step.name, "outcome": step.outcome.value, "says": step.says}
                for step in self.steps
            ],
        }
