"""Benchmarks of asv: what each is called, and in which form it gets a metric.

For asv lower is always better. The suites of ``benchmarks/`` and ``export --to asv`` both go by
this, so that what asv measured and what was exported from a record are one series.

How sure asv may be of a number: the interval that it keeps with each.

asv compares runs, and knows of each only how its trials scatter. Runs of one build scatter by more
(``analysis.run_noise``). So its intervals are widened by what earlier runs show; without such runs
they are infinite, and ``asv compare`` calls no time worse. Samples are not given to asv: it would
compare them by rank and forget the interval.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from hybridwatch.analysis.machine_state import was_noisy_machine
from hybridwatch.analysis.pair import summarize
from hybridwatch.analysis.run_noise import REACH
from hybridwatch.analysis.subject import OneSide, Subject
from hybridwatch.formats.read.asv import INVERSES
from hybridwatch.metrics import Direction, Kind, Metric, Unit, find_metric
from hybridwatch.scenarios.scenario import MIN_PERFORMANCE_TRIALS, Scenario

BUILD_VARIABLE: Final = "HYBRIDWATCH_BUILD"
RELEASE_VARIABLE: Final = "HYBRIDWATCH_RELEASE"
"""Environment variables by which asv distinguishes builds."""

_RATES: Final = ("output_throughput", "request_throughput")
_MEDIANS: Final = ("ttft", "tpot", "itl", "e2el", "engine_cpu_time", "metadata_build_time")
_HIGHER: Final = ", higher is better"
_UNITS: Final[Mapping[Unit, str]] = {Unit.SECONDS: "seconds", Unit.RATIO: "share"}
"""asv writes 0.004 ``seconds`` as 4 ms, and takes any other word as it is: "0.25 1" of a ratio."""
IN_DOUBT: Final = math.inf
"""Noise of a side whose times say nothing: too few trials, or a noisy machine."""
_NORMAL: Final = 2.5758
"""Quantile of the normal distribution for an interval of 99 %."""
_WEIGHTLESS: Final = (-1e308, 1e308)
"""Finite ends whose distance is not: asv gives the value the weight 0, and looks for no step in it,
while it takes a missing or an infinite interval for one of the usual width."""


class Form(Enum):
    """How asv gets a metric."""

    SAMPLES = "samples"
    """As it is, a value per trial."""
    INVERSE = "inverse"
    """One over it: of a rate the time, which is better when it is lower."""
    REST = "rest"
    """What it lacks to 1: of a share of good things that of bad ones."""
    WORST = "worst"
    """The largest value: what counts exactly has no spread to speak of."""
    WRONG = "wrong"
    """The share of documents without a right answer."""

    @property
    def turned(self) -> bool:
        """Whether lower becomes higher by it."""
        return self in {Form.INVERSE, Form.REST, Form.WRONG}

    def of(self, value: float) -> float:
        """Give asv's value for one of ours; ``ZeroDivisionError`` if it has no inverse."""
        if self is Form.INVERSE:
            return 1 / value
        return 1 - value if self.turned else value


@dataclass(frozen=True, slots=True)
class TrackedMetric:
    """One benchmark of a scenario; ``name`` is asv's, ``track_`` left out."""

    name: str
    metric: Metric
    statistic: str
    form: Form
    unit: str

    @property
    def better(self) -> Direction:
        """Which way is better for the number that asv gets."""
        if not self.form.turned:
            return self.metric.better
        return Direction.LOWER if self.metric.better is Direction.HIGHER else Direction.HIGHER


@dataclass(frozen=True, slots=True)
class FoundBenchmarks:
    """Values in our terms, one per trial or document, and how sure asv may be of them."""

    values: tuple[float, ...]
    stats: Mapping[str, float] | None


def tracked(scenario: Scenario) -> tuple[TrackedMetric, ...]:
    """List the benchmarks that asv's suite of a scenario has."""
    speculation = scenario.engine.speculation
    drafts = 0 if speculation is None else speculation.drafts
    wanted = (
        *(one for one in scenario.expect.exactly if find_metric(one).kind is Kind.EXACT),
        *(f"accuracy.{task}" for task in (scenario.accuracy.tasks if scenario.accuracy else ())),
        *_RATES,
        *_MEDIANS,
        "host_syncs_per_step",
        *(("acceptance_length",) if drafts else ()),
        *(f"acceptance_rate.position_{position}" for position in range(1, drafts + 1)),
    )
    lower = (build_benchmark(metric, metric.kind.statistic) for metric in map(find_metric, wanted))
    return (*lower, *_as_they_are())


