"""What a report compares: sides, and which metrics, by which statistics, fed by which phase.

The order of subjects is the order of every view: what must hold exactly, right answers, speed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hybridwatch.analysis.verdict import Side
from hybridwatch.errors import ComparisonError
from hybridwatch.metrics import (
    CAPACITY_METRICS,
    DUET_CPU_TIME,
    DUET_CURVE_AREA,
    METRICS,
    REQUEST_BLOCKS,
    START_METRICS,
    WRONG_ANSWERS,
    Kind,
    Metric,
    find_metric,
)
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


_CATALOGUE_ORDER: Final = {metric.id: place for place, metric in enumerate(METRICS)}
HOST_METRICS: Final = frozenset(
    {"host_syncs_per_step", "host_sync_time", "host_sync_share", "metadata_build_time"}
)
MEMORY_SUBJECTS: Final = frozenset(
    {"memory_growth", "resident_memory", "peak_memory", *CAPACITY_METRICS, REQUEST_BLOCKS}
)
"""Measured since trials read memory; earlier ones have none of them."""
_DUET_METRICS: Final = frozenset({DUET_CPU_TIME, DUET_CURVE_AREA})
_TAIL_METRICS: Final = frozenset({"ttft", "itl", "e2el", "host_sync_time"})
"""Tail latency is what users feel here; ``tpot`` is already an average over a request."""

_STAND_INS: Final = {
    Phase.CONTRACT: "contract.unknown",
    Phase.ACCURACY: "accuracy.unknown",
    Phase.PERFORMANCE: "output_throughput",
    Phase.HOST_SYNC: "host_syncs_per_step",
    Phase.DUET: DUET_CPU_TIME,
}
"""Named when a phase failed on both sides, so that what it would have measured is not known."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A metric and the statistic that reduces a trial to one number."""

    metric: Metric
    statistic: str

    @property
    def label(self) -> str:
        """Its name on pages and in addresses."""
        return self.metric.label(self.statistic)

    @property
    def phase(self) -> Phase:
        """The phase whose trials feed the metric."""
        return find_phase(self.metric)


def find_phase(metric: Metric) -> Phase:
    """Say which trials a metric is read from."""
    if metric.kind is Kind.EXACT:
        return Phase.CONTRACT
    if metric.kind is Kind.PROPORTION:
        return Phase.ACCURACY
    if metric.id in _DUET_METRICS:
        return Phase.DUET
    return Phase.HOST_SYNC if metric.id in HOST_METRICS else Phase.PERFORMANCE


def list_statistics(metric: Metric) -> tuple[str, ...]:
    """Name the statistics by which a metric is compared."""
    typical = metric.kind.statistic
    return (typical, "p99") if metric.id in _TAIL_METRICS else (typical,)


def list_subjects(baseline: OneSide, contender: OneSide) -> tuple[Subject, ...]:
    """List what there is to compare, in the order of a report.

    A metric that only one side has must end as missing or failed. So must a phase that failed on
    both sides, under the name of its leading metric. Wrong answers are none where a side was
    measured before right ones were written down, and nothing that is known of memory where it was
    measured before any of that was. Of a start only what both sides have: sides of one engine share
    its start, and not every engine has each phase. An unknown metric is a ``ComparisonError``.
    """
    of_sides = [set(_pairs_in(side)) for side in (baseline, contender)]
    pairs = set().union(*of_sides)
    found = {metric.id: metric for metric, _ in pairs}
    heard = {find_phase(metric) for metric in found.values()}
    for phase, metric_id in _STAND_INS.items():
        if phase not in heard and baseline.failures(phase) and contender.failures(phase):
            found[metric_id] = find_metric(metric_id)
            pairs.add((found[metric_id], None))
    for side in (baseline, contender):
        if _lacks_oracle(side):
            found.pop(WRONG_ANSWERS, None)
    if not all(MEMORY_SUBJECTS & {metric.id for metric, _ in one} for one in of_sides):
        found = {name: metric for name, metric in found.items() if name not in MEMORY_SUBJECTS}
    for name in START_METRICS:
        if not all(any(metric.id == name for metric, _ in one) for one in of_sides):
            found.pop(name, None)
    ordered = sorted(found.values(), key=place_of)
    return tuple(
        Subject(metric, name)
        for metric in ordered
        for name in list_statistics(metric)
        # Of values that came reduced, only what they were reduced to can be compared.
        if {(metric, None), (metric, name)} & pairs
    )


def _lacks_oracle(side: OneSide) -> bool:
    trials = side.trials(Phase.CONTRACT)
    return bool(trials) and not any(
        WRONG_ANSWERS in {*trial.unsupported, *(one.metric for one in trial.samples)}
        for trial in trials
    )


def place_of(metric: Metric) -> tuple[int, int, str]:
    """Say where a metric stands in a report; lower comes first."""
    place = _CATALOGUE_ORDER.get(metric.id, len(_CATALOGUE_ORDER))
    return metric.kind.rank, place, metric.id


def _pairs_in(side: OneSide) -> Iterator[tuple[Metric, str | None]]:
    """Every metric that trials hold, with what it was reduced to; ``None`` for raw values."""
    for phase in Phase:
        trials = side.trials(phase)
        held = {
            (one.metric, one.statistic) for trial in trials for one in trial.samples if one.values
        }
        for metric_id, statistic in held:
            metric = _known(metric_id)
            if find_phase(metric) is phase:
                yield metric, statistic
        # Not measured, and yet a subject: it must end as missing, not unmentioned.
        for metric_id in {metric_id for trial in trials for metric_id in trial.unsupported}:
            yield _known(metric_id), None


def _known(metric_id: str) -> Metric:
    try:
        return find_metric(metric_id)
    except KeyError:
        raise ComparisonError(f"a trial holds the unknown metric {metric_id!r}") from None
