"""Whether the machine itself changed while two sides were measured on it.

Where both sides were measured in turn, drift meets both alike and only what met one side more than
the other is held against the result; otherwise all of it is.

Of a noisy machine the engine's processor time decides: waiting for a processor is no part of what
an engine worked. Another time or rate is a change only if it changed the same way. In a fixed order
each test may use the whole level (Maurer, Hothorn and Lehmacher 1995), and since either direction
is news that must not come by chance, the level is that of both together. An engine that waits
longer and works as much may be missed; the comparison then says that it was held back.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from hybridwatch.analysis.pair import Pair, build_pair
from hybridwatch.analysis.rank import rank_p, trend_p, typical_step
from hybridwatch.analysis.signed_rank import BlockRow, Tail, flip_p
from hybridwatch.analysis.subject import OneSide, Subject, list_subjects
from hybridwatch.analysis.verdict import Report, Verdict
from hybridwatch.metrics import Metric, find_metric
from hybridwatch.records.run import MachineState, Run, Trial

_LEVEL: Final = 0.01
"""Of each test below. A doubt fails nothing, but one without cause teaches to read over doubts."""

_SPREAD: Final = 0.1
"""Of the kernel's times, from which a machine is called noisy. Trials that spread as much show
no change below a tenth at seven a side."""

_TO_DEVIATION: Final = 1.349
"""Interquartile range of a normal distribution in standard deviations."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """One number that is taken around every trial.

    ``of`` gives ``None`` where the system does not report it. ``size`` is the smallest change that
    matters: a ratio, or a share of the machine. ``saying`` takes a change, worded by ``words`` for
    up and down, and what it is measured against.
    """

    of: Callable[[MachineState], float | None]
    saying: str
    words: tuple[str, str] = ("higher", "lower")
    size: float = 0.03
    relative: bool = True

    def change(self, old: float, new: float) -> float:
        if self.relative:
            return new / old - 1 if old else 0.0
        return new - old

    def describe(self, change: float, than: str) -> str:
        unit = "%" if self.relative else "points"
        return self.saying.format(f"{abs(change) * 100:.0f} {unit} {self.words[change < 0]}", than)


_KERNEL: Final = _Reading(
    lambda seen: seen.kernel_median_s, "the calibration kernel took {} {}", ("longer", "less long")
)
_CLOCK: Final = _Reading(lambda seen: seen.clock_hz, "the processors' clock was {} {}")
_OTHERS: Final = _Reading(
    lambda seen: seen.others,
    "others used {} of the processors' time {}",
    ("more", "less"),
    size=0.1,
    relative=False,
)
_GPU_CLOCK: Final = _Reading(
    lambda seen: _slowest(gpu.sm_clock_hz for gpu in seen.gpus), "the GPU's clock was {} {}"
)
_GPU_MEMORY_CLOCK: Final = _Reading(
    lambda seen: _slowest(gpu.memory_clock_hz for gpu in seen.gpus),
    "the clock of the GPU's memory was {} {}",
)
_POWER_CAP: Final = _Reading(
    lambda seen: _at_power_limit(seen),
    "the GPU was held at its power limit for {} of the time {}",
    ("more", "less"),
    size=0.25,
    relative=False,
)
_READINGS: Final = (_KERNEL, _CLOCK, _OTHERS, _GPU_CLOCK, _GPU_MEMORY_CLOCK, _POWER_CAP)

_SAVING_ITSELF: Final = {
    "hardware-slowdown": "the hardware's own slowdown",
    "hardware-thermal": "heat, by the hardware",
    "software-thermal": "heat, by the driver",
    "power-brake": "an external power brake",
}
"""Reasons of throttling that no healthy GPU has, with our words. At its power limit many a GPU
works all day: that counts only where it meets the sides differently."""

_OTHERS_BYTES: Final = 64 * 1024**2
"""Of a GPU's memory. A process that computes there holds more; what a driver counts without one
is less."""

_INTERLEAVE: Final = "measure both builds in one run, interleaved"
_OVER_TIME: Final = "at the end than at the start"
_BETWEEN_SIDES: Final = "around the contender's trials than around the baseline's"


def doubt_machine_states(pair: Pair) -> Iterator[str]:
    """Yield doubts that come from the machine; only times, rates and counts depend on it."""
    if not pair.subject.metric.kind.has_noise:
        return
    left, right = pair.baseline.trials, pair.contender.trials
    in_turn = pair.blocks is not None
    remedy = "repeat on a quiet machine" if in_turn else _INTERLEAVE
    for reading in _READINGS:
        if change := _difference(reading, _seen(reading, left), _seen(reading, right)):
            found = reading.describe(change, _BETWEEN_SIDES)
            yield f"The machine itself was not the same: {found}; {remedy}."
        if not in_turn:
            yield from _drifts(reading, left, right)
    spread = _kernel_spread(left, right, in_turn=in_turn)
    if spread > _SPREAD:
        yield (
            "The machine was restless: the times of the calibration kernel spread by "
            f"{spread * 100:.0f} %{_used_by_others((*left, *right))}; repeat on a quiet "
            "machine."
        )
    yield from _about_gpus((*left, *right))


def machine_doubts(run: Run) -> tuple[str, ...]:
    """Gather each doubt of a run's machine once; of one build only what its GPUs say."""
    first, last = OneSide(run, 0), OneSide(run, len(run.builds) - 1)
    by_phase = {subject.phase: subject for subject in list_subjects(first, last)}
    found = (
        _about_gpus(first.trials(subject.phase))
        if len(run.builds) == 1
        else doubt_machine_states(build_pair(subject, first, last))
        for subject in by_phase.values()
    )
    return tuple(dict.fromkeys(doubt for per_gpu in found for doubt in per_gpu))


