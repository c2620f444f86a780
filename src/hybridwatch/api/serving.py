"""From a request to its answer: who asks, how often, what they send, what they get."""

import hashlib
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import version
from typing import Final
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import Response

from hybridwatch.api.access import Access, Limits
from hybridwatch.api.problem import ProblemError, unfit
from hybridwatch.api.queries import Nothing, parsed
from hybridwatch.api.routes import JSON, PREFIX, Route, Upload, Write
from hybridwatch.api.view import KeptAnswers, StoreView
from hybridwatch.api.writes import Given
from hybridwatch.database.tokens import Scope

_AROUND: Final = 2**16
"""Bytes of a form beside its files."""
_DIGITS: Final = 32
_VERSION: Final = version("hybridwatch")


async def received(request: Request, upload: Upload) -> dict[str, bytes]:
    """Read what comes with a request.

    Raises:
        ProblemError: It is too long, of another kind, or no such form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in upload.kinds:
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type: expected {' or '.join(upload.kinds)}, found {kind!r}",
            field="Content-Type",
            expected=" or ".join(upload.kinds),
            found=kind,
        )
    if kind == JSON:
        most = upload.parts[upload.alone]
        return {upload.alone: b"".join([some async for some in _at_most(request, most)])}
    return await _files(request, upload)


async def _files(request: Request, upload: Upload) -> dict[str, bytes]:
    stream = _at_most(request, sum(upload.parts.values()) + _AROUND)
    parser = MultiPartParser(request.headers, stream, max_files=len(upload.parts), max_fields=0)
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:  # KeyError: a form without a boundary
        said = getattr(error, "message", "no boundary")
        raise unfit("form", "files of a form (RFC 7578)", str(said)) from error
    try:
        return await _taken_apart(form, upload)
    finally:
        await form.close()


async def _taken_apart(form: FormData, upload: Upload) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, file in form.multi_items():
        if name not in upload.parts or name in found or not isinstance(file, UploadFile):
            raise unfit("form", f"each of these files once: {', '.join(upload.parts)}", name)
        found[name] = await file.read()
        if len(found[name]) > upload.parts[name]:
            raise _too_long(upload.parts[name])
    if upload.alone not in found:
        raise unfit(upload.alone, "a file of this name", "none")
    return found


async def _at_most(request: Request, most: int) -> AsyncGenerator[bytes, None]:
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > most:
        raise _too_long(most)
    count = 0
    async for some in request.stream():
        count += len(some)
        if count > most:
            raise _too_long(most)
        yield some


def _too_long(most: int) -> ProblemError:
    said = f"the body: expected at most {most} bytes, found more"
    # What was not read must not be taken for another request.
    return ProblemError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said, field="body", headers={"connection": "close"}
    )


@dataclass(frozen=True, slots=True)
class AppState:
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
        """Admit a caller.

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
        tag = compute_tag(f"{_VERSION} {route.stamp(store, named)} {asked}".encode())

        def made() -> bytes:
            answer = route.answer(store, named, query)
            if isinstance(answer, bytes):
                return answer
            return json.dumps(answer, allow_nan=False).encode()

        known = request.headers.get("if-none-match", "")
        return tagged(tag, known, lambda: self.kept.get(tag, made))

    async def write(self, write: Write, request: Request) -> Response:
        """Do something; the body of a request that may not is never read."""
        who = await run_in_threadpool(self.admit, request, write.scope)
        parsed(Nothing, request.query_params.multi_items())
        given = Given(who, await received(request, write.upload))
        done = await run_in_threadpool(write.handler, self.view, request.path_params, given)
        headers = {"location": PREFIX + quote(done.location), "cache-control": "no-store"}
        return Response(json.dumps(done.content, allow_nan=False), done.status, headers, JSON)


def answering(state: AppState, reads: Route | None, writes: Write | None) -> Callable[..., object]:
    """Give what answers at one address."""

    async def answer(request: Request) -> Response:
        if request.method == "POST" and writes is not None:
            return await state.write(writes, request)
        if request.method in {"GET", "HEAD"} and reads is not None:
            return await run_in_threadpool(state.read, reads, request)
        allowed = ["GET, HEAD"] * (reads is not None) + ["POST"] * (writes is not None)
        raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"allow": ", ".join(allowed)})

    return answer


def tagged(tag: str, known: str, body: Callable[[], bytes]) -> Response:
    """Answer with a tag; with the tag alone if it is known."""
    headers = {"etag": tag, "cache-control": "private, no-cache", "vary": "authorization"}
    if tag in {one.strip().removeprefix("W/") for one in known.split(",")}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body(), headers=headers, media_type=JSON)


def compute_tag(content: bytes) -> str:
    """Make a tag of what an answer hangs on."""
    return f'"{hashlib.sha256(content).hexdigest()[:_DIGITS]}"'
