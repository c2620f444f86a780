"""All that is served: one table, of which the description (OpenAPI 3.1) and the server are made."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from hybridwatch.analysis.wording.report_json import ReportAnswer
from hybridwatch.api import answers, endpoints, queries
from hybridwatch.api.answers import Problem
from hybridwatch.api.queries import MEDIA_TYPE, Nothing
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
    """One question, at a path whose names in braces are given to ``answer``.

    ``stamp`` changes when the answer does, and costs little. ``refusals`` are those of this one.
    """

    path: str
    answer: Callable[[Snapshot, endpoints.Named, Any], dict[str, Any] | bytes]
    query: type[queries.Nothing]
    schema: type[BaseModel]
    stamp: Callable[[Snapshot, endpoints.Named], str] = lambda store, _: store.index.stamp
    refusals: tuple[int, ...] = (404,)


@dataclass(frozen=True, slots=True)
class Upload:
    """The most bytes of each file of a form, by name; the first may come alone, as JSON."""

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
    """One thing that can be done; ``content`` has schemas of its JSON, ``done`` how it may end."""

    path: str
    handler: Callable[[StoreView, endpoints.Named, str, endpoints.Files], endpoints.Done]
    upload: Upload
    content: Mapping[str, type[BaseModel] | dict[str, Any]]
    schema: type[BaseModel]
    scope: Scope
    done: tuple[int, ...]
    refusals: tuple[int, ...]


def _stamp_alerts(store: Snapshot, _: endpoints.Named) -> str:
    return store.alerts().stamp


ROUTES: Final = (
    Route("/runs", endpoints.runs, queries.RunsQuery, answers.RunPage),
    Route("/runs/{run}", endpoints.run, queries.Nothing, answers.RunItem),
    Route(
        "/runs/{run}/report",
        endpoints.report,
        queries.Nothing,
        ReportAnswer,
        lambda store, named: store.index.read_stamp(endpoints.run(store, named)["record"]),
        refusals=(404, 409),
    ),
    Route("/series", endpoints.series, queries.SeriesQuery, answers.SeriesPage),
    Route("/series/{series}", endpoints.levels, queries.LevelsQuery, answers.LevelPage),
    Route("/alerts", endpoints.alerts, queries.AlertsQuery, answers.AlertPage, _stamp_alerts),
    Route("/alerts/{alert}", endpoints.alert, queries.Nothing, AlertItem, _stamp_alerts),
)
WRITES: Final = (
    Write(
        "/runs",
        endpoints.add_run,
        Upload({endpoints.RECORD: MOST_RECORD_BYTES, endpoints.BULK: MOST_BULK_BYTES}),
        {endpoints.RECORD: {"type": "object", "description": "A record, byte for byte."}},
        answers.RunItem,
        Scope.INGEST,
        done=(200, 201),
        refusals=(409,),
    ),
    Write(
        "/alerts/{alert}/decisions",
        endpoints.decide,
        Upload({endpoints.DECISION: _MOST_DECISION}),
        {endpoints.DECISION: endpoints.DecisionRequest},
        AlertItem,
        Scope.TRIAGE,
        done=(201,),
        refusals=(404, 409),
    ),
)


VERSION: Final = "1.0.0"
"""Of the prefix; fields and questions may be added, none is renamed or given another meaning."""
_AT: Final = "#/components/schemas/{model}"
_ALWAYS: Final = (400, 401, 403, 421, 429, 503)
_WRITES_TOO: Final = (413, 415, 422)
_DONE: Final = {200: "It was there already.", 201: "It is there now."}
_LOCATION: Final = {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}
_BEARER: Final = "token"
_SCHEME: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "Made by `hybridwatch token make`; its scopes are read, ingest and triage.",
}
_TAG: Final = {"ETag": {"description": "Of If-None-Match.", "schema": {"type": "string"}}}


def describe(*, reads_need_one: bool) -> dict[str, Any]:
    """Give the description as plain values."""
    models: list[type[BaseModel]] = [*(one.schema for one in (*ROUTES, *WRITES)), Problem]
    models += [one for write in WRITES for one in write.content.values() if isinstance(one, type)]
    # As they are read: what has a default may be absent.
    _, found = models_json_schema([(model, "validation") for model in models], ref_template=_AT)
    for one in found["$defs"].values():
        # What each attribute means is in docs/json.md. An older pydantic leaves dataclasses bare.
        if "description" in one:
            one["description"] = one["description"].partition("\n\nAttributes:")[0]
    paths: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for route in ROUTES:
        paths[f"{PREFIX}{route.path}"]["get"] = _operation(route, reads_need_one=reads_need_one)
    for write in WRITES:
        paths[f"{PREFIX}{write.path}"]["post"] = _writing(write)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hybridwatch",
            "version": VERSION,
            "description": "Stored runs, their verdicts, series of metrics, and alerts.",
        },
        "paths": dict(paths),
        "components": {"schemas": found["$defs"], "securitySchemes": {_BEARER: _SCHEME}},
    }


def _operation(route: Route, *, reads_need_one: bool) -> dict[str, Any]:
    return {
        "operationId": route.answer.__name__,
        "summary": _summarize(route.answer),
        # Nothing is a way in, too, where anybody may ask; a wrong token is refused all the same.
        "security": [{_BEARER: [Scope.READ.value]}, *([] if reads_need_one else [{}])],
        "parameters": [*_in_path(route.path), *_in_query(route.query), _CONDITION],
        "responses": {
            "200": {
                "description": "The answer.",
                "headers": _TAG,
                "content": {"application/json": {"schema": _ref(route.schema.__name__)}},
            },
            "304": {"description": "Nothing has changed since.", "headers": _TAG},
            **_refusals(*_ALWAYS, *route.refusals),
        },
    }


def _writing(write: Write) -> dict[str, Any]:
    content = {"application/json": {"schema": _ref(write.schema.__name__)}}
    done = {"headers": _LOCATION, "content": content}
    return {
        "operationId": write.handler.__name__,
        "summary": _summarize(write.handler),
        "security": [{_BEARER: [write.scope.value]}],
        "parameters": [*_in_path(write.path)],
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": _body(write, kind)} for kind in write.upload.kinds},
        },
        "responses": {
            **{str(status): {"description": _DONE[status], **done} for status in write.done},
            **_refusals(*_ALWAYS, *_WRITES_TOO, *write.refusals),
        },
    }


def _summarize(function: Callable[..., object]) -> str:
    return (function.__doc__ or "").partition("\n")[0]


def _body(write: Write, kind: str) -> dict[str, Any]:
    alone = write.upload.alone
    if kind == JSON:
        one = write.content[alone]
        return _ref(one.__name__) if isinstance(one, type) else one
    files = {name: {"type": "string", "format": "binary"} for name in write.upload.parts}
    return {
        "type": "object",
        "properties": files,
        "required": [alone],
        "additionalProperties": False,
    }


_CONDITION: Final = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "`ETag` of an answer that is at hand.",
    "schema": {"type": "string"},
}


def _in_path(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", path):
        schema = {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(model: type[Nothing]) -> Iterator[dict[str, Any]]:
    for name, schema in model.model_json_schema()["properties"].items():
        kept = {key: value for key, value in schema.items() if key not in {"title", "description"}}
        if "enum" in kept:
            del kept["default"]  # empty for any
        yield {
            "name": name,
            "in": "query",
            "required": False,
            "description": schema["description"],
            "schema": kept,
        }


def _refusals(*statuses: int) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": _ref(Problem.__name__)}}
    return {
        str(status): {"description": HTTPStatus(status).phrase, "content": content}
        for status in sorted({*statuses})
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _AT.format(model=name)}
