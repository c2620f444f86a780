"""What comes with a request: kept on the disk until its turn, so that waiting takes no memory."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import Any, Final

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from hybridwatch.api.queries import ProblemError, unfit
from hybridwatch.api.routes import JSON, Upload

_AROUND: Final = 2**16
"""Bytes of a form that are not its files."""
_IN_MEMORY: Final = 2**16
"""Bytes of a file that are kept there; more go to the disk."""
_MOST_AT_ONCE: Final = 4
"""Uploads of one token."""
_SOON_S: Final = 1


class Uploads:
    """Takes uploads, a few of each token at once, and lets them be handled one after another."""

    def __init__(self) -> None:
        self._begun: Counter[str] = Counter()
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def take(
        self, request: Request, upload: Upload, who: str
    ) -> AsyncIterator[dict[str, bytes]]:
        """Give the files of a request, by their names, when it is their turn."""
        with self._counted(who):
            async with AsyncExitStack() as stack:
                files = await _received(request, upload, stack)
                async with self._turn:
                    yield {name: file.read() for name, file in files.items()}

    @contextmanager
    def _counted(self, who: str) -> Iterator[None]:
        if self._begun[who] >= _MOST_AT_ONCE:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"expected at most {_MOST_AT_ONCE} uploads of one token at once",
                headers={"retry-after": str(_SOON_S)},
            )
        self._begun[who] += 1
        try:
            yield
        finally:
            self._begun[who] -= 1


async def _received(request: Request, upload: Upload, stack: AsyncExitStack) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in upload.kinds:
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type: expected {' or '.join(upload.kinds)}, found {kind!r}",
            field="Content-Type",
            expected=" or ".join(upload.kinds),
            found=kind,
        )
    if kind != JSON:
        return await _files(request, upload, stack)
    file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - the stack closes it
    stack.enter_context(file)
    async for some in _at_most(request, upload.parts[upload.alone]):
        file.write(some)
    file.seek(0)
    return {upload.alone: file}


async def _files(request: Request, upload: Upload, stack: AsyncExitStack) -> dict[str, Any]:
    stream = _at_most(request, sum(upload.parts.values()) + _AROUND)
    parser = MultiPartParser(request.headers, stream, max_files=len(upload.parts), max_fields=0)
    parser.spool_max_size = _IN_MEMORY
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:  # KeyError: a form without a boundary
        said = getattr(error, "message", "no boundary")
        raise unfit("form", "files of a form (RFC 7578)", str(said)) from error
    stack.push_async_callback(form.close)
    return _taken_apart(form, upload)


def _taken_apart(form: FormData, upload: Upload) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, file in form.multi_items():
        if name not in upload.parts or name in found or not isinstance(file, UploadFile):
            raise unfit("form", f"each of these files once: {', '.join(upload.parts)}", name)
        if (file.size or 0) > upload.parts[name]:
            raise _too_long(upload.parts[name])
        found[name] = file.file
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
    return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said, field="body")
