"""From a request to its answer: who asks, how often, what they get."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import version
from typing import Final
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hybridwatch.api.access import Access
from hybridwatch.api.deeds import Given
from hybridwatch.api.kept_answers import KeptAnswers
from hybridwatch.api.limits import Limits
from hybridwatch.api.problem import ProblemError
from hybridwatch.api.queries import Nothing, parsed
from hybridwatch.api.routes import PREFIX, Route, Write
from hybridwatch.api.uploads import received
from hybridwatch.api.view import StoreView
from hybridwatch.database.tokens import Scope

_JSON: Final = "application/json"
_DIGITS: Final = 32
_VERSION: Final = version("hybridwatch")


@dataclass(frozen=True, slots=True)
class Desk:
    """What it takes to answer.

    Attributes:
        view: What is served.
        access: Says who may ask for what.
        limits: Say how often.
        kept: What was answered a moment ago.
    """

    view: StoreView
    access: Access
    limits: Limits
    kept: KeptAnswers = field(default_factory=KeptAnswers)

    def admit(self, request: Request, scope: Scope) -> str:
        """Let somebody in.

        Returns:
            The name of their token; empty without one.

        Raises:
            ProblemError: They may not, or ask too often.
        """
        address = f"address {request.client.host if request.client else ''}"
        try:
            who = self.access.who(request.headers.getlist("authorization"), scope)
        except ProblemError:
            self.limits.take(address)  # who tries tokens does it from somewhere
            raise
        self.limits.take(f"token {who}" if who else address)
        return who

    def read(self, route: Route, request: Request) -> Response:
        """Answer a question."""
        self.admit(request, route.scope)
        query = parsed(route.query, request.query_params.multi_items())
        store, named = self.view.now(), request.path_params
        asked = json.dumps([route.path, named, query.model_dump()])
        tag = tag_of(f"{_VERSION} {route.stamp(store, named)} {asked}".encode())

        def made() -> bytes:
            answer = route.answer(store, named, query)
            if isinstance(answer, bytes):
                return answer
            return json.dumps(answer, allow_nan=False).encode()

        known = request.headers.get("if-none-match", "")
        return tagged(tag, known, lambda: self.kept.get(tag, made))

    async def write(self, write: Write, request: Request) -> Response:
        """Do something; nothing of the request's body is read for somebody who may not."""
        who = await run_in_threadpool(self.admit, request, write.scope)
        parsed(Nothing, request.query_params.multi_items())
        given = Given(who, await received(request, write.upload))
        done = await run_in_threadpool(write.deed, self.view, request.path_params, given)
        headers = {"location": PREFIX + quote(done.location), "cache-control": "no-store"}
        return Response(json.dumps(done.content, allow_nan=False), done.status, headers, _JSON)


def answering(desk: Desk, reads: Route | None, writes: Write | None) -> Callable[..., object]:
    """Give what answers at one address."""

    async def answer(request: Request) -> Response:
        if request.method == "POST" and writes is not None:
            return await desk.write(writes, request)
        if request.method in {"GET", "HEAD"} and reads is not None:
            return await run_in_threadpool(desk.read, reads, request)
        allowed = ["GET, HEAD"] * (reads is not None) + ["POST"] * (writes is not None)
        raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"allow": ", ".join(allowed)})

    return answer


def tagged(tag: str, known: str, body: Callable[[], bytes]) -> Response:
    """Answer with a tag; with the tag alone if it is known."""
    headers = {"etag": tag, "cache-control": "private, no-cache", "vary": "authorization"}
    if tag in {one.strip().removeprefix("W/") for one in known.split(",")}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body(), headers=headers, media_type=_JSON)


def tag_of(content: bytes) -> str:
    """Make a tag of what an answer hangs on."""
    return f'"{hashlib.sha256(content).hexdigest()[:_DIGITS]}"'
