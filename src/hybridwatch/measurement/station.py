"""Everything one trial needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybridwatch.engines.load_client import LoadClient
from hybridwatch.measurement.bench import Bench
from hybridwatch.measurement.live_engine import LiveEngine
from hybridwatch.measurement.waves import Tokens, drive, drive_whole
from hybridwatch.records.completion import Completion
from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Station:
    """Everything one trial needs; its engine has been made ready for the side.

    Attributes:
        bench: Holds engine, client and scenario.
        side: Whose trial it is.
        work: Folder for the client's and lm-eval's files.
        number: Which trial of its phase and side, from 0.
        meet: Waits until the other side of a duet is about to be loaded, too.
    """

    bench: Bench
    side: int
    work: Path
    number: int = 0
    meet: Callable[[], None] = lambda: None

    @property
    def scenario(self) -> Scenario:
        """What is run."""
        return self.bench.scenario

    @property
    def engine(self) -> LiveEngine:
        """The engine under test.

        Raises:
            EngineError: It ended since it was made ready.
        """
        return self.bench.running(self.side)

    @property
    def client(self) -> LoadClient:
        """Loads the engine."""
        return self.bench.client(self.side)

    def ask(self, waves: Sequence[PlannedWave]) -> tuple[Tokens, ...]:
        """Send requests, and bring back the tokens of each answer."""
        return drive(self.engine, waves, can_hold=not self.scenario.engine.disaggregated)

    def complete(self, waves: Sequence[PlannedWave]) -> tuple[Completion, ...]:
        """Send requests, and bring back all that is kept of each answer."""
        return drive_whole(self.engine, waves, can_hold=not self.scenario.engine.disaggregated)


def run_prelude(station: Station) -> None:
    """Let the requests come and go whose batch rows every trial begins with."""
    workload = station.scenario.workload
    station.ask(expand(workload.prelude, workload.seed + station.number, "prelude"))
