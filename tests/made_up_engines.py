"""Engines made of numbers, for sessions that take no time."""

from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.phase import TrialResult
from hybridwatch.records.run import Phase, Sample
from hybridwatch.scenarios.scenario import Scenario
from tests.builders import BASELINE, CONTENDER, NEWER, answers

TIMED = (Phase.PERFORMANCE, Phase.HOST_SYNC)


class MadeUpBench:
    """Stands for ``Bench``: engines that are always there."""

    def __init__(self, scenario: Scenario, *_: object) -> None:
        self.scenario = scenario
        self.engine = lambda _side: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def identify(self, side: int) -> Any:
        return (BASELINE, NEWER)[side]

    def client(self, _side: int) -> Any:
        return SimpleNamespace(make_ready=lambda: None, start_ahead=lambda: None)

    def start_ahead(self) -> None:
        pass

    def make_ready(self, side: int) -> None:
        pass

    def running(self, side: int) -> None:
        pass

    def retire(self, side: int) -> None:
        pass


class Machine:
    """Gives trials: ``slower`` is how much longer the contender takes."""

    def __init__(self, slower: float = 0.0, noise: float = 0.02) -> None:
        self._slower = slower
        self._noise = noise
        self._rng = np.random.default_rng(4)
        self.order: list[tuple[Phase, int]] = []
        self.scenarios: list[str] = []

    def measure(self, phase: Phase, trial: TrialContext) -> TrialResult:
        self.order.append((phase, trial.side))
        self.scenarios.append(trial.scenario.id)
        value = float(self._rng.lognormal(0.0, self._noise)) * (1 + self._slower * trial.side)
        match phase:
            case Phase.CONTRACT:
                return TrialResult((Sample("contract.padded_rows_prefilling", (0.0,)),))
            case Phase.ACCURACY:
                said = answers("recall", "1" * 20)
                return TrialResult((Sample("accuracy.recall", (1.0,) * 20),), said)
            case Phase.PERFORMANCE:
                return TrialResult((Sample("tpot", (0.01 * value,)),))
            case Phase.HOST_SYNC:
                return TrialResult((Sample("metadata_build_time", (1e-4 * value,)),))
            case Phase.DUET:
                trial.wait_for_other()
                return TrialResult((Sample("duet_cpu_time", (0.01 * value,)),))


class ControlBench(MadeUpBench):
    """Stands for a build beside itself without a fix."""

    def identify(self, side: int) -> Any:
        return (BASELINE, CONTENDER)[side]


class BadMachine(Machine):
    """Breaks a contract on the contender, unless it is blind to that."""

    def __init__(self, *, blind: bool = False) -> None:
        super().__init__()
        self._broken = 0.0 if blind else 7.0

    def measure(self, phase: Phase, trial: TrialContext) -> TrialResult:
        measured = super().measure(phase, trial)
        if phase is Phase.CONTRACT:
            count = self._broken * trial.side
            return TrialResult((Sample("contract.padded_rows_prefilling", (count,)),))
        return measured
