"""Measures mutants, one after the other, on the live engine of one scenario."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from hybridwatch.errors import EngineError, MeasurementError
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.phase import TrialResult, measure
from hybridwatch.measurement.plan import list_phases
from hybridwatch.records.run import Failure, Phase, Trial
from hybridwatch.scenarios.fixes import Mutant
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch_lab.mutants.faulty_engine import SIDE, FaultyEngine, ended_after
from hybridwatch_lab.mutants.judging import NO_ANSWER_IN_TIME, SURVIVAL, Kill, find_kill, find_state
from hybridwatch_lab.mutants.table import HEALTHY, MutantCell, MutantState

SLOWEST: Final = 6.0
"""Times as long as the healthy engine may a trial last; then the engine counts as hung."""
SHORTEST_LIMIT_S: Final = 60.0


class Effort(Enum):
    """How much of a scenario is measured for each mutant that nothing has shown yet."""

    CONTRACTS = "contracts"
    """Contract trials alone."""
    BRIEF = "brief"
    """Contract trials and, if the first of them reaches the mutant, answers."""
    THOROUGH = "thorough"
    """Both in any case, and times and host syncs for the mutants that nothing else can show."""


@dataclass(slots=True)
class _Count:
    """What the mutant did in all trials so far; None once an engine has taken a count with it."""

    reached: int | None = 0
    changed: int | None = 0

    def add(self, counts: dict[str, int] | None) -> None:
        if counts is None or self.reached is None or self.changed is None:
            self.reached = self.changed = None
            return
        self.reached += counts["reached"]
        self.changed += counts["changed"]


@dataclass(frozen=True, slots=True)
class _Found:
    """What the trials of a cell found."""

    kill: Kill
    state: MutantState
    count: _Count
    seconds: float
    trials: int


@dataclass(slots=True)
class MutantRunner:
    """One scenario on one build, while its engine lives."""

    engine: FaultyEngine
    effort: Effort = Effort.BRIEF
    _healthy: dict[tuple[Phase, int], Trial] = field(default_factory=dict)

    @property
    def scenario(self) -> Scenario:
        """What is run."""
        return self.engine.scenario

    def measure_healthy(self) -> None:
        """Measure the engine as it is, which all mutants are compared with."""
        for phase, number in self._planned():
            trial = self._trial(phase, number, None, _Count())
            if trial.failure is not None:
                raise MeasurementError(
                    f"{self.scenario.id}: the healthy engine: {trial.failure.reason}"
                )
            self._healthy[phase, number] = trial
        self.engine.learn_tokens()

    def healthy(self) -> MutantCell:
        """Judge the engine as it is against itself: nothing may be found."""
        begin = time.monotonic()
        again = [self._trial(phase, 0, None, _Count()) for phase in self._phases()]
        kill = find_kill(self.scenario, self.engine.run, self._first_trials(), again)
        seconds = time.monotonic() - begin
        quiet = MutantState.SURVIVED if self._can_show(None) else MutantState.NOT_MEASURED
        state = MutantState.KILLED if kill else quiet
        return self._cell(HEALTHY, "", _Found(kill, state, _Count(), seconds, len(again)))

    def measure(self, name: str, mutant: Mutant) -> MutantCell:
        """Measure the engine with a mutant, until something shows it or nothing is left."""
        count, mutated, kill = _Count(), list[Trial](), SURVIVAL
        own = Phase(mutant.phase) if mutant.phase != "answers" else None
        measured = self._can_show(own)
        begin = time.monotonic()
        for phase, number in self._planned(own):
            if mutated and count.reached == 0 and self.effort is not Effort.THOROUGH:
                break  # other seeds and documents rarely reach what the waves did not
            mutated.append(self._trial(phase, number, name, count))
            pairs = [self._healthy_trial(one.phase, n) for n, one in _numbered(mutated)]
            kill = find_kill(self.scenario, self.engine.run, pairs, mutated)
            if kill:
                break
        seconds = time.monotonic() - begin
        state = find_state(mutant, kill, count.reached, count.changed, measured=measured)
        if count.changed != 0:
            self.engine.heal(name)
        return self._cell(name, mutant.digest, _Found(kill, state, count, seconds, len(mutated)))

    def _can_show(self, own: Phase | None) -> bool:
        """Whether what is measured includes what can show a mutant."""
        if own is None:
            return self.effort is not Effort.CONTRACTS or self.scenario.accuracy is None
        return self.effort is Effort.THOROUGH

    def _phases(self, own: Phase | None = None) -> tuple[Phase, ...]:
        """What is measured, in the order of a session."""
        wanted = {Phase.CONTRACT}
        if self.effort is not Effort.CONTRACTS:
            wanted.add(Phase.ACCURACY)
        if own is not None and self.effort is Effort.THOROUGH:
            wanted.add(own)
        return list_phases(self.scenario, wanted)

    def _planned(self, own: Phase | None = None) -> Iterator[tuple[Phase, int]]:
        counts = self.scenario.trials
        many = {
            Phase.CONTRACT: counts.contract,
            Phase.ACCURACY: 1,
            Phase.PERFORMANCE: counts.performance,
            Phase.HOST_SYNC: counts.host_sync,
        }
        return ((p, number) for p in self._phases(own) for number in range(many[p]))

    def _healthy_trial(self, phase: Phase, number: int) -> Trial:
        """The healthy engine's trial of the same kind, measured when it is first needed."""
        if (phase, number) not in self._healthy:
            self._healthy[phase, number] = self._trial(phase, number, None, _Count())
        return self._healthy[phase, number]

    def _first_trials(self) -> list[Trial]:
        return [trial for (_, number), trial in self._healthy.items() if number == 0]

    def _trial(self, phase: Phase, number: int, mutant: str | None, count: _Count) -> Trial:
        """Make one trial; one that gave no measurement says why."""
        pool = self.engine.pool
        engine = pool.make_ready(SIDE)
        started, begin = datetime.now(UTC), time.monotonic()
        trial = Trial(0, SIDE, phase, started, 0.0)
        usual = self._healthy.get((phase, number))
        limit = max(SHORTEST_LIMIT_S, SLOWEST * usual.duration_s) if usual else None
        got, failure = TrialResult(()), None
        with ended_after(engine, limit) as expired:
            try:
                engine.control.mutate(mutant)
                got = measure(phase, TrialContext(pool, SIDE, self.engine.work, number))
            except MeasurementError as error:
                died = isinstance(error, EngineError) and not pool.is_alive(SIDE)
                reason = str(error).partition("\n")[0]
                late = f"{NO_ANSWER_IN_TIME}: {limit:.0f} s" if expired.is_set() else reason
                failure = Failure(late, "", engine_died=died)
        count.add(self.engine.take_back())
        seconds = time.monotonic() - begin
        return Trial(
            *(trial.index, trial.side, phase, started, seconds),
            samples=got.samples,
            answers=got.answers,
            failure=failure,
            unsupported=got.unsupported,
            completions=got.completions,
        )

    def _cell(self, name: str, digest: str, found: _Found) -> MutantCell:
        return MutantCell(
            mutant=name,
            scenario=self.scenario.id,
            build=self.engine.build.label,
            mutant_digest=digest,
            scenario_digest=self.engine.run.scenario.digest,
            state=found.state,
            metrics=found.kill.metrics,
            detail=found.kill.detail,
            seconds=round(found.seconds, 1),
            reached=found.count.reached,
            changed=found.count.changed,
            trials=found.trials,
            measured_at=datetime.now(UTC).replace(microsecond=0),
            release=self.engine.run.builds[0].release,
            revision=self.engine.run.harness.revision,
        )


def _numbered(trials: list[Trial]) -> Iterator[tuple[int, Trial]]:
    """Each trial with its number among those of its phase."""
    seen: dict[Phase, int] = {}
    for trial in trials:
        number = seen.get(trial.phase, 0)
        seen[trial.phase] = number + 1
        yield number, trial
