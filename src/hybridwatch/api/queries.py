"""What a request may ask for, checked before it is looked up; errors are as in RFC 9457."""

import base64
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.responses import Response

from hybridwatch.analysis.alerts import Status
from hybridwatch.api.answers import Problem
from hybridwatch.records.identity import Role
from hybridwatch.reports.jsonform import ALONE

MEDIA_TYPE: Final = "application/problem+json"


_LONGEST: Final = 200
"""Characters of what was found that are said again."""


class ProblemError(Exception):
    """A request that is not answered as it wishes, for the ``part`` that a ``Problem`` names."""

    def __init__(
        self, status: HTTPStatus, detail: str, *, headers: dict[str, str] | None = None, **part: str
    ) -> None:
        super().__init__(detail)
        self.headers = headers or {}
        part["found"] = part.get("found", "")[:_LONGEST]
        self.problem = Problem(title=status.phrase, status=status.value, detail=detail, **part)

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


MOST: Final = 200
"""Entries of a page."""
_USUAL: Final = 50
_ROLES: Final = (*(role.value for role in Role), ALONE)
_STATUSES: Final = tuple(status.value for status in Status)

_Asked = TypeVar("_Asked", bound="Nothing")


def _whole(value: Any) -> Any:
    """Refuse what Python would take for a number and no one else, such as 1_0."""
    if isinstance(value, str) and not (value.isascii() and value.isdigit()):
        raise ValueError("a whole number")
    return value


def _one_of(*allowed: str) -> Any:
    def check(value: str) -> str:
        if value and value not in allowed:
            raise ValueError(f"one of {', '.join(allowed)}")
        return value

    return Annotated[str, AfterValidator(check), Field(json_schema_extra={"enum": [*allowed]})]


class Nothing(BaseModel):
    """A question without parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)


NOTHING: Final = Nothing()


class PageQuery(Nothing):
    """Which part of a list is wanted."""

    limit: Annotated[int, BeforeValidator(_whole)] = Field(
        _USUAL, ge=1, le=MOST, description="Entries of a page."
    )
    cursor: str = Field(
        "", max_length=400, pattern=r"^[A-Za-z0-9_-]*$", description="`next` of the page before."
    )


class RunsQuery(PageQuery):
    """Which runs are wanted, as ``hybridwatch records`` takes it."""

    scenario: str = Field("", max_length=MOST, description="Only this scenario, or this group.")
    build: str = Field(
        "", max_length=MOST, description="Label or line of a side's build, or its beginning."
    )
    testbed: str = Field("", max_length=MOST, description="Id of a machine, or its beginning.")
    role: _one_of(*_ROLES) = Field("", description="What the run is for.")  # type: ignore[valid-type]


class SeriesQuery(PageQuery):
    """Which series are wanted."""

    scenario: str = Field("", max_length=MOST, description="Only this scenario, or this group.")
    testbed: str = Field("", max_length=MOST, description="Id of a machine, or its beginning.")
    metric: str = Field("", max_length=MOST, description="Only this metric.")
    statistic: str = Field("", max_length=MOST, description="Only this statistic.")


class LevelsQuery(PageQuery):
    """Which points of a series are wanted."""

    build: str = Field(
        "", max_length=MOST, description="Only builds whose label or line begins so."
    )


class AlertsQuery(PageQuery):
    """Which alerts are wanted."""

    status: _one_of(*_STATUSES) = Field("", description="How it stands.")  # type: ignore[valid-type]
    scenario: str = Field("", max_length=MOST, description="Only this scenario, or this group.")


def parsed(model: type[_Asked], pairs: Sequence[tuple[str, str]]) -> _Asked:
    """Read the parameters of a question."""
    given = dict(pairs)
    if len(given) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in given if names.count(name) > 1)
        raise wrong(twice, "it once", f"{names.count(twice)} times")
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            known = ", ".join(model.model_fields) or "no parameters"
            raise wrong(name, f"one of {known}", name) from None
        expected = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        raise wrong(name, expected, given.get(name, "")) from None


_Entry = dict[str, Any]


def cut(
    entries: Sequence[_Entry], query: PageQuery, key: Callable[[_Entry], str]
) -> dict[str, Any]:
    """Give the wanted page: ``items``, and the cursor of the ``next``; ``None`` behind the last.

    A cursor names an entry, not a place: what is new at the beginning of a list moves nothing.
    """
    start = 0
    if query.cursor:
        padded = query.cursor + "=" * (-len(query.cursor) % 4)
        try:
            named = base64.urlsafe_b64decode(padded).decode()
            start = list(map(key, entries)).index(named) + 1
        except ValueError:  # also of base64 and of UTF-8
            raise missing("cursor", "`next` of a page of this list", query.cursor) from None
    items = entries[start : start + query.limit]
    if start + len(items) == len(entries):
        return {"items": items, "next": None}
    last = base64.urlsafe_b64encode(key(items[-1]).encode())
    return {"items": items, "next": last.decode().rstrip("=")}
