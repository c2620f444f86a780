"""The live engine of one scenario, in which faults are switched on and off."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.engines.control import LiveEngine
from hybridwatch.errors import EngineError, MeasurementError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.testbed import harness_identity, probe_testbed
from hybridwatch.measurement.waves import Tokens, drive
from hybridwatch.records.identity import ScenarioRef
from hybridwatch.records.run import Run
from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.load import digest
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch_lab.in_engine import SETTINGS

SIDE: Final = 0
"""The only side of the pool."""


@dataclass(slots=True)
class FaultyEngine:
    """An engine that mutants can be switched on in; a context manager, within which it lives."""

    scenario: Scenario
    build: BuildRequest
    models: Path
    work: Path
    say: Callable[[str], None]
    pool: EnginePool = field(init=False)
    run: Run = field(init=False)
    _tokens: tuple[Tokens, ...] = ()

    def __enter__(self) -> Self:
        """Start the engine, and ask what it is."""
        self._open()
        with ExitStack() as on_error:
            on_error.callback(self.pool.close)
            self.run = self._begun()
            on_error.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """End the engine."""
        self.pool.close()

    def learn_tokens(self) -> None:
        """Ask for the tokens that the engine gives while it is well."""
        self._tokens = self._ask()

    def take_back(self) -> dict[str, int] | None:
        """Count what the mutant did, and switch it off; an engine that cannot is given up."""
        try:
            control = self.live().control
            counts = control.mutant_counts()
            control.mutate(None)
            control.reset()
        except EngineError:
            self._open_anew()
            return None
        return counts

    def live(self) -> LiveEngine:
        """The engine, which must have been made ready."""
        return self.pool.running(SIDE)

    def heal(self, name: str) -> None:
        """Start another engine where this one no longer gives the tokens that it gave at first."""
        if not self._is_healthy():
            self.say(f"{self.scenario.id}: {name} left the engine unwell; starting another one")
            self._open_anew()

    def _open(self) -> None:
        self.pool = EnginePool(
            *(self.scenario, (self.build,), self.models, self.work, self.say),
            plugin_settings=SETTINGS,
        )
        self.pool.__enter__()

    def _open_anew(self) -> None:
        # An engine pool starts an engine only so often; here one dies on purpose, again and again.
        self.pool.close()
        self._open()

    def _begun(self) -> Run:
        now, scenario = datetime.now(UTC), self.scenario
        return Run(
            id="00000000",
            started_at=now,
            finished_at=now,
            harness=harness_identity(),
            scenario=ScenarioRef(scenario.id, scenario.version, digest(scenario), scenario.fix),
            testbed=probe_testbed(()),
            builds=(self.pool.identify(SIDE),),
            trials=(),
        )

    def _ask(self) -> tuple[Tokens, ...]:
        """Tokens of the first wave of the contract trial, with graphs and drafts."""
        self.pool.make_ready(SIDE)
        workload = self.scenario.workload
        return drive(self.live(), expand(workload.waves[:1], workload.seed))

    def _is_healthy(self) -> bool:
        try:
            same = self._ask() == self._tokens
            return same and not self.live().control.count_lost()
        except MeasurementError:
            return False


@contextmanager
def ended_after(engine: LiveEngine, limit_s: float | None) -> Iterator[threading.Event]:
    """End an engine that is not done in time; the event then is set."""
    expired = threading.Event()

    def end() -> None:
        expired.set()
        for server in engine.server.servers:
            server.stop()

    timer = threading.Timer(limit_s, end) if limit_s is not None else None
    if timer is not None:
        timer.start()
    try:
        yield expired
    finally:
        if timer is not None:
            timer.cancel()
            if expired.is_set():
                timer.join()
