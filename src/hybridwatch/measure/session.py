"""A session: every trial of one scenario on one or two builds, as a run."""

import secrets
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hybridwatch.engine.builds import BuildRequest
from hybridwatch.errors import BuildError, EngineError, MeasurementError
from hybridwatch.measure.bench import Bench
from hybridwatch.measure.harness import harness_identity
from hybridwatch.measure.phase import Station, measure
from hybridwatch.measure.plan import EVERY_PHASE, PlannedTrial, plan
from hybridwatch.measure.testbed import probe_testbed
from hybridwatch.record.identity import EngineBuild, ScenarioRef
from hybridwatch.record.run import Failure, Phase, Run, Trial
from hybridwatch.scenario.digest import ref_fields
from hybridwatch.scenario.scenario import Scenario

_TIMED: Final = frozenset({Phase.PERFORMANCE, Phase.HOST_SYNC})
"""Phases that need the load client."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is.

    Attributes:
        done: Trials made.
        total: Trials planned.
        text: What is going on.
    """

    done: int
    total: int
    text: str


Tell = Callable[[Progress], None]
"""Told as the session goes on."""


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """What to measure.

    Attributes:
        scenario: The scenario.
        sides: The builds, baseline first.
        models: Folder of the embedded models.
        tell: Gets the progress.
        phases: What to measure.
    """

    scenario: Scenario
    sides: Sequence[BuildRequest]
    models: Path
    tell: Tell
    phases: Collection[Phase] = EVERY_PHASE


def run_session(request: SessionRequest) -> Run:
    """Measure, and return every raw value.

    A trial that cannot be measured becomes a failed trial; the session goes on.

    Raises:
        BuildError: A build cannot be switched as its label says.
        EngineError: No engine came up at all, so there is nothing to record.
    """
    started = datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
        session = _Session(request, Path(folder))
        builds, trials = session.run()
    return Run(
        id=secrets.token_hex(4),
        started_at=started,
        finished_at=datetime.now(UTC),
        harness=harness_identity(),
        scenario=ScenarioRef(**ref_fields(request.scenario)),
        testbed=probe_testbed(),
        builds=builds,
        trials=trials,
    )


class _Session:
    """The state of one session while it runs."""

    def __init__(self, request: SessionRequest, work: Path) -> None:
        self._request = request
        self._work = work
        self._plan = plan(request.scenario.trials, len(request.sides), request.phases)
        self._done = 0

    def run(self) -> tuple[tuple[EngineBuild, ...], tuple[Trial, ...]]:
        request = self._request
        bench = Bench(request.scenario, request.sides, request.models, self._work, self._say)
        with bench:
            builds = tuple(bench.identify(side) for side in range(len(request.sides)))
            if _TIMED.intersection(request.phases):
                for side in range(len(request.sides)):
                    bench.client(side).make_ready()
            trials = tuple(self._trial(bench, planned) for planned in self._plan)
        return builds, trials

    def _say(self, text: str) -> None:
        self._request.tell(Progress(self._done, len(self._plan), text))

    def _trial(self, bench: Bench, planned: PlannedTrial) -> Trial:
        label = self._request.sides[planned.side].label
        self._say(f"{planned.phase.value}{' (warm-up)' if planned.warmup else ''} {label}")
        trial = Trial(
            index=self._done,
            side=planned.side,
            phase=planned.phase,
            started_at=datetime.now(UTC),
            duration_s=0.0,
            warmup=planned.warmup,
        )
        begin = time.monotonic()
        try:
            bench.make_ready(planned.side)
            station = Station(bench, planned.side, self._work, planned.number)
            begin = time.monotonic()
            got = measure(planned.phase, station)
        except EngineError as error:
            died = not bench.is_alive(planned.side)
            bench.discard(planned.side)
            trial = replace(trial, failure=Failure(str(error), error.log_tail, engine_died=died))
        except (MeasurementError, BuildError) as error:
            reason, _, detail = str(error).partition("\n")
            trial = replace(trial, failure=Failure(reason, detail))
        else:
            trial = replace(
                trial,
                samples=got.samples,
                answers=got.answers,
                client_result=got.client_result,
            )
        self._done += 1
        return replace(trial, duration_s=time.monotonic() - begin)
