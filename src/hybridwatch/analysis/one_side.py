"""One side of a comparison: a build of a run, with its trials."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hybridwatch.analysis.verdict import Side
from hybridwatch.errors import ComparisonError
from hybridwatch.records.identity import EngineBuild, Role, name_role
from hybridwatch.records.run import Phase, Run, Sample, Trial


@dataclass(frozen=True, slots=True)
class OneSide:
    """A run together with the side of it that is meant."""

    run: Run
    index: int
    _trials: dict[Phase, tuple[Trial, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _samples: dict[Phase, dict[str, list[tuple[int, Sample]]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not 0 <= self.index < len(self.run.builds):
            raise ComparisonError(
                f"run {self.run.id} has {len(self.run.builds)} build(s), so no side "
                f"{self.index}: expected 0 to {len(self.run.builds) - 1}"
            )

    @property
    def build(self) -> EngineBuild:
        """The engine that answered on this side."""
        return self.run.builds[self.index]

    def identity(self) -> Side:
        """Say which side stands here, without the trials."""
        return Side(self.run.id, self.build, self.run.testbed, self.run.started_at)

    def trials(self, phase: Phase) -> tuple[Trial, ...]:
        """Give the trials of a phase that count, in order of measurement."""
        if phase not in self._trials:  # once for all metrics of a phase
            mine = (trial for trial in self.run.measured(self.index) if trial.phase is phase)
            self._trials[phase] = tuple(mine)
        return self._trials[phase]

    def samples(self, phase: Phase, metric: str) -> Sequence[tuple[int, Sample]]:
        """Give the samples of a metric in the trials of a phase that count, with their indices."""
        if phase not in self._samples:  # once for all metrics, of which there may be thousands
            found = self._samples.setdefault(phase, {})
            for trial in self.trials(phase):
                for sample in trial.samples:
                    found.setdefault(sample.metric, []).append((trial.index, sample))
        return self._samples[phase].get(metric, ())

    def planned(self, phase: Phase) -> tuple[Trial, ...]:
        """Give the trials of a phase that were meant to count, failed ones too, in their order."""
        mine = (
            trial
            for trial in self.run.trials
            if trial.side == self.index and trial.phase is phase and not trial.warmup
        )
        return tuple(sorted(mine, key=lambda trial: trial.index))

    def failures(self, phase: Phase) -> tuple[Trial, ...]:
        """Give the trials of a phase that gave no measurement, warm-ups included."""
        return tuple(trial for trial in self.run.failed(self.index) if trial.phase is phase)


def role_between(baseline: OneSide, contender: OneSide) -> Role:
    """Say what two sides are for; between two runs a comparison, whatever their builds."""
    if baseline.run.id != contender.run.id:
        return Role.COMPARISON
    return name_role(baseline.build, contender.build, known_bad=contender.run.known_bad)


def split_looks(run: Run) -> tuple[Run, Run] | None:
    """Give the first trials of a run, and those made again; ``None`` where none was."""
    again = run.second_look
    if again is None:
        return None
    first = replace(run, trials=tuple(one for one in run.trials if one.index < again))
    second = replace(run, trials=tuple(one for one in run.trials if one.index >= again))
    return replace(first, second_look=None), replace(second, second_look=None)


def list_sides(run: Run) -> tuple[OneSide, OneSide]:
    """Give the two sides of an interleaved run; ``ComparisonError`` if it has one build only."""
    if len(run.builds) != 2:
        raise ComparisonError(
            f"run {run.id} has {len(run.builds)} build(s), expected 2: "
            "name a second record to compare it with"
        )
    return OneSide(run, 0), OneSide(run, 1)
