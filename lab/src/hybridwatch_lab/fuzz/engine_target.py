"""Plays cases on the live engine of a scenario, each from the state of a fresh engine on."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.engines.control import LiveEngine, ended_after
from hybridwatch.engines.load_client import read_totals
from hybridwatch.errors import EngineError, MeasurementError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.phase import CONTRACTS
from hybridwatch.measurement.waves import drive_whole
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch_lab.fuzz.case import FuzzCase
from hybridwatch_lab.fuzz.played import Played
from hybridwatch_lab.fuzz.scenario_file import planned
from hybridwatch_lab.in_engine import SETTINGS

LONGEST_S: Final = 60.0
"""A case lasts a second or two; an engine that needs so long counts as hung."""

_SIDE: Final = 0
_PROBE: Final = "contract"


@dataclass(slots=True)
class EngineTarget:
    """A build with the engine of a scenario, on which cases are played; a context manager.

    Attributes:
        scenario: Gives model and engine arguments.
        build: Which engine.
        models: Folder of the models.
        work: Folder for logs.
        say: Called with a line about what is going on.
        mutant: A fault that is on all the time; None for none.
    """

    scenario: Scenario
    build: BuildRequest
    models: Path
    work: Path
    say: Callable[[str], None]
    mutant: str | None = None
    _pool: EnginePool = field(init=False)
    _is_open: bool = False

    def __enter__(self) -> Self:
        self.open_anew()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the engine."""
        if self._is_open:
            self._pool.close()
        self._is_open = False

    def open_anew(self) -> None:
        """End the engine and start another one.

        Raises:
            EngineError: It does not come up.
            BuildError: The mutant does not fit this release.
        """
        # An engine pool starts an engine only so often.
        self.close()
        self._pool = EnginePool(
            *(self.scenario, (self.build,), self.models, self.work, self.say), told=SETTINGS
        )
        self._pool.__enter__()
        with ExitStack() as on_error:
            on_error.callback(self._pool.close)
            self._pool.make_ready(_SIDE).control.mutate(self.mutant)
            on_error.pop_all()
        self._is_open = True

    def play(self, case: FuzzCase) -> Played:
        """Play a case from a fresh state on; an engine that does not survive it is replaced.

        Raises:
            EngineError: The next engine does not come up.
        """
        engine = self._engine()
        with ended_after(engine, LONGEST_S) as expired:
            try:
                return self._play(engine, case)
            except MeasurementError as error:
                late = f"no end of the case after {LONGEST_S:.0f} s"
                trouble = late if expired.is_set() else str(error).partition("\n")[0]
        self.say(f"the engine is given up: {trouble}")
        self.open_anew()
        return Played(trouble=trouble)

    def _engine(self) -> LiveEngine:
        try:
            return self._pool.running(_SIDE)
        except EngineError as error:
            self.say(f"starting another one: {error}")
            self.open_anew()
            return self._pool.running(_SIDE)

    def _play(self, engine: LiveEngine, case: FuzzCase) -> Played:
        control = engine.control
        self._freshen(engine)
        before = read_totals(engine.server)
        control.set_idle_batches(case.dummy_batches)
        control.start_probe(_PROBE)
        waves = planned(case, self.scenario.workload.seed)
        answers = drive_whole(engine, waves)
        counters = control.stop_probe(_PROBE)
        after = read_totals(engine.server)
        return Played(
            requests=tuple(request for wave in waves for request in wave.requests),
            answers=answers,
            counters={name: counters[name] for name in CONTRACTS if name in counters},
            steps=after.steps - before.steps,
            preemptions=after.preemptions - before.preemptions,
        )

    def _freshen(self, engine: LiveEngine) -> None:
        control = engine.control
        # Idle batches first: the reset below must not be followed by any on the old rows.
        control.set_idle_batches(0)
        control.set_token_budget(None)
        control.reset()
        control.clear_cache()