def build_benchmark(metric: Metric, statistic: str) -> TrackedMetric:
    """Give the benchmark for which lower is better; the usual statistic of a metric has no name."""
    tail = "" if statistic == metric.kind.statistic else f"_{statistic}"
    name, form, unit = _lower(metric)
    # asv takes what is behind a bracket for parameters, and looks the rest up.
    safe = f"{name}{tail}".translate(str.maketrans(".(", "_["))
    return TrackedMetric(safe, metric, statistic, form, unit)


def benchmark_name(scenario_id: str, benchmark: str) -> str:
    """Give a benchmark's whole name, such as ``smoke.dummy_run.DummyRun.track_ttft``."""
    return f"{render_module_name(scenario_id)}.{render_class_name(scenario_id)}.track_{benchmark}"


def render_module_name(scenario_id: str) -> str:
    """Give the path of a scenario as a module."""
    return ".".join(re.sub(r"\W", "_", part) for part in scenario_id.split("/"))


def render_class_name(scenario_id: str) -> str:
    """Give the name of a scenario as a class."""
    words = re.findall(r"[^\W_]+", scenario_id.rpartition("/")[2])
    return "".join(word.capitalize() for word in words)


def _as_they_are() -> Iterator[TrackedMetric]:
    for metric in map(find_metric, _RATES):
        unit = metric.unit.value + _HIGHER
        yield TrackedMetric(metric.id, metric, metric.kind.statistic, Form.SAMPLES, unit)


def _lower(metric: Metric) -> tuple[str, Form, str]:
    family, _, member = metric.id.partition(".")
    unit = _UNITS.get(metric.unit, metric.unit.value)
    if metric.kind is Kind.EXACT:
        return member, Form.WORST, unit
    if metric.better is Direction.LOWER:
        return metric.id, Form.SAMPLES, unit
    if metric.kind is Kind.PROPORTION:
        return f"wrong_answers_{member}", Form.WRONG, unit
    if family == "acceptance_rate":
        return f"rejected_drafts_{member}", Form.REST, unit
    name = INVERSES.get(metric.id, f"inverse_{metric.id}")
    inverse = {"seconds_": _UNITS[Unit.SECONDS], "steps_per_token": "step/tok"}
    units = (text for start, text in inverse.items() if name.startswith(start))
    return name, Form.INVERSE, next(units, f"1/({unit})")


def compute_noise(subject: Subject, side: OneSide, learned: float | None) -> float | None:
    """Say by how much a number may differ in another run of the same build, as a fraction.

    ``learned`` is what earlier runs say, ``None`` where they are too few. Gives 0 for a count that
    no trial changed, ``IN_DOUBT`` where the number says nothing by itself.
    """
    summary, trials = summarize(subject, side), side.trials(subject.phase)
    if subject.metric.kind is Kind.COUNT and summary is not None and summary.repeats:
        return 0.0
    few = summary is None or summary.n < MIN_PERFORMANCE_TRIALS
    return IN_DOUBT if few or was_noisy_machine(trials) else learned


def compute_stats(
    benchmark: TrackedMetric, values: Sequence[float], noise: float | None
) -> Mapping[str, float] | None:
    """Give what asv keeps with a number in our terms; ``None`` for what counts exactly."""
    if benchmark.form is Form.WORST:
        return None
    own = [benchmark.form.of(value) for value in values]
    if benchmark.form is Form.WRONG:
        quartiles = [float(np.mean(own))] * 2
        low, high = _share_between(quartiles[0], len(own))
    else:
        quartiles = [float(np.quantile(own, part)) for part in (0.25, 0.75)]
        low, high = _between(own, noise)
    return {
        "ci_99_a": low,
        "ci_99_b": high,
        "q_25": quartiles[0],
        "q_75": quartiles[1],
        "number": 1,
        "repeat": len(own),
    }


def _between(values: Sequence[float], noise: float | None) -> tuple[float, float]:
    """Bracket the medians of runs of the build."""
    if noise == IN_DOUBT:
        return _WEIGHTLESS
    if noise is None:
        return -math.inf, math.inf
    # Two such intervals part where the medians do by more than both halves: REACH times the noise.
    center, half = float(np.median(values)), REACH * noise / 2
    return center * (1 - half), center * (1 + half)


def _share_between(share: float, n: int) -> tuple[float, float]:
    """Bracket a share of n documents, 99 % (Wilson 1927)."""
    square = _NORMAL**2 / n
    center = share + square / 2
    half = _NORMAL * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return (center - half) / (1 + square), (center + half) / (1 + square)
