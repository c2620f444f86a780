"""What is wrong with a request, as RFC 9457 wants it told."""

from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from hybridwatch.api.answers import Problem

MEDIA_TYPE: Final = "application/problem+json"


_LONGEST: Final = 200
"""Characters of what was found that are said again."""


class ProblemError(Exception):
    """A request that is not answered as it wishes.

    Args:
        status: Of the answer.
        detail: What is wrong, in one line.
        field: The part of the request that is.
        expected: What it should be.
        found: What it is.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        field: str = "",
        expected: str = "",
        found: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.headers = headers or {}
        self.problem = Problem(
            title=status.phrase,
            status=status.value,
            detail=detail,
            field=field,
            expected=expected,
            found=found[:_LONGEST],
        )

    def response(self) -> Response:
        """Give the answer."""
        headers = {"cache-control": "no-store", **self.headers}
        status, body = self.problem.status, self.problem.model_dump_json(exclude_defaults=True)
        return Response(body, status, headers, MEDIA_TYPE)


def wrong(field: str, expected: str, found: str) -> ProblemError:
    """Say that one part of a request is not what it should be."""
    detail = f"{field}: expected {expected}, found {found[:_LONGEST]!r}"
    return ProblemError(HTTPStatus.BAD_REQUEST, detail, field=field, expected=expected, found=found)


def missing(field: str, expected: str, found: str) -> ProblemError:
    """Say that what one part of a request names is not there."""
    detail = f"{field}: expected {expected}, found none of this name"
    return ProblemError(HTTPStatus.NOT_FOUND, detail, field=field, expected=expected, found=found)


def unfit(field: str, expected: str, found: str) -> ProblemError:
    """Say what is wrong with the content of a request."""
    detail = f"{field}: expected {expected}, found {found[:_LONGEST]}"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return ProblemError(status, detail, field=field, expected=expected, found=found)
