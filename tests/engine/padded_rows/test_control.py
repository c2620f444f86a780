"""A live engine does as it is told: so many steps and no more, so many tokens a step, a mutant.

No mutant leaves a trace.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from hybridwatch.engines.control import LiveEngine
from hybridwatch.errors import BuildError, EngineError
from hybridwatch.measurement.waves import Tokens, drive
from hybridwatch.scenarios.expansion import expand
from hybridwatch_lab.mutants.table import catalogue
from tests.engine.conftest import HEALTHY

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("one engine for the folder, started by the first of its tests"),
]

PROMPT = tuple(range(65, 65 + 40))
CHUNK = 32
"""Tokens of a step in which a mutant is looked for: fewer than a prompt has."""
OF_THE_SCHEDULER = "chunk-token-twice"


@pytest.fixture
def held(pool) -> Iterator[LiveEngine]:
    """The engine, empty and held; let go again whatever the test did."""
    engine = pool.make_ready(HEALTHY)
    engine.control.hold()
    yield engine
    engine.control.release()
    engine.control.set_token_budget(None)
    engine.control.drain()


@contextmanager
def asked(engine: LiveEngine, tokens: int, prompt=PROMPT) -> Iterator[Future[httpx.Response]]:
    """One request that the scheduler has."""
    before = engine.control.requests()
    body = {
        "model": engine.server.launch.served_name,
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }
    with ThreadPoolExecutor(1) as sender:
        url = f"{engine.server.url}/v1/completions"
        answer = sender.submit(httpx.post, url, json=body, timeout=120, trust_env=False)
        while engine.control.requests() == before:
            assert not answer.done()
        yield answer


def token_ids(answer: Future[httpx.Response]) -> list[int]:
    ids: list[int] = answer.result().json()["choices"][0]["token_ids"]
    return ids


def test_an_answer_of_n_tokens_takes_n_steps(held):
    with asked(held, 4) as answer:
        assert held.control.run_steps(3) == 3
        assert held.control.requests() == 1
        assert not answer.done()
        assert held.control.run_steps(5) == 1
        assert held.control.requests() == 0
        assert len(token_ids(answer)) == 4


def test_a_dry_engine_is_held_again(held):
    with asked(held, 2) as answer:
        assert held.control.run_steps(10) == 2
        first = token_ids(answer)
    with asked(held, 2) as answer:
        assert held.control.requests() == 1
        assert held.control.run_steps(10) == 2
        assert token_ids(answer) == first


def test_a_budget_of_16_tokens_makes_three_steps_of_a_prompt_of_40(held):
    held.control.set_token_budget(16)
    with asked(held, 1) as answer:
        assert held.control.run_steps(10) == 3
        assert len(token_ids(answer)) == 1


def test_a_budget_above_the_engines_own_is_refused(held):
    with pytest.raises(EngineError, match="a step cannot compute 9000000 tokens"):
        held.control.set_token_budget(9_000_000)


def test_steps_do_not_change_an_answer(held):
    with asked(held, 6) as answer:
        for _ in range(6):
            held.control.run_steps(1)
        stepped = token_ids(answer)
    with asked(held, 6) as answer:
        held.control.release()
        assert token_ids(answer) == stepped


@pytest.fixture(scope="module")
def healthy(pool, scenario) -> tuple[Tokens, ...]:
    return tokens(pool, scenario)


def tokens(pool, scenario) -> tuple[Tokens, ...]:
    """What the engine says of the scenario's first wave, in chunks, from a fresh state on."""
    engine = pool.make_ready(HEALTHY)
    engine.control.set_token_budget(CHUNK)
    try:
        return drive(engine, expand(scenario.workload.waves[:1], scenario.workload.seed))
    finally:
        engine.control.set_token_budget(None)


def test_every_mutant_goes_in_and_out_and_the_healthy_tokens_are_back(pool, scenario, healthy):
    control = pool.engine(HEALTHY).control
    for name in catalogue():
        control.mutate(name)
        assert control.mutant_counts() == {"reached": 0, "changed": 0}, name
    control.mutate(None)
    assert tokens(pool, scenario) == healthy


@pytest.mark.parametrize("name", ["decode-state-unwritten", "decode-window-late", OF_THE_SCHEDULER])
def test_a_mutant_changes_tokens_while_it_is_on_and_no_longer(pool, scenario, healthy, name):
    control = pool.engine(HEALTHY).control
    control.mutate(name)
    mutated, counts = tokens(pool, scenario), control.mutant_counts()
    control.mutate(None)
    assert mutated != healthy
    assert 0 < counts["changed"] <= counts["reached"]
    assert tokens(pool, scenario) == healthy


def test_an_unknown_mutant_is_refused_and_the_engine_lives_on(pool, scenario, healthy):
    with pytest.raises(BuildError, match="no mutant 'nobody'"):
        pool.engine(HEALTHY).control.mutate("nobody")
    assert tokens(pool, scenario) == healthy
