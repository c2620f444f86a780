"""What comes with a request: read as far as it may be long, and taken apart."""

from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from hybridwatch.api.problem import ProblemError, unfit

JSON: Final = "application/json"
FORM: Final = "multipart/form-data"
_AROUND: Final = 2**16
"""Bytes of a form beside its files."""


@dataclass(frozen=True, slots=True)
class Upload:
    """What may come with a request.

    Attributes:
        parts: The most bytes of each file, by its name in a form. The first may come alone, as
            JSON; the others are optional.
    """

    parts: Mapping[str, int]

    @property
    def alone(self) -> str:
        """What comes alone, as JSON."""
        return next(iter(self.parts))

    @property
    def kinds(self) -> Collection[str]:
        """In which forms it may come."""
        return (JSON, FORM) if len(self.parts) > 1 else (JSON,)


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