def _drifts(reading: _Reading, left: Sequence[Trial], right: Sequence[Trial]) -> Iterator[str]:
    for name, trials in (("baseline", left), ("contender", right)):
        change = _drift(reading, _seen(reading, trials))
        if change is not None:
            yield (
                f"The machine drifted while the {name} was measured: "
                f"{reading.describe(change, _OVER_TIME)}; {_INTERLEAVE}."
            )


def is_noisy_machine(pair: Pair) -> bool:
    """Say whether the machine's own speed changed from trial to trial by more than trials allow."""
    left, right = pair.baseline.trials, pair.contender.trials
    return _kernel_spread(left, right, in_turn=pair.blocks is not None) > _SPREAD


def was_noisy_machine(trials: Sequence[Trial]) -> bool:
    """Say the same of one side, which nothing was measured in turn with."""
    return _kernel_spread(trials, trials, in_turn=False) > _SPREAD


def _kernel_spread(left: Sequence[Trial], right: Sequence[Trial], *, in_turn: bool) -> float:
    """What is left of the machine's own noise: within blocks, or within each side."""
    sides = [np.log(_seen(_KERNEL, trials) or (1.0,)) for trials in (left, right)]
    if in_turn:
        common = min(map(len, sides))
        # A difference of two trials scatters more than one by the root of two.
        return _spread(sides[1][:common] - sides[0][:common]) / math.sqrt(2)
    return max(_spread(side) for side in sides)


def _about_gpus(trials: Sequence[Trial]) -> Iterator[str]:
    seen = [_reasons(trial.surroundings) for trial in trials if trial.surroundings is not None]
    hit = [reasons for reasons in seen if reasons]
    if hit:
        names = sorted({_SAVING_ITSELF[reason] for reasons in hit for reason in reasons})
        yield (
            f"The GPU was throttled in {len(hit)} of {len(trials)} trials ({', '.join(names)}): "
            "its speed then is not the engine's; see to cooling and power, and repeat."
        )

    around = [trial.surroundings.gpus for trial in trials if trial.surroundings is not None]
    most = [max((gpu.others_bytes or 0 for gpu in gpus), default=0) for gpus in around]
    shared = [size for size in most if size > _OTHERS_BYTES]
    if shared:
        yield (
            f"The GPU was shared in {len(shared)} of {len(trials)} trials: other processes held up "
            f"to {max(shared) / 1024**3:.1f} GiB of its memory; repeat where nobody else computes."
        )


def _reasons(seen: MachineState) -> set[str]:
    per_gpu = (gpu.throttled for gpu in seen.gpus if gpu.throttled is not None)
    return {reason for reasons in per_gpu for reason in reasons.keys() & _SAVING_ITSELF.keys()}


def _slowest(clocks: Iterable[float | None]) -> float | None:
    """Of several GPUs that work on one thing, the one that the others wait for."""
    return min((clock for clock in clocks if clock is not None), default=None)


