"""Benchmarks of asv: what each is called, and in which form it gets a metric.

For asv lower is always better. The suites of ``benchmarks/`` and ``export --to asv`` both go by
this, so that what asv measured and what was exported from a record are one series.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hybridwatch.metrics import Direction, Kind, Metric, Unit, metric_of
from hybridwatch.metrics.catalogue import INVERSES
from hybridwatch.scenarios.scenario import Scenario

BUILD_VARIABLE: Final = "HYBRIDWATCH_BUILD"
RELEASE_VARIABLE: Final = "HYBRIDWATCH_RELEASE"
"""Environment variables by which asv tells builds apart."""

_RATES: Final = ("output_throughput", "request_throughput")
_MEDIANS: Final = ("ttft", "tpot", "itl", "e2el", "engine_cpu_time", "metadata_build_time")
_HIGHER: Final = ", higher is better"
_UNITS: Final[Mapping[Unit, str]] = {Unit.SECONDS: "seconds", Unit.RATIO: "share"}
"""asv writes 0.004 ``seconds`` as 4 ms, and takes any other word as it is: "0.25 1" of a ratio."""


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
        """Give asv's value for one of ours.

        Raises:
            ZeroDivisionError: It has no inverse.
        """
        if self is Form.INVERSE:
            return 1 / value
        return 1 - value if self.turned else value


@dataclass(frozen=True, slots=True)
class Tracked:
    """One benchmark of a scenario.

    Attributes:
        name: asv's, ``track_`` left out.
        metric: What it hands out.
        statistic: By which a trial is reduced.
        form: How.
        unit: What asv shows; says so where higher is better, which asv does not know.
    """

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
class Found:
    """What a benchmark hands out.

    Attributes:
        values: In our terms: one per trial, or for answers one per document; empty without one.
        stats: How sure asv may be of them (``asv_stats``), if it may.
    """

    values: tuple[float, ...]
    stats: Mapping[str, float] | None


def tracked(scenario: Scenario) -> tuple[Tracked, ...]:
    """List the benchmarks that asv's suite of a scenario has."""
    speculation = scenario.engine.speculation
    drafts = 0 if speculation is None else speculation.drafts
    wanted = (
        *(one for one in scenario.expect.exactly if metric_of(one).kind is Kind.EXACT),
        *(f"accuracy.{task}" for task in (scenario.accuracy.tasks if scenario.accuracy else ())),
        *_RATES,
        *_MEDIANS,
        "host_syncs_per_step",
        *(("acceptance_length",) if drafts else ()),
        *(f"acceptance_rate.position_{position}" for position in range(1, drafts + 1)),
    )
    lower = (benchmark_of(metric, metric.kind.statistic) for metric in map(metric_of, wanted))
    return (*lower, *_as_they_are())


def benchmark_of(metric: Metric, statistic: str) -> Tracked:
    """Give the benchmark for which lower is better; the usual statistic of a metric has no name."""
    tail = "" if statistic == metric.kind.statistic else f"_{statistic}"
    name, form, unit = _lower(metric)
    return Tracked(f"{name}{tail}".replace(".", "_"), metric, statistic, form, unit)


def benchmark_name(scenario_id: str, benchmark: str) -> str:
    """Give a benchmark's whole name, such as ``smoke.dummy_run.DummyRun.track_ttft``."""
    return f"{module_of(scenario_id)}.{class_of(scenario_id)}.track_{benchmark}"


def module_of(scenario_id: str) -> str:
    """Give the path of a scenario as a module."""
    return ".".join(re.sub(r"\W", "_", part) for part in scenario_id.split("/"))


def class_of(scenario_id: str) -> str:
    """Give the name of a scenario as a class."""
    words = re.findall(r"[^\W_]+", scenario_id.rpartition("/")[2])
    return "".join(word.capitalize() for word in words)


def _as_they_are() -> Iterator[Tracked]:
    for metric in map(metric_of, _RATES):
        unit = metric.unit.value + _HIGHER
        yield Tracked(metric.id, metric, metric.kind.statistic, Form.SAMPLES, unit)


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
