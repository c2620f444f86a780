"""What came of a case."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hybridwatch.records.trial_parts import Completion
from hybridwatch.scenarios.expansion import PlannedRequest


@dataclass(frozen=True, slots=True)
class Played:
    """What an engine did with a case.

    Attributes:
        requests: What was asked.
        answers: To each; without tokens where its logarithms are no numbers, and where the request
            was to be aborted.
        counters: What the contract probe counted.
        steps: Engine steps that gave tokens.
        preemptions: Requests that gave their blocks up for others.
        trouble: Why the engine did not come to the end of the case; empty if it did.
    """

    requests: tuple[PlannedRequest, ...] = ()
    answers: tuple[Completion, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    steps: int = 0
    preemptions: int = 0
    trouble: str = ""