def _at_power_limit(seen: MachineState) -> float | None:
    shares = (gpu.throttled for gpu in seen.gpus if gpu.throttled is not None)
    return max((one.get("power-cap", 0.0) for one in shares), default=None)


def _used_by_others(trials: Sequence[Trial]) -> str:
    others = _seen(_OTHERS, trials)
    if not others:
        return ""
    return f" while others used {np.median(others) * 100:.0f} % of the processors' time"


def _seen(reading: _Reading, trials: Sequence[Trial]) -> tuple[float, ...]:
    around = (trial.surroundings for trial in trials)
    values = (reading.of(seen) for seen in around if seen is not None)
    return tuple(value for value in values if value is not None)


def _drift(reading: _Reading, values: Sequence[float]) -> float | None:
    """Size of a trend over a side's trials; ``None`` if it is none, or too small to matter.

    Kendall's rank correlation with the order says whether there is one, Theil and Sen's median
    slope (Sen 1968) how far it went: outliers sway neither.
    """
    if len(values) < 3 or min(values) == max(values):
        return None
    if trend_p(values) >= _LEVEL:
        return None
    slope = typical_step(values)
    start = float(np.median(values)) - slope * (len(values) - 1) / 2
    change = reading.change(start, start + slope * (len(values) - 1))
    return change if abs(change) > reading.size else None


def _difference(reading: _Reading, left: Sequence[float], right: Sequence[float]) -> float | None:
    if not left or not right or rank_p(left, right) >= _LEVEL:
        return None
    change = reading.change(float(np.median(left)), float(np.median(right)))
    return change if abs(change) > reading.size else None


def _spread(logarithms: npt.NDArray[np.float64]) -> float:
    """Coefficient of variation by the interquartile range, which outliers do not sway."""
    low, high = np.quantile(logarithms, (0.25, 0.75))
    return float(high - low) / _TO_DEVIATION


DECIDES: Final = "engine_cpu_time"
"""The metric that neighbours stretch least."""

BLOCKS: Final = 20
"""Blocks that show a tenth more work on a noisy machine (lab: ``calibration.noisy_machine``)."""

_DIRECTIONS: Final = 2


def blocks_missing(run: Run) -> int:
    """Say how many more blocks a run of two builds needs; none where its machine was quiet.

    Only the calibration kernel is looked at, whose spread stays as it is when the sides of a block
    change places. So the flips stay exact, however often this is checked.
    """
    baseline, contender = (OneSide(run, side) for side in range(2))
    metric = find_metric(DECIDES)
    pair = build_pair(Subject(metric, metric.kind.statistic), baseline, contender)
    if not is_noisy_machine(pair):
        return 0
    return max(0, BLOCKS - min(len(side.trials) for side in pair.sides))


def leaves_work_open(report: Report) -> bool:
    """Whether a report of a noisy machine cannot say if the engine works more."""
    return any(
        one.metric.id == DECIDES and one.restless and one.verdict is Verdict.INCONCLUSIVE
        for one in report.comparisons
    )


def noisy_p(metrics: Sequence[Metric], rows: Sequence[BlockRow]) -> tuple[tuple[Tail, Tail], ...]:
    """Test whether rows of a noisy machine became worse, and whether they became better.

    The rows are of one family. Without processor time among them no p-value is below 1.
    """
    first = [at for at, metric in enumerate(metrics) if metric.id == DECIDES]
    then = [at for at, metric in enumerate(metrics) if metric.id != DECIDES]
    found: dict[int, tuple[Tail, Tail]] = {}
    bars = (0.0, 0.0) if first else (1.0, 1.0)
    for part in filter(None, (first, then)):
        tails = flip_p([rows[at] for at in part])
        found.update(zip(part, (_held_to(pair, bars) for pair in tails), strict=True))
        worst, best = zip(*tails, strict=True)
        bars = max(one.adjusted for one in worst), max(one.adjusted for one in best)
    return tuple(found[at] for at in range(len(rows)))


def _held_to(tails: tuple[Tail, Tail], bars: tuple[float, float]) -> tuple[Tail, Tail]:
    worse, better = (
        replace(tail, adjusted=min(1.0, _DIRECTIONS * max(tail.adjusted, bar)))
        for tail, bar in zip(tails, bars, strict=True)
    )
    return worse, better
