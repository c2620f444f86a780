"""``hybridwatch check`` on a live engine: nothing of the healthy one, and the fix that is out."""

import asyncio

import pytest

from hybridwatch.server_check.plan import Settings, check_server
from hybridwatch.server_check.result import CheckResult
from hybridwatch.server_check.screen import write_result
from tests.engine.conftest import HEALTHY, KNOWN_BAD

pytestmark = pytest.mark.engine

FIRST_TOKENS = "one-token-prompt"
"""Of vllm#57720, which no release has yet: ``check`` finds it as well."""


def check(pool, side: int, rounds: int) -> CheckResult:
    engine = pool.make_ready(side)
    engine.control.switch({FIRST_TOKENS: True})
    try:
        asked = Settings(
            engine.server.url,
            minutes=60.0,  # the rounds end it
            rounds=rounds,
            known=16,
            pause_s=0.0,
            only=("company", "cached", "short", "parts", "count", "stream", "drift"),
        )
        return asyncio.run(check_server(asked))
    finally:
        engine.control.switch({FIRST_TOKENS: False})


def test_the_healthy_engine_holds(pool):
    found = check(pool, HEALTHY, rounds=1)
    assert found.broke == [], "\n".join(write_result(found))
    assert not found.is_empty


def test_the_known_bad_is_named(pool):
    assert "company" in check(pool, KNOWN_BAD, rounds=3).broke
