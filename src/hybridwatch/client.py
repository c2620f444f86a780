"""A client of the HTTP API (``docs/api.md``): answers as types, lists as iterators.

::

    with Client("http://127.0.0.1:8502", token) as client:
        for run in client.runs(role="comparison"):
            print(run.run_id, client.report(run.run_id).bad_news)

Needs the extra ``client``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from time import sleep
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from hybridwatch.analysis.alert_decisions import TriageAction
from hybridwatch.analysis.wording.report_json import ReportAnswer
from hybridwatch.api.answers import (
    AlertPage,
    LevelItem,
    LevelPage,
    Problem,
    RunItem,
    RunPage,
    SeriesItem,
    SeriesPage,
)
from hybridwatch.errors import ApiError
from hybridwatch.records.file_parts import name_bulk
from hybridwatch.reports.jsonform import AlertItem

_MOST: Final = 200
"""Items of a page: as many as the server gives."""
_SHOWN: Final = 200
"""Characters of an answer that is none of ours."""

_Answer = TypeVar("_Answer", bound=BaseModel)
_Page = TypeVar("_Page", RunPage, SeriesPage, LevelPage, AlertPage)


class RefusedError(ApiError):
    """The server refused."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.status} {problem.title}: {problem.detail}")
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Added:
    """A run that is in the store now."""

    run: RunItem
    is_new: bool


class Client:
    """Speaks to one server. Threads may share it.

    Every method raises ``RefusedError`` when the server refuses, and ``ApiError`` when there is no
    answer of ours. ``patience_s`` is how long a request may wait in all while the server has no
    room.
    """

    def __init__(
        self, address: str, token: str = "", *, timeout_s: float = 30.0, patience_s: float = 60.0
    ) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=address, headers=headers, timeout=timeout_s)
        self._patience_s = patience_s

    def runs(
        self, *, scenario: str = "", build: str = "", testbed: str = "", role: str = ""
    ) -> Iterator[RunItem]:
        """Yield runs, the newest first; the arguments choose as ``hybridwatch records`` does."""
        filters = {"scenario": scenario, "build": build, "testbed": testbed, "role": role}
        for page in self._pages("/runs", RunPage, filters):
            yield from page.items

    def run(self, run_id: str) -> RunItem:
        """Give one run."""
        return self._get(f"/runs/{_quoted(run_id)}", RunItem)

    def report(self, run_id: str) -> ReportAnswer:
        """Give every verdict of a run of two builds."""
        return self._get(f"/runs/{_quoted(run_id)}/report", ReportAnswer)

    def series(
        self, *, scenario: str = "", testbed: str = "", metric: str = "", statistic: str = ""
    ) -> Iterator[SeriesItem]:
        """Yield series."""
        where = {"scenario": scenario, "testbed": testbed}
        filters = {**where, "metric": metric, "statistic": statistic}
        for page in self._pages("/series", SeriesPage, filters):
            yield from page.items

    def levels(self, series_id: str, *, build: str = "") -> Iterator[LevelItem]:
        """Yield the points of a series, oldest first; ``build`` is how their labels begin."""
        for page in self._pages(f"/series/{_quoted(series_id)}", LevelPage, {"build": build}):
            yield from page.items

    def alerts(self, *, status: str = "", scenario: str = "") -> Iterator[AlertItem]:
        """Yield alerts, the most urgent first."""
        filters = {"status": status, "scenario": scenario}
        for page in self._pages("/alerts", AlertPage, filters):
            yield from page.items

    def alert(self, key: str) -> AlertItem:
        """Give one alert."""
        return self._get(f"/alerts/{_quoted(key)}", AlertItem)

    def add_run(self, record: bytes, bulk: bytes | None = None) -> Added:
        """Add a record; sent again, it is there already."""
        files = {"record": record} | ({} if bulk is None else {"bulk": bulk})
        answer = self._send(
            "POST", "/runs", files={name: (name, one) for name, one in files.items()}
        )
        return Added(_read(answer, RunItem), answer.status_code == HTTPStatus.CREATED)

    def add_file(self, record: Path) -> Added:
        """Add a record, and the file of answers next to it, if there is one."""
        beside = name_bulk(record)
        return self.add_run(record.read_bytes(), beside.read_bytes() if beside.exists() else None)

    def decide(
        self, alert: AlertItem, action: TriageAction, text: str = "", until: datetime | None = None
    ) -> AlertItem:
        """Answer an alert as it was shown; the server refuses (409) if it is another one by now."""
        header = {"action": action.value, "text": text, "until": until and until.isoformat()}
        shown = {"version": alert.version, "newest_run_id": alert.newest_run_id}
        path = f"/alerts/{_quoted(alert.key)}/decisions"
        return _read(self._send("POST", path, json=header | shown), AlertItem)

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _get(self, path: str, form: type[_Answer]) -> _Answer:
        return _read(self._send("GET", path), form)

    def _pages(self, path: str, form: type[_Page], filters: Mapping[str, str]) -> Iterator[_Page]:
        given = {name: value for name, value in filters.items() if value}
        cursor: str | None = ""
        while cursor is not None:
            params = {**given, "limit": _MOST, "cursor": cursor}
            page = _read(self._send("GET", path, params=params), form)
            yield page
            cursor = page.next

    def _send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        waited = 0.0
        while True:
            try:
                answer = self._http.request(method, f"/v1{path}", **parts)
            except httpx.HTTPError as error:
                raise ApiError(f"{self._http.base_url}: {error}") from error
            if answer.is_success:
                return answer
            header = answer.headers.get("retry-after", "")
            wait_s = float(header) if header.isdecimal() else None
            if wait_s is None or waited + wait_s > self._patience_s:
                raise _refused(answer)
            sleep(wait_s)
            waited += wait_s


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _read(answer: httpx.Response, form: type[_Answer]) -> _Answer:
    try:
        # A newer server may say more.
        return form.model_validate_json(answer.content, extra="ignore")
    except ValidationError as error:
        raise ApiError(f"{answer.url}: expected an answer of the API: {error}") from error


def _refused(answer: httpx.Response) -> ApiError:
    try:
        return RefusedError(Problem.model_validate_json(answer.content, extra="ignore"))
    except ValidationError:
        shown = answer.text[:_SHOWN]
        return ApiError(f"{answer.url}: {answer.status_code}: expected a problem, found {shown!r}")
