"""A server that refuses: what is left out, and what is then not asked."""

import asyncio
import random

import pytest

from hybridwatch.server_check import client
from hybridwatch.server_check.client import CheckClient, Request, RequestError
from hybridwatch.server_check.plan import Settings, check_server
from hybridwatch.server_check.prompts import Prompts, length
from tests.unit.server_check.language_server import LanguageServer, served


def check(server: LanguageServer, **settings):
    wanted = {"minutes": 60.0, "pause_s": 0.0, "rounds": 1, "known": 6, **settings}
    with served(server) as url:
        return asyncio.run(check_server(Settings(url, **wanted)))


@pytest.mark.parametrize("parameter", ["cache_salt", "ignore_eos", "return_token_ids"])
def test_a_parameter_that_is_refused_is_left_out_and_said(parameter):
    found = check(LanguageServer(refuses=frozenset({parameter})), only=("stream", "drift"))
    assert parameter in found.refused
    assert found.broke == []
    assert not found.errors


def test_without_logarithms_a_difference_is_unknown_and_not_wrong():
    server = LanguageServer("later", refuses=frozenset({"logprobs"}), has_ids=False)
    found = check(server, only=("drift",), rounds=8)
    assert found.tallies["drift"].outcome == "unknown"
    assert found.broke == []


def test_gently_there_is_never_another_request():
    server = LanguageServer("company")
    found = check(server, gentle=True)
    assert found.broke == []
    assert found.tallies["company"].outcome == "not asked"
    assert found.tallies["abort"].reason == "one request at a time"


def test_prompts_have_the_length_that_is_asked_for():
    rng = random.Random(1)
    ids = Prompts(rng, tuple(range(100, 200)), 1.0)
    assert [len(ids.make(size)) for size in (1, 17, 400)] == [1, 17, 400]
    words = Prompts(rng, (), 2.0)
    assert [length(words.make(size)) for size in (1, 16, 400)] == [1, 8, 200]


def test_an_answer_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(client, "_LONGEST_S", 0.2)

    async def ask(url: str) -> CheckClient:
        async with CheckClient(url) as asking:
            with pytest.raises(RequestError, match="no answer in time"):
                await asking.ask(Request("a", 24, streamed=True))
            await asking.leave(Request("a", 24), chunks=10**6)
            return asking

    with served(LanguageServer("stream does not end")) as url:
        assert asyncio.run(ask(url)).errors == {"timeout": 2}
