"""Mutants on a live engine: each goes in and out, some change tokens, and none leaves a trace."""

import pytest

from hybridwatch.errors import BuildError
from hybridwatch.measure.waves import Tokens, drive
from hybridwatch.mutants.catalogue import catalogue
from hybridwatch.scenario.expansion import expand
from tests.engine.conftest import HEALTHY

pytestmark = pytest.mark.engine


OF_THE_SCHEDULER = "chunk-token-twice"


@pytest.fixture(scope="module")
def scenario(scenario):
    """Prompts of 48 tokens in chunks."""
    engine = scenario.engine.model_copy(update={"max_num_batched_tokens": 32})
    return scenario.model_copy(update={"engine": engine})


@pytest.fixture(scope="module")
def healthy(bench, scenario) -> tuple[Tokens, ...]:
    return tokens(bench, scenario)


def tokens(bench, scenario) -> tuple[Tokens, ...]:
    """What the engine says of the scenario's first wave, from a fresh state on."""
    engine = bench.make_ready(HEALTHY)
    return drive(engine, expand(scenario.workload.waves[:1], scenario.workload.seed))


def test_every_mutant_goes_in_and_out_and_the_healthy_tokens_are_back(bench, scenario, healthy):
    control = bench.engine(HEALTHY).control
    for name in catalogue():
        control.mutate(name)
        assert control.mutant_counts() == {"reached": 0, "changed": 0}, name
    control.mutate(None)
    assert tokens(bench, scenario) == healthy


@pytest.mark.parametrize("name", ["decode-state-unwritten", "decode-window-late", OF_THE_SCHEDULER])
def test_a_mutant_changes_tokens_while_it_is_on_and_no_longer(bench, scenario, healthy, name):
    control = bench.engine(HEALTHY).control
    control.mutate(name)
    mutated, counts = tokens(bench, scenario), control.mutant_counts()
    control.mutate(None)
    assert mutated != healthy
    assert 0 < counts["changed"] <= counts["reached"]
    assert tokens(bench, scenario) == healthy


def test_an_unknown_mutant_is_refused_and_the_engine_lives_on(bench, scenario, healthy):
    with pytest.raises(BuildError, match="no mutant 'nobody'"):
        bench.engine(HEALTHY).control.mutate("nobody")
    assert tokens(bench, scenario) == healthy
