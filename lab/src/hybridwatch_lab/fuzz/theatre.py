"""A stage and a judge, and the count of what was played."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hybridwatch.system.stopping import require_wanted
from hybridwatch_lab.fuzz.judging import Judge
from hybridwatch_lab.fuzz.stage import Stage
from hybridwatch_lab.fuzz.story import Story


@dataclass(slots=True)
class Counts:
    """What was played so far.

    Attributes:
        stories: Each as often as it was played, while it was made smaller too.
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
class LiveTheatre:
    """Plays stories on a live engine and holds them against an oracle.

    Attributes:
        stage: Has the engine.
        judge: Has the oracle.
        tell: Called after each story with the counts.
        counts: What was played so far.
    """

    stage: Stage
    judge: Judge
    tell: Callable[[Counts], None]
    counts: Counts = field(default_factory=Counts)

    def verdict(self, story: Story) -> tuple[str, ...]:
        """Play a story, and say what was wrong with it.

        Raises:
            EngineError: The engine does not come up again.
            BuildError: The oracle has ended.
            KeyboardInterrupt: A stop was requested.
        """
        require_wanted()
        played = self.stage.play(story)
        counts = self.counts
        counts.stories += 1
        counts.requests += len(story.requests)
        counts.steps += played.steps
        counts.preemptions += played.preemptions
        counts.aborts += story.aborts
        self.tell(counts)
        return self.judge.faults(played)

    def open_anew(self) -> None:
        """Take another engine, which nothing was played on."""
        self.stage.open_anew()
