"""What a session is to measure: its request, which trials of it are made, and its progress."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.measurement.plan import (
    TIMED_PHASES,
    USUAL_PHASES,
    Budget,
    PlannedTrial,
    list_phases,
    plan,
    plan_start,
)
from hybridwatch.records.run import Phase, Run, Trial
from hybridwatch.scenarios.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is of trials up to its end or next look; a ``lasting`` text is a result."""

    done: int
    total: int
    text: str
    lasting: bool = False


ProgressCallback = Callable[[Progress], None]
"""Called as the session goes on."""

Missing = Callable[[Run], int]
"""Counts the rounds of timed trials that a run needs beyond the planned ones."""


Reason = Callable[[Run], str]
"""Says in a line why the timed trials of a whole run are to be made again; empty if not."""


def no_reason(_: Run) -> str:
    """Measure nothing again."""
    return ""


def none_missing(_: Run) -> int:
    """Add no rounds to those of the scenario, also on a noisy machine."""
    return 0


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """What to measure.

    Attributes:
        sides: The builds, baseline first.
        budget: Timed trials until the run is decided, instead of those that the scenario counts.
        warmed: Timed phases that begin with a warm-up; without a budget.
        missing: Rounds to add to the planned performance trials; without a budget. It may look at
            the machine, never at results: rounds until a number is as wished prove nothing.
        again: Why a whole run of two sides is measured again, if so; without a budget. It may look
            at the results: both looks must then say the same (``analysis/report.py``).
        earlier: A stopped run of the same, whose whole rounds need not be made again.
        known_bad: Whether the contender is expected to fail, as a known-bad control.
    """

    scenario: Scenario
    sides: Sequence[BuildRequest]
    models: Path
    on_progress: ProgressCallback
    phases: Collection[Phase] = USUAL_PHASES
    budget: Budget | None = None
    warmed: Collection[Phase] = TIMED_PHASES
    missing: Missing = none_missing
    earlier: Run | None = None
    known_bad: bool = False
    again: Reason = no_reason

    @property
    def planned(self) -> tuple[PlannedTrial, ...]:
        """The trials before the first look, those of an earlier run included."""
        counts, sides = self.scenario.trials, len(self.sides)
        phases = list_phases(self.scenario, self.phases)
        if self.budget is not None:
            return plan_start(counts, sides, phases)
        return plan(counts, sides, phases, self.warmed)

    @property
    def left(self) -> tuple[PlannedTrial, ...]:
        """The planned trials that are not made yet; a phase that is resumed is warmed up again."""
        made = count_rounds(self.earlier)
        unmade = {
            (one.phase, one.start)
            for one in self.planned
            if not one.warmup and one.number >= made.get(one.phase, 0)
        }
        # The warm-ups alone are planned of what goes on until it is decided.
        unmade |= {(phase, None) for phase in TIMED_PHASES if self.budget is not None}
        return tuple(
            one
            for one in self.planned
            if (one.phase, one.start) in unmade
            and (one.warmup or one.number >= made.get(one.phase, 0))
        )

    @property
    def made(self) -> tuple[Trial, ...]:
        """The trials of the earlier run that count, numbered from the start."""
        kept = () if self.earlier is None else _list_whole_rounds(self.earlier)
        if self.budget is not None:
            kept = tuple(one for one in kept if one.phase not in TIMED_PHASES)
        return tuple(replace(one, index=at) for at, one in enumerate(kept))


def is_stopped(run: Run) -> bool:
    """Whether a run was stopped before it was whole."""
    return any(one.failure is not None and one.failure.was_stopped for one in run.trials)


def _list_whole_rounds(run: Run) -> tuple[Trial, ...]:
    """The trials of rounds that every side has made, in their order."""
    rounds, seen = count_rounds(run), Counter[tuple[Phase, int]]()
    kept: list[Trial] = []
    for trial in run.so_far().trials:
        if not trial.warmup:
            seen[trial.phase, trial.side] += 1
            if seen[trial.phase, trial.side] > rounds[trial.phase]:
                continue
        kept.append(trial)
    return tuple(one for one in kept if rounds[one.phase])


def count_rounds(run: Run | None) -> dict[Phase, int]:
    """Count the rounds of each phase that every side of a run has made."""
    if run is None:
        return {}
    made = Counter((one.phase, one.side) for one in run.so_far().trials if not one.warmup)
    return {phase: min(made[phase, side] for side in range(len(run.builds))) for phase in Phase}
