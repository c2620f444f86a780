"""A session: every trial of one scenario on one or two builds, as a run."""

import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from hybridwatch.engines.fitting import cuda_numbers
from hybridwatch.errors import BuildError, EngineError, MeasurementError
from hybridwatch.measurement.accuracy.harness import LmEval
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.machine_state import Gpus, Watch
from hybridwatch.measurement.phase import TrialResult, measure
from hybridwatch.measurement.plan import (
    TIMED_PHASES,
    Barrier,
    Pace,
    PlannedTrial,
    add_until_decided,
    is_duet,
    list_phases,
    made_at_once,
    number_starts,
    one_processor,
    plan_again,
    plan_block,
    plan_more,
    require_duet,
)
from hybridwatch.measurement.session_request import Progress, SessionRequest, count_rounds
from hybridwatch.measurement.testbed import harness_identity, probe_testbed
from hybridwatch.records.fields import LONGEST_LOG, LONGEST_TEXT
from hybridwatch.records.identity import EngineBuild, Expected, ScenarioRef, side_names
from hybridwatch.records.run import STOPPED, Failure, Phase, Run, Trial
from hybridwatch.scenarios.load import digest
from hybridwatch.system.engine_log import find_root
from hybridwatch.system.stopping import require_wanted


def _require_same(begun: Run, earlier: Run | None) -> None:
    for what in ("scenario", "testbed", "builds"):
        if earlier is not None and getattr(begun, what) != getattr(earlier, what):
            raise BuildError(
                f"{begun.scenario.id}: {what}: expected as in run {earlier.id}, which was stopped, "
                "found otherwise; without --resume it is measured again"
            )


def run_session(
    request: SessionRequest,
    keep: Callable[[Run], None] = lambda _: None,
    made: Callable[[Run, Phase], None] = lambda *_: None,
) -> Run:
    """Measure, and return every raw value; a trial that cannot be measured is a failed one.

    ``keep`` gets the run of a stopped session (``KeyboardInterrupt``), if it has a whole round;
    ``made`` the run so far after each phase but the last. After an ``EngineError`` there is nothing
    to record: no engine came up at all.
    """
    with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
        try:
            with Session(request, Path(folder)) as session:
                try:
                    return session.make_all(made)
                except KeyboardInterrupt:
                    if (run := session.cut_short(STOPPED)) is not None:
                        keep(run)
                    raise
        except EngineError:
            require_wanted()
            raise


