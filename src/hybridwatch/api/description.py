"""The description of everything that is served (OpenAPI 3.1), made of the routes."""

import re
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from hybridwatch.api.problem import MEDIA_TYPE, Problem
from hybridwatch.api.queries import Nothing
from hybridwatch.api.routes import PREFIX, ROUTES, Route
from hybridwatch.database.tokens import Scope

VERSION: Final = "1.0.0"
"""Of the prefix; fields and questions may be added, none is renamed or given another meaning."""
_AT: Final = "#/components/schemas/{model}"
_ALWAYS: Final = (400, 401, 403, 421, 503)
_TOKEN: Final = "token"
_SCHEME: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "Made by `hybridwatch token make`; its scopes are read, ingest and triage.",
}
_TAG: Final = {"ETag": {"description": "Of If-None-Match.", "schema": {"type": "string"}}}


def describe(is_open: Callable[[Scope], bool]) -> dict[str, Any]:
    """Give the description as plain values.

    Args:
        is_open: Whether anybody may ask what needs this scope, without a token.
    """
    models: list[type[BaseModel]] = [*(route.schema for route in ROUTES), Problem]
    # As they are read: what has a default may be absent.
    _, found = models_json_schema([(model, "validation") for model in models], ref_template=_AT)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hybridwatch",
            "version": VERSION,
            "description": "Stored runs, their verdicts, series of metrics, and alerts.",
        },
        "paths": {f"{PREFIX}{route.path}": {"get": _operation(route, is_open)} for route in ROUTES},
        "components": {"schemas": found["$defs"], "securitySchemes": {_TOKEN: _SCHEME}},
    }


def _operation(route: Route, is_open: Callable[[Scope], bool]) -> dict[str, Any]:
    refused = {str(status): _refusal(status) for status in sorted({*_ALWAYS, *route.refusals})}
    return {
        "operationId": route.answer.__name__,
        "summary": route.summary,
        # Nothing is a way in, too, where anybody may ask; a wrong token is refused all the same.
        "security": [{_TOKEN: [route.scope.value]}, *([{}] if is_open(route.scope) else [])],
        "parameters": [*_in_path(route.path), *_in_query(route.query), _CONDITION],
        "responses": {
            "200": {
                "description": "The answer.",
                "headers": _TAG,
                "content": {"application/json": {"schema": _ref(route.schema.__name__)}},
            },
            "304": {"description": "Nothing has changed since.", "headers": _TAG},
            **refused,
        },
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
    properties: Mapping[str, Any] = (
        model.model_json_schema()["properties"] if model.model_fields else {}
    )
    for name, schema in properties.items():
        kept = {key: value for key, value in schema.items() if key not in {"title", "description"}}
        if "enum" in kept:
            del kept["default"]  # nothing is asked for
        yield {
            "name": name,
            "in": "query",
            "required": False,
            "description": schema["description"],
            "schema": kept,
        }


def _refusal(status: int) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": _ref(Problem.__name__)}}
    return {"description": HTTPStatus(status).phrase, "content": content}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _AT.format(model=name)}
