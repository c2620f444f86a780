"""The description is kept: requests made up from it, many of them wrong, against a real server."""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
import schemathesis
from hypothesis.strategies import DataObject, booleans, data, sampled_from
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from hybridwatch.api.routes import PREFIX, ROUTES, WRITES
from hybridwatch.database.tokens import Scope
from hybridwatch.records.codec import encode
from tests.builders import a_run
from tests.unit.api.serving import app_over, serving, token_for

EXAMPLES = 25
ALWAYS = [not_a_server_error, status_code_conformance, response_schema_conformance]
"""What holds of every answer, also to a body that was not made up."""
UNFIT = ["2xx", 401, 403, 404, 409, 422]
"""What may be said to a request that is as described: a record has rules that no schema has."""


@dataclass
class Known:
    """What there is, so that not every request names something else.

    Attributes:
        names: Ids, by the name that paths give them; half of all requests get one.
        bodies: By operation; half of its requests get one.
        shown: Headers of every request.
    """

    names: dict[str, Sequence[str]]
    bodies: dict[str, Sequence[bytes]] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)

    def send(self, case: Any, drawn: DataObject) -> int:
        """Send a request, hold the answer against the description, and give its status."""
        for name, ids in self.names.items():
            if name in case.path_parameters and drawn.draw(booleans()):
                case.path_parameters[name] = drawn.draw(sampled_from(ids))
        bodies = self.bodies.get(_name_of(case.operation), [])
        if not bodies or not drawn.draw(booleans()):
            return int(case.call_and_validate(headers=self.shown).status_code)
        return self._send_body(case, drawn.draw(sampled_from(bodies)))

    def send_all(self, operation: Any) -> list[int]:
        """Ask for what there is: no draw decides whether such a request arrives.

        Every body is sent twice, and after them one that fits no description.
        """
        case = operation.Case(path_parameters={name: ids[0] for name, ids in self.names.items()})
        bodies = self.bodies.get(_name_of(operation), [])
        if bodies:
            return [self._send_body(case, body) for body in (*bodies, *bodies, b"{}")]
        response = case.call(headers=self.shown)
        case.validate_response(response, checks=ALWAYS)
        return [int(response.status_code)]

    def _send_body(self, case: Any, body: bytes) -> int:
        case.media_type, case.body = "application/json", {}
        kind = {"content-type": "application/json"}
        response = case.call(headers=self.shown | kind, json=None, data=body)
        case.validate_response(response, checks=ALWAYS)
        return int(response.status_code)


def _name_of(operation: Any) -> str:
    return str(operation.definition.raw["operationId"])


def check_all(address: str, known: Known) -> dict[str, list[int]]:
    """Hold a server against its own description; gives every status, by operation."""
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    schema.config.checks.positive_data_acceptance.expected_statuses = [str(one) for one in UNFIT]
    seen: dict[str, list[int]] = {}
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        seen[_name_of(operation)] = known.send_all(operation) + _all_of(operation, known)
    return seen


def _all_of(operation: Any, known: Known) -> list[int]:
    statuses: list[int] = []

    @hypothesis.settings(max_examples=EXAMPLES)
    @hypothesis.given(case=operation.as_strategy(), drawn=data())
    def hold(case: Any, drawn: DataObject) -> None:
        statuses.append(known.send(case, drawn))

    hold()
    return statuses


def titles(found: FailureGroup) -> set[str]:
    return {one.title for one in found.exceptions}


@pytest.fixture
def results(store: Path, tmp_path: Path) -> Path:
    """A store of its own: it is written to."""
    return Path(shutil.copytree(store, tmp_path / "results"))


def address_of(client: httpx.Client) -> str:
    return str(client.base_url).rstrip("/")


def known_at(client: httpx.Client, results: Path) -> Known:
    # Of decisions the first is a version ahead: refused until the second has made it the newest.
    alert = client.get("/v1/alerts").json()["items"][0]
    runs = [replace(a_run({"ttft": (float(n), 2.0)}), id=f"c000000{n}") for n in range(1, 4)]
    return Known(
        {
            "run": [one["run_id"] for one in client.get("/v1/runs").json()["items"]],
            "series": [one["id"] for one in client.get("/v1/series").json()["items"]],
            "alert": [alert["key"]],
        },
        {
            "add_run": [encode(run).record for run in runs],
            "decide": [decision(alert, alert["version"] + more) for more in (1, 0)],
        },
        token_for(results, *Scope, name="schemathesis"),
    )


def decision(alert: dict[str, Any], version: int) -> bytes:
    shown = {"version": version, "newest_run_id": alert["newest_run_id"]}
    return json.dumps(shown | {"action": "note", "text": "seen"}).encode()


@pytest.fixture
def server(results: Path) -> Iterator[httpx.Client]:
    with serving(app_over(results)) as client:
        yield client


def test_no_request_finds_an_error_or_an_answer_off_its_schema(server, results) -> None:
    seen = check_all(address_of(server), known_at(server, results))
    assert len(seen) == len(ROUTES) + len(WRITES)
    assert sum(map(len, seen.values())) >= EXAMPLES * len(seen) / 2
    assert seen["add_run"][:7] == [201, 201, 201, 200, 200, 200, 422]
    assert seen["decide"][:5] == [409, 201, 201, 409, 422]


@pytest.mark.parametrize("path", ["/runs/{run}", "/alerts/{alert}"])
def test_an_answer_off_its_schema_is_seen(results, path, monkeypatch) -> None:
    right = {route.path: route.answer for route in ROUTES}[path]

    def planted(*asked: Any) -> dict[str, Any]:
        answer = right(*asked)
        assert isinstance(answer, dict)
        return answer | {"scenario": 1}

    changed = tuple(replace(one, answer=planted) if one.path == path else one for one in ROUTES)
    monkeypatch.setattr("hybridwatch.api.app.ROUTES", changed)
    with serving(app_over(results)) as client, pytest.raises(FailureGroup) as caught:
        check_all(address_of(client), known_at(client, results))
    assert "Response violates schema" in titles(caught.value)
    assert f"{PREFIX}{path.partition('{')[0]}" in str(caught.value)


def test_an_answer_to_a_write_off_its_schema_is_seen(results, monkeypatch) -> None:
    def planted(*given: Any) -> Any:
        done = WRITES[0].handler(*given)
        return replace(done, content=done.content | {"failed_trials": "none"})

    changed = (replace(WRITES[0], handler=planted), *WRITES[1:])
    monkeypatch.setattr("hybridwatch.api.app.WRITES", changed)
    with serving(app_over(results)) as client, pytest.raises(FailureGroup) as caught:
        check_all(address_of(client), known_at(client, results))
    assert "Response violates schema" in titles(caught.value)


@pytest.mark.parametrize("broken", ["database.moment.unpacked", "api.endpoints.take_in"])
def test_a_server_error_is_seen(results, broken, monkeypatch) -> None:
    monkeypatch.setattr(f"hybridwatch.{broken}", lambda *_: 1 / 0)
    with serving(app_over(results)) as client, pytest.raises(FailureGroup) as caught:
        check_all(address_of(client), known_at(client, results))
    assert "Server error" in titles(caught.value)
