"""A target on a live engine, and the count of what was played."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hybridwatch.system.stopping import require_wanted
from hybridwatch_lab.fuzz.case import FuzzCase
from hybridwatch_lab.fuzz.engine_target import EngineTarget
from hybridwatch_lab.fuzz.judging import Judge


@dataclass(slots=True)
class FuzzCounts:
    """What was played so far.

    Attributes:
        stories: Cases, each as often as it was played, while it was made smaller too.
        requests: Of these.
        steps: Engine steps that gave tokens.
        preemptions: Requests that gave their blocks up for others.
        aborts: Requests that were to be aborted.
    """

    stories: int = 0
    requests: int = 0
    steps: int = 0
    preemptions: int = 0
    aborts: int = 0


@dataclass(slots=True)
class LiveTarget:
    """Plays cases on a live engine and holds them against an oracle.

    Attributes:
        engine_target: Has the engine.
        judge: Has the oracle.
        tell: Called after each case with the counts.
        counts: What was played so far.
    """

    engine_target: EngineTarget
    judge: Judge
    tell: Callable[[FuzzCounts], None]
    counts: FuzzCounts = field(default_factory=FuzzCounts)

    def verdict(self, case: FuzzCase) -> tuple[str, ...]:
        """Play a case, and say what was wrong with it.

        Raises:
            EngineError: The engine does not come up again.
            BuildError: The oracle has ended.
            KeyboardInterrupt: A stop was requested.
        """
        require_wanted()
        played = self.engine_target.play(case)
        counts = self.counts
        counts.stories += 1
        counts.requests += len(case.requests)
        counts.steps += played.steps
        counts.preemptions += played.preemptions
        counts.aborts += case.aborts
        self.tell(counts)
        return self.judge.faults(played)

    def open_anew(self) -> None:
        """Take another engine, which nothing was played on."""
        self.engine_target.open_anew()
