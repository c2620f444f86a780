"""The description is kept: requests made up from it, many of them wrong, against a real server."""

from collections.abc import Sequence
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from hybridwatch.api import endpoints, routes
from hybridwatch.api.routes import PREFIX, ROUTES
from tests.unit.api.serving import app_over, serving

EXAMPLES = 25


def check_all(address: str, names: dict[str, Sequence[str]]) -> int:
    """Hold a server against its own description.

    Args:
        address: Of the server.
        names: Ids that there are, by the name that paths give them; half of all requests get one.

    Returns:
        How many requests were sent.

    Raises:
        FailureGroup: It failed, or answered what is not described.
    """
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    sent = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()

        @hypothesis.settings(max_examples=EXAMPLES, database=None, deadline=None, derandomize=True)
        @hypothesis.given(case=operation.as_strategy(), known=hypothesis.strategies.data())
        def hold(case: Any, known: hypothesis.strategies.DataObject) -> None:
            nonlocal sent
            sent += 1
            for name, ids in names.items():
                if name in case.path_parameters and known.draw(hypothesis.strategies.booleans()):
                    case.path_parameters[name] = known.draw(hypothesis.strategies.sampled_from(ids))
            case.call_and_validate()

        hold()
    return sent


def titles(found: FailureGroup) -> set[str]:
    return {one.title for one in found.exceptions}


@pytest.fixture(scope="module")
def names(client) -> dict[str, Sequence[str]]:
    return {
        "run": [one["run_id"] for one in client.get("/v1/runs").json()["items"]],
        "series": [one["id"] for one in client.get("/v1/series").json()["items"]],
    }


def test_no_request_finds_an_error_or_an_answer_off_its_schema(client, names) -> None:
    assert check_all(str(client.base_url).rstrip("/"), names) >= EXAMPLES * len(ROUTES) / 2


def test_an_answer_off_its_schema_is_seen(store, names, monkeypatch) -> None:
    def planted(*asked: Any) -> dict[str, Any]:
        return endpoints.run(*asked) | {"failed_trials": "none"}

    changed = tuple(
        routes.Route(one.path, planted, one.query, one.schema, refusals=one.refusals)
        if one.path == "/runs/{run}"
        else one
        for one in ROUTES
    )
    monkeypatch.setattr("hybridwatch.api.app.ROUTES", changed)
    with serving(app_over(store)) as client, pytest.raises(FailureGroup) as caught:
        check_all(str(client.base_url).rstrip("/"), names)
    assert "Response violates schema" in titles(caught.value)
    assert f"{PREFIX}/runs/" in str(caught.value)


def test_a_server_error_is_seen(store, names, monkeypatch) -> None:
    monkeypatch.setattr("hybridwatch.api.endpoints.record_to_json", lambda _: 1 / 0)
    with serving(app_over(store)) as client, pytest.raises(FailureGroup) as caught:
        check_all(str(client.base_url).rstrip("/"), names)
    assert "Server error" in titles(caught.value)
