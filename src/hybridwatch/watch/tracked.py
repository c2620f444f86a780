"""Which numbers of a scenario asv gets, and in which form: for asv lower is always better."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hybridwatch.metric import Direction, Kind, Metric, Unit, metric_of
from hybridwatch.metric.catalogue import INVERSES
from hybridwatch.scenario.scenario import Scenario

_RATES: Final = ("output_throughput", "request_throughput")
_MEDIANS: Final = ("ttft", "tpot", "itl", "e2el", "metadata_build_time")
_HIGHER: Final = ", higher is better"


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


@dataclass(frozen=True, slots=True)
class Tracked:
    """One benchmark of a suite.

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


def tracked(scenario: Scenario) -> tuple[Tracked, ...]:
    """List the benchmarks of a scenario."""
    return (*_contracts(scenario), *_answers(scenario), *_speeds(), *_speculation(scenario))


def _contracts(scenario: Scenario) -> Iterator[Tracked]:
    for metric in map(metric_of, scenario.expect.exactly):
        if metric.kind is Kind.EXACT:
            yield _one(metric.id.partition(".")[2], metric.id, "value", Form.WORST)


def _answers(scenario: Scenario) -> Iterator[Tracked]:
    for task in scenario.accuracy.tasks if scenario.accuracy is not None else ():
        yield _one(f"wrong_answers_{task}", f"accuracy.{task}", "mean", Form.WRONG)


def _speeds() -> Iterator[Tracked]:
    for metric in _RATES:
        yield _one(metric, metric, "median", Form.SAMPLES, metric_of(metric).unit.value + _HIGHER)
        yield _one(INVERSES[metric], metric, "median", Form.INVERSE, Unit.SECONDS.value)
    for metric in _MEDIANS:
        yield _one(metric, metric, "median", Form.SAMPLES)
    yield _one("host_syncs_per_step", "host_syncs_per_step", "mean", Form.SAMPLES)


def _speculation(scenario: Scenario) -> Iterator[Tracked]:
    speculation = scenario.engine.speculation
    if speculation is None:
        return
    length = "acceptance_length"
    yield _one(INVERSES[length], length, "median", Form.INVERSE, "step/tok")
    for position in range(1, speculation.drafts + 1):
        metric = f"acceptance_rate.position_{position}"
        yield _one(f"rejected_drafts_position_{position}", metric, "median", Form.REST)


def _one(name: str, metric_id: str, statistic: str, form: Form, unit: str = "") -> Tracked:
    metric = metric_of(metric_id)
    return Tracked(name, metric, statistic, form, unit or metric.unit.value)
