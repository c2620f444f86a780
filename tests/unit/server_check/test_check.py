"""The check on a server that plays a language model: right, and with one fault at a time."""

import asyncio
import contextlib

import pytest

from hybridwatch.errors import ServerCheckError
from hybridwatch.server_check.client import (
    CheckClient,
    Request,
    RequestError,
    UnreachableError,
)
from hybridwatch.server_check.plan import Settings, check_server
from hybridwatch.server_check.result import RELATIONS, CheckResult
from tests.unit.server_check.language_server import LanguageServer, served

KNOWN = 12


def check(server: LanguageServer, **settings) -> CheckResult:
    wanted = {"minutes": 60.0, "pause_s": 0.0, "rounds": 2, "known": KNOWN, **settings}
    with served(server) as url:
        return asyncio.run(check_server(Settings(url, **wanted)))


@pytest.fixture(scope="module")
def healthy() -> CheckResult:
    return check(LanguageServer())


def test_a_right_server_holds_every_relation(healthy):
    assert healthy.broke == []
    assert {tally.name: tally.outcome for tally in healthy.tallies.values()} == dict.fromkeys(
        RELATIONS, "held"
    )
    assert not healthy.errors
    assert healthy.stopped == ""


@pytest.mark.parametrize(
    ("fault", "relation"),
    [
        ("company", "company"),
        ("answers are swapped", "company"),
        ("cached", "cached"),
        ("hit of another", "cached"),
        ("short beside others", "short"),
        ("sees where its prompt ends", "parts"),
        ("long from the cache", "long"),
        ("long beside others", "long"),
        ("stop stays", "stop"),
        ("stop of another", "parameters"),
        ("bias stays", "parameters"),
        ("least is one short", "parameters"),
        ("penalties of another", "parameters"),
        ("counts stay", "parameters"),
        ("schema of another", "parameters"),
        ("prompt logarithms are late", "parameters"),
        ("usage is wrong", "count"),
        ("logarithms lie", "count"),
        ("list is swapped", "count"),
        ("stream is cut", "stream"),
        ("stream drops text", "stream"),
        ("after a client left", "abort"),
        ("after a storm", "idle"),
        ("later", "drift"),
        ("cache is lost", "drift"),
    ],
)
def test_a_planted_fault_is_named(fault, relation):
    found = check(LanguageServer(fault), only=(relation,))
    assert relation in found.broke
    assert found.tallies[relation].breaks[0].said
    assert found.tallies[relation].breaks[0].curl


def test_a_state_that_an_answer_stored_wrongly_is_named_in_the_next_turn():
    found = check(LanguageServer("what answers store"), only=("parts",))
    assert found.broke == ["cached"]


def test_an_adapter_that_is_answered_from_the_cache_of_another_is_named():
    adapters = ("poet", "judge")
    assert check(LanguageServer(adapters=adapters), only=("cached",)).broke == []
    found = check(LanguageServer("adapter from the cache", adapters=adapters), only=("cached",))
    assert found.broke == ["cached"]
    assert '"model": "' in found.tallies["cached"].breaks[0].curl[-1]


def test_parameters_that_a_server_ignores_or_refuses_are_named_and_break_nothing():
    found = check(LanguageServer(is_plain=True), only=("parameters",))
    assert found.broke == []
    assert "stop_token_ids, logit_bias, response_format" in found.tallies["parameters"].reason
    refuses = frozenset({"echo", "response_format"})
    found = check(LanguageServer(refuses=refuses), only=("parameters",))
    assert found.tallies["parameters"].outcome == "held"
    assert "echo, response_format" in found.tallies["parameters"].reason
    assert not found.errors


def test_a_server_that_ignores_n_and_ends_no_stream_by_a_mark_is_right():
    found = check(LanguageServer(is_plain=True), only=("count", "stream"), rounds=1)
    assert found.broke == []
    assert found.tallies["stream"].outcome == "held"
    assert "one answer to each request" in found.tallies["count"].reason


@pytest.mark.parametrize(
    ("fault", "kind"), [("429", "429"), ("500", "500"), ("no json", "malformed")]
)
def test_errors_of_the_server_are_no_wrong_answers(fault, kind):
    found = check(LanguageServer(fault), rounds=1)
    assert found.broke == []
    assert set(found.errors) == {kind}


async def check_until(url: str, relation: str) -> CheckResult:
    """Check, and be cancelled when a relation is begun, as Ctrl-C does it."""
    task = asyncio.current_task()
    assert task is not None

    def leave(what: str, _share: float) -> None:
        if what == relation:
            task.cancel()

    return await check_server(Settings(url, minutes=60.0, known=KNOWN), leave)


def test_an_interrupted_check_keeps_what_is_known():
    with served(LanguageServer("usage is wrong")) as url:
        found = asyncio.run(check_until(url, "stream"))
    assert found.interrupted
    assert found.broke == ["count"]
    assert found.tallies["company"].outcome == "held"
    assert found.tallies["abort"].outcome == "not asked"


async def ask_until_gone(client: CheckClient) -> None:
    async with client:
        for _ in range(20):
            with contextlib.suppress(RequestError):
                await client.ask(Request("The river", 1))


def test_a_server_that_went_away_is_no_longer_asked():
    with served(LanguageServer()) as url:
        pass
    client = CheckClient(url)
    with pytest.raises(UnreachableError):
        asyncio.run(ask_until_gone(client))
    assert client.requests == 10


def test_a_server_that_is_not_there_is_an_error():
    with pytest.raises(ServerCheckError, match="no list of models"):
        asyncio.run(check_server(Settings("http://127.0.0.1:9")))
