"""A router before two servers: a right one, and routers that hand out what belongs to another."""

import asyncio
import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hybridwatch.server_check.plan import Settings, check_server
from hybridwatch.server_check.result import CheckResult
from tests.unit.api.serving import serving
from tests.unit.server_check.language_server import LanguageServer, served

ELSEWHERE = LanguageServer("sees where its prompt ends")
"""Another model under the same name."""


@dataclass
class Router:
    """Sends requests to its servers in turn.

    Attributes:
        lie: ``swaps``: every third request gets the answer of another that is in flight, if there
            is one. ``retries``: every seventh is lost, and asked again of the last server. Empty
            for none.
    """

    urls: list[str]
    lie: str = ""
    count: int = 0
    in_flight: list[dict[str, Any]] = field(default_factory=list)

    async def forward(self, request: Request) -> Response:
        path, raw = request.url.path, await request.body()
        if not raw:
            return await self.send(request.method, self.urls[0] + path, b"")
        self.count += 1
        body = json.loads(raw)
        at = self.count % (1 if self.lie == "retries" else len(self.urls))
        if self.lie == "retries" and self.count % 7 == 0:
            at = -1
        others = [one for one in self.in_flight if isinstance(one["prompt"][0], int)]
        sent = body
        if self.lie == "swaps" and self.count % 3 == 0 and others:
            sent = body | {"prompt": others[0]["prompt"]}
        self.in_flight.append(body)
        try:
            return await self.send("POST", self.urls[at] + path, json.dumps(sent).encode())
        finally:
            self.in_flight.remove(body)

    async def send(self, method: str, url: str, content: bytes) -> Response:
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.request(method, url, content=content)
        kind = answer.headers.get("content-type")
        return Response(answer.content, answer.status_code, media_type=kind)

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.forward, methods=["GET", "POST"])])


def check(lie: str, *servers: LanguageServer) -> CheckResult:
    with ExitStack() as stack:
        urls = [stack.enter_context(served(server)) for server in servers]
        front = stack.enter_context(serving(Router(urls, lie).app()))
        settings = Settings(
            str(front.base_url),
            minutes=60.0,
            pause_s=0.0,
            rounds=2,
            known=12,
            only=("company", "stream", "drift"),
        )
        return asyncio.run(check_server(settings))


def test_a_right_router_holds():
    found = check("", LanguageServer(), LanguageServer())
    assert found.broke == []
    assert found.tallies["company"].outcome == "held"


@pytest.mark.parametrize(
    ("lie", "last", "relations"),
    [
        ("swaps", LanguageServer(), {"company"}),
        ("retries", ELSEWHERE, {"company", "drift"}),
    ],
)
def test_a_router_that_hands_out_another_answer_is_named(lie, last, relations):
    found = check(lie, LanguageServer(), last)
    assert relations & set(found.broke)
    assert not found.errors
