"""Everything one trial needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybridwatch.engines.load_client import LoadClient
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.live_engine import LiveEngine
from hybridwatch.measurement.waves import Tokens, drive, drive_whole
from hybridwatch.records.trial_parts import Completion
from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.scenario import Scenario


@dataclass(frozen=True, slots=True)
class TrialContext:
    """Everything one trial needs; its engine has been made ready for the side.

    Attributes:
        pool: Holds engine, client and scenario.
        number: Which trial of its phase and side, from 0.
        wait_for_other: Waits until the other side of a duet is about to be loaded, too.
    """

    pool: EnginePool
    side: int
    work: Path
    number: int = 0
    wait_for_other: Callable[[], None] = lambda: None

    @property
    def scenario(self) -> Scenario:
        """What is run."""
        return self.pool.scenario

    @property
    def engine(self) -> LiveEngine:
        """The engine under test.

        Raises:
            EngineError: It ended since it was made ready.
        """
        return self.pool.running(self.side)

    @property
    def client(self) -> LoadClient:
        """Loads the engine."""
        return self.pool.client(self.side)

    def ask(self, waves: Sequence[PlannedWave]) -> tuple[Tokens, ...]:
        """Send requests, and bring back the tokens of each answer."""
        return drive(self.engine, waves, can_hold=not self.scenario.engine.disaggregated)

    def complete(self, waves: Sequence[PlannedWave]) -> tuple[Completion, ...]:
        """Send requests, and bring back all that is kept of each answer."""
        return drive_whole(self.engine, waves, can_hold=not self.scenario.engine.disaggregated)


def run_prelude(trial: TrialContext) -> None:
    """Let the requests come and go whose batch rows every trial begins with."""
    workload = trial.scenario.workload
    trial.ask(expand(workload.prelude, workload.seed + trial.number, "prelude"))
