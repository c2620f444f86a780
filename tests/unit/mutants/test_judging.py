"""What kills a mutant: any verdict of the suite that is bad news, whatever the metric's name."""

from dataclasses import replace

import pytest

from hybridwatch.records.run import Failure, Phase, Trial
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.home import home
from hybridwatch_lab.mutants.judging import find_kill
from tests.builders import Trials, a_run

RULES: dict[str, Trials] = {
    "contract.padded_rows_prefilling": (0.0,),
    "contract.wrong_tokens": (0.0,),
}
RIGHT: dict[str, Trials] = {**RULES, "accuracy.recall": "1" * 190 + "0" * 10}


@pytest.fixture(scope="module")
def scenario():
    root = home() / "scenarios"
    return load_scenario(root / "smoke" / "padded-graph-rows.toml", root)


def trials(metrics: dict[str, Trials]) -> list[Trial]:
    return list(a_run(metrics).trials)


def kill(scenario, healthy, mutated):
    return find_kill(scenario, a_run(RIGHT), trials(healthy), trials(mutated))


def test_a_healthy_engine_kills_nothing(scenario):
    assert not kill(scenario, RIGHT, RIGHT)


def test_one_wrong_token_kills(scenario):
    found = kill(scenario, RULES, {**RULES, "contract.wrong_tokens": (1.0,)})
    assert found.metrics == ("contract.wrong_tokens",)
    assert found.detail == "contract.wrong_tokens 0 -> 1"


def test_what_the_healthy_engine_breaks_as_well_kills_nothing(scenario):
    broken: dict[str, Trials] = {**RULES, "contract.wrong_tokens": (2.0,)}
    assert not kill(scenario, broken, broken)
    assert kill(scenario, broken, {**broken, "contract.padded_rows_prefilling": (1.0,)})


def test_lost_answers_kill(scenario):
    found = kill(scenario, RIGHT, {**RIGHT, "accuracy.recall": "1" * 150 + "0" * 50})
    assert found.metrics == ("accuracy.recall",)


def test_a_contract_that_nobody_has_heard_of_kills(scenario):
    healthy, mutated = {**RULES, "contract.new": (0.0,)}, {**RULES, "contract.new": (4.0,)}
    assert kill(scenario, healthy, mutated).metrics == ("contract.new",)


def test_phases_that_the_mutant_has_not_come_to_are_not_missed(scenario):
    assert not kill(scenario, RIGHT, RULES)


@pytest.mark.parametrize(
    ("failure", "word"),
    [
        (Failure("the engine ended", "", engine_died=True), "engine_died"),
        (Failure("no answer in time: 60 s", "", engine_died=True), "timeout"),
        (Failure("a request was refused (500)", ""), "failed_trial"),
    ],
)
def test_a_trial_without_a_measurement_kills_by_its_reason(scenario, failure, word):
    failed = replace(trials(RULES)[0], phase=Phase.CONTRACT, samples=(), failure=failure)
    found = find_kill(scenario, a_run(RIGHT), trials(RIGHT), [failed])
    assert (found.metrics, found.detail) == ((word,), failure.reason)
