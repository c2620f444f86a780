"""No row of a shipped scenario is undecidable by its number of trials.

A verdict is not far from its record.
"""

from collections.abc import Iterator, Mapping
from functools import cache

from hybridwatch.analysis.judge import FALSE_DISCOVERY_RATE, adjust, holm
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Design, Report
from hybridwatch.scenarios.load import find
from hybridwatch.scenarios.scenario import Scenario
from tests.builders import Trials, a_run
from tests.shipped import SCENARIOS
from tests.walk import follow

TIMED = ("output_throughput", "request_throughput", "ttft", "tpot", "itl", "e2el")
ON_CUDA = ("host_sync_time", "host_sync_share")


def metrics_of(scenario: Scenario, accelerator: str) -> Iterator[tuple[str, int]]:
    """Every metric that a report of the scenario tests, with its trials."""
    trials, speculation = scenario.trials, scenario.engine.speculation
    drafts = range(1, 1 + (speculation.drafts if speculation else 0))
    positions = (f"acceptance_rate.position_{at}" for at in drafts)
    for name in (*TIMED, *(("acceptance_length",) if speculation else ()), *positions):
        yield name, trials.performance
    on_device = ON_CUDA if accelerator == "cuda" else ()
    for name in ("host_syncs_per_step", "metadata_build_time", *on_device):
        yield name, trials.host_sync


@cache
def clearest(metrics: tuple[tuple[str, int], ...], tasks: tuple[str, ...], n: int) -> Report:
    """The report in which every trial of the contender lies beyond every one of the baseline."""

    def side(level: float, answers: str) -> Mapping[str, Trials]:
        # No two trials alike, so that no count is judged exactly.
        timed = {name: tuple(level + 0.01 * at for at in range(trials)) for name, trials in metrics}
        return {**timed, **{f"accuracy.{task}": answers for task in tasks}}

    return build_report(a_run(side(1.0, "1" * n), side(9.0, "0" * n)))


def undecidable(scenario: Scenario, accelerator: str) -> list[str]:
    """The rows whose smallest p-value cannot survive the control beside rows that show nothing."""
    accuracy = scenario.accuracy
    tasks, documents = (accuracy.tasks, accuracy.documents) if accuracy else ((), 0)
    report = clearest(tuple(metrics_of(scenario, accelerator)), tasks, documents)
    tests = {family.name: family.tests for family in report.families}
    found = []
    for row in report.comparisons:
        if row.design is Design.EXACT:
            continue
        if row.p_value is None:
            found.append(f"{row.metric.id} {row.statistic}: no test")
            continue
        others = [1.0] * (tests[row.family] - 1)
        surest = max(adjust([row.p_value, *others])[0], holm([row.p_value, *others])[0])
        if surest >= FALSE_DISCOVERY_RATE:
            found.append(f"{row.metric.id} {row.statistic}: p {surest:.3g} at best")
    return found


def test_every_row_of_a_shipped_scenario_can_be_decided() -> None:
    shipped = find(SCENARIOS, [])
    assert shipped
    assert [
        f"{scenario.id} on {accelerator}: {row}"
        for scenario in shipped
        for accelerator in ("cpu", "cuda")
        if scenario.fits(accelerator)
        for row in undecidable(scenario, accelerator)
    ] == []


def test_from_the_newest_record_to_its_verdict_are_at_most_31_stays(tmp_path) -> None:
    stays = follow(tmp_path)
    assert any("build_pair" in stay for stay in stays)
    assert len(stays) <= 31, stays