class Session:
    """One scenario on its builds, made in one go or phase by phase; a context manager."""

    def __init__(self, request: SessionRequest, work: Path, lm_eval: LmEval | None = None) -> None:
        self.request = request
        self._work = work
        self._started = datetime.now(UTC)
        self._pace = Pace(request.budget.seconds if request.budget else 0.0)
        self.phases = list_phases(request.scenario, request.phases)
        self._plan, made = request.left, len(request.made)
        self._total = made + len(self._plan)
        self._is_duet = is_duet(self.phases)
        if Phase.DUET in self.phases:
            require_duet(request.sides, self.phases)
        self._names = side_names([side.label for side in request.sides])
        self._done = made
        # Now, while there is no engine of ours: what is in use of a GPU's memory is others'.
        self._gpus = Gpus.of(request.sides)
        # All processors are the testbed's, also where a duet has one of them.
        self._testbed = probe_testbed(self._gpus.devices)
        self._run: Run | None = None
        self._start: int | None = None
        self._held = ExitStack()
        self._pool = EnginePool(
            request.scenario,
            request.sides,
            request.models,
            work,
            self._report,
            cuda_numbers(self._gpus.devices),
            lm_eval,
            self._is_duet or _compares_starts(request),
        )

    def __enter__(self) -> Self:
        with ExitStack() as on_error:
            if self._is_duet:
                on_error.enter_context(one_processor())
            on_error.enter_context(self._pool)
            self._held = on_error.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def make_all(self, made: Callable[[Run, Phase], None] = lambda *_: None) -> Run:
        """Make every trial, and return the run; ``made`` is as for ``run_session``."""
        for phase in self.phases[:-1]:
            made(self.make((phase,)), phase)
        request, run = self.request, self.make(self.phases[-1:])
        if request.budget is not None:
            run = add_until_decided(
                run, request.budget, self._pace, self._block, self._report_lasting
            )
        else:
            run = self.look_again()
        return replace(run, finished_at=datetime.now(UTC))

    def start_ahead(self) -> None:
        """Let the engine come up while other sessions are measured."""
        self._pool.start_ahead()

    def start_clients_ahead(self) -> None:
        """Let the load clients get ready while nothing is timed."""
        for side in range(len(self.request.sides)):
            self._pool.client(side).start_ahead()

    def begin(self) -> Run:
        """Wait for the engines, and return the run with the trials of an earlier one; once."""
        if self._run is None:
            sides = range(len(self.request.sides))
            begun = self._begun(tuple(self._pool.identify(side) for side in sides))
            _require_same(begun, self.request.earlier)
            self._run = begun
        return self._run

    def make(self, phases: Collection[Phase]) -> Run:
        """Make the trials of some phases; ``cut_short`` gives those before a stop."""
        run = self.begin()
        if any(phase in phases for phase in TIMED_PHASES if phase in self.phases):
            for side in range(len(self.request.sides)):
                self._pool.client(side).make_ready()
        for phase in self.phases:
            if phase in phases:
                run = self._add(run, [one for one in self._plan if one.phase is phase])
                planned = any(one.phase is phase for one in self._plan)
                if phase is Phase.PERFORMANCE and planned and self.request.budget is None:
                    run = self._add(run, self._further(run))
        self._run = replace(run, finished_at=datetime.now(UTC))
        return self._run

    def look_again(self) -> Run:
        """Make the timed trials of a whole run again if there is a reason, on new engines.

        Trials of one engine share the luck of its start, so more of them would say the same.
        """
        run, sides = self.begin(), len(self.request.sides)
        reason = self.request.again(run) if sides > 1 and self.request.budget is None else ""
        if not reason:
            return run
        starts = self._further_starts(run)
        planned = plan_again(count_rounds(run), sides, self.request.warmed, starts)
        self._total = self._done + len(planned)
        self._report_lasting(f"{reason}: measuring again, on new engines")
        self._pool.renew()
        self._start = None
        self._run = replace(run, second_look=len(run.trials))
        run = self._add(self._run, planned)
        self._run = replace(run, finished_at=datetime.now(UTC))
        return self._run

    def _add(self, run: Run, planned: Sequence[PlannedTrial]) -> Run:
        """Make trials; each is kept at once, for a session that is stopped."""
        for group in made_at_once(planned):
            self._renew_for(group[0])
            trials = self._trials(group)
            self._run = run = replace(run, trials=(*run.trials, *trials))
        return run

    def _renew_for(self, planned: PlannedTrial) -> None:
        """Give a trial new engines if it is the first on another start of them."""
        if planned.start not in {None, self._start}:
            if self._start is not None:
                self._pool.renew()
            self._start = planned.start

    def _further_starts(self, run: Run) -> range:
        made = [trial.start for trial in run.trials if trial.start is not None]
        return number_starts(self.request.scenario.trials, max(made, default=-1) + 1)

    def _further(self, run: Run) -> tuple[PlannedTrial, ...]:
        sides, done = len(self.request.sides), self.request.scenario.trials.performance
        rounds = self.request.missing(run) if sides > 1 else 0
        further = plan_more(sides, done, rounds, self._further_starts(run))
        if further:
            self._total += len(further)
            self._report_lasting(f"noisy machine: {rounds} more trials a side")
        return further

    def cut_short(self, reason: str) -> Run | None:
        """Give up what is not measured yet; ``None`` for a run without a whole round of any phase.

        A phase that lacks trials has a failed one for each side, as it has when an engine fails. Of
        a run that is measured again its first trials are kept, which are whole.
        """
        if self._run is None:
            return None
        if (again := self._run.second_look) is not None:
            return replace(self._run, trials=self._run.trials[:again], second_look=None)
        made = count_rounds(self._run)
        if not any(made.values()):
            return None
        planned = self.request.planned
        wanted = Counter(one.phase for one in planned if one.side == 0 and not one.warmup)
        # How many timed trials a decision takes is not known: never enough of them.
        never = TIMED_PHASES if self.request.budget is not None else ()
        lacking = [one for one in self.phases if one in never or made[one] < wanted[one]]
        failure = _failure(reason, "")
        for phase in lacking:
            for side in range(len(self.request.sides)):
                # Trials of a block that was not finished are in no run.
                self._done = len(self._run.trials)
                trial = self._begin_trial(PlannedTrial(phase, side))
                kept = (*self._run.trials, replace(trial, failure=failure))
                self._run = replace(self._run, trials=kept)
        return replace(self._run, finished_at=datetime.now(UTC))

    def _begun(self, builds: tuple[EngineBuild, ...]) -> Run:
        scenario = self.request.scenario
        expect = scenario.expect
        return Run(
            id=secrets.token_hex(4),
            started_at=self._started,
            finished_at=self._started,
            harness=harness_identity(),
            scenario=ScenarioRef(scenario.id, scenario.version, digest(scenario), scenario.fix),
            testbed=self._testbed,
            builds=builds,
            trials=self.request.made,
            known_bad=self.request.known_bad,
            expected=Expected(dict(expect.exactly), dict(expect.at_least)),
        )

    def _block(self, number: int, goal: int) -> tuple[Trial, ...]:
        block = plan_block(number, len(self.request.sides), self.phases)
        self._total = self._done + (goal - number) * len(block)
        groups = made_at_once(block)
        return tuple(trial for group in groups for trial in self._trials(group))

    def _report_lasting(self, text: str) -> None:
        self.request.on_progress(Progress(self._done, self._total, text, lasting=True))

    def _report(self, text: str) -> None:
        self.request.on_progress(Progress(self._done, self._total, text))

    def _trials(self, group: Sequence[PlannedTrial]) -> tuple[Trial, ...]:
        require_wanted()
        first = group[0]
        names = " | ".join(self._names[one.side] for one in group)
        self._report(f"{first.phase.value}{' (warm-up)' if first.warmup else ''} {names}")
        begun = [
            replace(self._begin_trial(one), index=self._done + at) for at, one in enumerate(group)
        ]
        if len(group) == 1:
            made = [self._trial(first, begun[0])]
        else:
            barrier = Barrier(len(group))

            def make(planned: PlannedTrial, trial: Trial) -> Trial:
                try:
                    return self._trial(planned, trial, barrier.wait)
                finally:
                    barrier.leave()

            with ThreadPoolExecutor(len(group)) as threads:
                made = list(threads.map(make, group, begun))
            for planned in group:
                self._pool.retire(planned.side)
        # An engine that was ended by request has failed nothing.
        require_wanted()
        self._done += len(group)
        return tuple(made)

    def _trial(
        self,
        planned: PlannedTrial,
        trial: Trial,
        wait_for_other: Callable[[], None] = lambda: None,
    ) -> Trial:
        pool = self._pool
        # Before the engine is made ready, so that it lies between trials and not within one. Those
        # of a duet would time each other's, and both sides meet the same machine.
        is_watched = planned.phase in TIMED_PHASES and not self._is_duet
        watch = Watch(self._gpus) if is_watched else None
        begin = time.monotonic()
        try:
            pool.make_ready(planned.side)
            context = TrialContext(
                pool, planned.side, self._work, planned.number, wait_for_other, planned.warmup
            )
            if watch is not None:
                watch.start()
            begin = time.monotonic()
            got = _measured(planned.phase, context)
        except EngineError as error:
            died = not pool.is_alive(planned.side)
            pool.discard(planned.side)
            reason = _reason_of_death(error) if died else str(error)
            trial = replace(trial, failure=_failure(reason, error.log_tail, died=died))
        except (MeasurementError, BuildError) as error:
            reason, _, detail = str(error).partition("\n")
            trial = replace(trial, failure=_failure(reason, detail))
        else:
            state = watch.close() if watch is not None else None
            results = {one.name: getattr(got, one.name) for one in fields(got)}
            trial = replace(trial, **results, surroundings=state)
        finally:
            if watch is not None:
                watch.stop()
        return replace(trial, duration_s=time.monotonic() - begin)

    def _begin_trial(self, planned: PlannedTrial) -> Trial:
        return Trial(
            index=self._done,
            side=planned.side,
            phase=planned.phase,
            started_at=datetime.now(UTC),
            duration_s=0.0,
            warmup=planned.warmup,
            start=planned.start,
        )


def _compares_starts(request: SessionRequest) -> bool:
    """Whether both sides are one build, timed on several starts: these must not be the same ones.

    Else an A/A run shares the luck of each start between its sides, which two builds never do.
    """
    labels = {side.label for side in request.sides}
    return len(request.sides) > len(labels) and request.scenario.trials.starts > 1


def _measured(phase: Phase, trial: TrialContext) -> TrialResult:
    """Make one trial; where both the engine and its client ended, the engine's end is the cause."""
    try:
        return measure(phase, trial)
    except MeasurementError:
        trial.pool.running(trial.side)
        raise


def _reason_of_death(error: EngineError) -> str:
    """Add what the engine's own processes said first: the client only sees that no answer comes."""
    reason, root = str(error), find_root(error.log_tail)
    return reason if root is None or root in reason else f"{reason}: {root}"


def _failure(reason: str, log: str, *, died: bool = False) -> Failure:
    """Say why a trial failed, in no more text than a record holds; lines of a log can be long."""
    return Failure(reason[:LONGEST_TEXT], log[-LONGEST_LOG:], engine_died=died)
