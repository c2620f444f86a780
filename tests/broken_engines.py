"""Engines made of numbers, for sessions that take no time, and runs of engines that died."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.phase import TrialResult
from hybridwatch.records.run import Failure, Phase, Run, Sample, Trial
from hybridwatch.scenarios.scenario import Scenario
from tests.builders import BASELINE, CONTENDER, NEWER, STARTED, Trials, a_run, answers, noisy

TIMED = (Phase.PERFORMANCE, Phase.HOST_SYNC)


class MadeUpBench:
    """Stands for ``Bench``: engines that are always there."""

    def __init__(self, scenario: Scenario, *_: object) -> None:
        self.scenario = scenario
        self.engine = lambda _side: None
        self.starts = 1

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

    def renew(self) -> None:
        self.starts += 1


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


class UnluckyMachine(Machine):
    """Whose contender's first engine is slower by the luck of its start, and no later one."""

    def measure(self, phase: Phase, trial: TrialContext) -> TrialResult:
        pool: Any = trial.pool
        self._slower = 0.1 if pool.starts == 1 else 0.0
        return super().measure(phase, trial)


class LuckyStarts(Machine):
    """Whose contender is slower by the luck of each start."""

    def __init__(self, lucks: Sequence[float]) -> None:
        super().__init__(noise=0.002)
        self._lucks = lucks

    def measure(self, phase: Phase, trial: TrialContext) -> TrialResult:
        pool: Any = trial.pool
        self._slower = self._lucks[pool.starts - 1]
        return super().measure(phase, trial)


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


CORE = "(EngineCore_DP0 pid=71) ERROR 02-14 09:30:41 [core.py:844] "
SERVER = "(APIServer pid=12) ERROR 02-14 09:30:41 [async_llm.py:525] "
CUDA_LOG = "\n".join(
    [
        "(APIServer pid=12) INFO:     127.0.0.1:52114 - \"POST /v1/completions HTTP/1.1\" 200 OK",
        f"{CORE}EngineCore encountered a fatal error.",
        f"{CORE}Traceback (most recent call last):",
        f'{CORE}  File "/opt/engine/vllm/v1/worker/model_runner.py", line 27, in step',
        f"{CORE}    raise RuntimeError(message)",
        f"{CORE}torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        f"{CORE}CUDA kernel errors might be asynchronously reported at some other API call.",
        f"{CORE}For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        f"{SERVER}AsyncLLM output_handler failed.",
        f"{SERVER}Traceback (most recent call last):",
        f"{SERVER}vllm.v1.engine.exceptions.EngineDeadError: See stack trace for the root cause.",
        "(EngineCore_DP0 pid=71) Process EngineCore_DP0:",
        "terminate called after throwing an instance of 'c10::AcceleratorError'",
        "  what():  CUDA error: an illegal memory access was encountered",
    ]
)  # fmt: skip
DEATH = Failure(
    "a request was not answered: RemoteProtocolError('Server disconnected')",
    CUDA_LOG,
    engine_died=True,
)
AGAIN = Failure("engine healthy was started 3 times and died again", "")


def healthy() -> dict[str, Trials]:
    """A side that measured whatever a scenario measures."""
    times = ("ttft", "tpot", "itl", "e2el")
    rates = ("output_throughput", "total_token_throughput", "request_throughput")
    return {
        "contract.wrong_tokens": (0.0,) * 3,
        "contract.padded_rows_prefilling": (0.0,) * 3,
        "accuracy.recall": "1" * 40,
        **{name: noisy(0.04, 10, 0.01, at) for at, name in enumerate(times, 1)},
        **{name: noisy(800.0, 10, 0.01, at) for at, name in enumerate(rates, 11)},
        "metadata_build_time": noisy(0.0003, 5, 0.05),
        "host_syncs_per_step": (3.0,) * 5,
    }


def with_deaths(run: Run, side: int, *failures: Failure) -> Run:
    """The same run where every phase of a side failed: first the death, then nothing but that."""
    phases = (Phase.CONTRACT, Phase.CONTRACT, Phase.ACCURACY, Phase.PERFORMANCE, Phase.HOST_SYNC)
    start = len(run.trials)
    lost = tuple(
        Trial(
            index=start + number,
            side=side,
            phase=phase,
            started_at=STARTED,
            duration_s=1.0,
            failure=failures[min(number, len(failures) - 1)],
        )
        for number, phase in enumerate(phases)
    )
    return replace(run, trials=run.trials + lost)


def dead_contender() -> Run:
    """The contender ends in its first trial and never lives for long again."""
    return with_deaths(a_run(healthy(), {}), 1, DEATH, DEATH, AGAIN)


def slow_contender(factor: float = 1.057) -> Run:
    """Every time and rate is worse, by a few per cent; contracts and answers hold."""
    slower = healthy()
    for name, values in slower.items():
        if isinstance(values, tuple) and name.endswith("throughput"):
            slower[name] = tuple(value / factor for value in values)
        elif isinstance(values, tuple) and name in {"ttft", "tpot", "itl", "e2el"}:
            slower[name] = tuple(value * factor for value in values)
    return a_run(healthy(), slower)


def restless(seed: int = 1) -> Run:
    """Two sides alike on a machine with 12 % of noise."""
    sides = (
        {
            **healthy(),
            **{
                name: noisy(level, 10, 0.12, seed + at)
                for at, (name, level) in enumerate(
                    {"ttft": 0.04, "tpot": 0.01, "output_throughput": 800.0}.items(), start
                )
            },
        }
        for start in (100, 200)
    )
    return a_run(*sides)
