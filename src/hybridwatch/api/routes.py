"""Everything that is served: one table, of which the description and the server are made."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from hybridwatch.analysis.wording.report_json import ReportAnswer
from hybridwatch.api import answers, endpoints, queries, writes
from hybridwatch.api.view import Snapshot, StoreView
from hybridwatch.database.tokens import Scope
from hybridwatch.records.fields import MOST_BULK_BYTES, MOST_RECORD_BYTES
from hybridwatch.reports.jsonform import AlertItem

PREFIX: Final = "/v1"
JSON: Final = "application/json"
FORM: Final = "multipart/form-data"
_MOST_DECISION: Final = 2**16
"""Bytes; a text of 4,000 characters, each written as an escape, is less."""


@dataclass(frozen=True, slots=True)
class Route:
    """One question.

    Attributes:
        path: Below the prefix; names in braces are given to ``answer``.
        answer: Makes the answer: of the store, the names in the path, and the parameters; as
            plain values, or as JSON where it lies ready.
        query: What may be asked.
        schema: What is answered.
        stamp: Of the store and the names in the path: what changes when the answer does. It costs
            little, and comes before the answer is made.
        refusals: What else may be answered, beside what every question may get.
        scope: What a token has to allow.
    """

    path: str
    answer: Callable[[Snapshot, endpoints.Named, Any], dict[str, Any] | bytes]
    query: type[queries.Nothing]
    schema: type[BaseModel]
    stamp: Callable[[Snapshot, endpoints.Named], str] = lambda store, _: store.index.stamp
    refusals: tuple[int, ...] = ()
    scope: Scope = Scope.READ

    @property
    def summary(self) -> str:
        """What it does, in a line."""
        return (self.answer.__doc__ or "").partition("\n")[0]


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


@dataclass(frozen=True, slots=True)
class Write:
    """One thing that can be done.

    Attributes:
        path: Below the prefix; names in braces are given to ``handler``.
        handler: Does it: to the store, the names in the path, and what was given.
        upload: What comes with the request.
        content: Schemas of what is JSON of it.
        schema: What is answered.
        scope: What a token has to allow.
        done: How it may end well.
        refusals: What else may be answered, beside what every write may get.
    """

    path: str
    handler: Callable[[StoreView, endpoints.Named, writes.Given], writes.Done]
    upload: Upload
    content: Mapping[str, type[BaseModel] | dict[str, Any]]
    schema: type[BaseModel]
    scope: Scope
    done: tuple[int, ...]
    refusals: tuple[int, ...]

    @property
    def summary(self) -> str:
        """What it does, in a line."""
        return (self.handler.__doc__ or "").partition("\n")[0]


ROUTES: Final = (
    Route("/runs", endpoints.runs, queries.RunsQuery, answers.RunPage, refusals=(404,)),
    Route("/runs/{run}", endpoints.run, queries.Nothing, answers.RunItem, refusals=(404,)),
    Route(
        "/runs/{run}/report",
        endpoints.report,
        queries.Nothing,
        ReportAnswer,
        stamp=lambda store, named: store.index.read_stamp(endpoints.run(store, named)["record"]),
        refusals=(404, 409),
    ),
    Route("/series", endpoints.series, queries.SeriesQuery, answers.SeriesPage, refusals=(404,)),
    Route(
        "/series/{series}",
        endpoints.levels,
        queries.LevelsQuery,
        answers.LevelPage,
        refusals=(404,),
    ),
    Route(
        "/alerts",
        endpoints.alerts,
        queries.AlertsQuery,
        answers.AlertPage,
        stamp=lambda store, _: store.alerts().stamp,
        refusals=(404,),
    ),
    Route(
        "/alerts/{alert}",
        endpoints.alert,
        queries.Nothing,
        AlertItem,
        stamp=lambda store, _: store.alerts().stamp,
        refusals=(404,),
    ),
)
WRITES: Final = (
    Write(
        "/runs",
        writes.add_run,
        Upload({writes.RECORD: MOST_RECORD_BYTES, writes.BULK: MOST_BULK_BYTES}),
        {writes.RECORD: {"type": "object", "description": "A record, byte for byte."}},
        answers.RunItem,
        Scope.INGEST,
        done=(200, 201),
        refusals=(409,),
    ),
    Write(
        "/alerts/{alert}/decisions",
        writes.decide,
        Upload({writes.DECISION: _MOST_DECISION}),
        {writes.DECISION: writes.DecisionRequest},
        AlertItem,
        Scope.TRIAGE,
        done=(201,),
        refusals=(404, 409),
    ),
)
