"""The client against the real server, over SQLite and PostgreSQL."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from hybridwatch import client as module
from hybridwatch.analysis.alert_decisions import TriageAction
from hybridwatch.api.routes import ROUTES, WRITES
from hybridwatch.client import Client, RefusedError
from hybridwatch.database.connection import DATABASE_FILE, DATABASE_VARIABLE
from hybridwatch.database.tokens import Scope, open_tokens
from hybridwatch.errors import ApiError
from hybridwatch.records.codec import encode
from hybridwatch.records.store import list_records, read_run, write_run
from tests.builders import BASELINE, NIGHTLY, a_run
from tests.postgres import MISSING, running, schema_of
from tests.unit.api.serving import app_over, serving, token_for
from tests.unit.api.test_answers import said
from tests.unit.database.stores import add


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 2)


@contextmanager
def speaking(results: Path, *scopes: Scope, **how: Any) -> Iterator[Client]:
    shown = token_for(results, *scopes)["authorization"].removeprefix("Bearer ")
    with serving(app_over(results, **how)) as http, Client(str(http.base_url), shown) as client:
        yield client


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for number in range(1, 4):
        add(tmp_path, number, slower=1.3 if number == 3 else 1.0, builds=(BASELINE, NIGHTLY))
    return tmp_path


def plain(answer: Any) -> Any:
    return json.loads(answer.model_dump_json(exclude_unset=True))


def as_sent(document: Any) -> Any:
    """Write times as pydantic does."""
    return json.loads(json.dumps(document).replace("+00:00", "Z"))


def test_it_reads_what_there_is_page_by_page(results) -> None:
    with speaking(results, Scope.READ, reads_need_one=True) as client:
        runs = list(client.runs())
        listed = said("records", "--all", "--json", "--results", str(results))["records"]
        assert [run.run_id for run in runs] == [one["run_id"] for one in listed]
        assert list(client.runs(build="nobody")) == []
        assert client.run(runs[0].run_id) == runs[0]
        wanted = said("compare", runs[0].run_id, "--json", "--results", str(results))
        assert plain(client.report(runs[0].run_id)) == as_sent(wanted)
        series = list(client.series())
        assert len(series) > 2
        (one,) = client.series(metric="ttft", statistic="median")
        assert one in series
        assert len(list(client.levels(one.id))) == 2 * one.runs
        alerts = list(client.alerts(status="open"))
        assert alerts
        assert client.alert(alerts[0].key) == alerts[0]


def test_it_adds_records_with_and_without_answers(results, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    run = replace(read_run(list_records(results)[0]), id="bbbbbbbb")
    record = write_run(elsewhere, run)
    bare = replace(a_run({"output_throughput": (10.0, 11.0)}), id="cccccccc")
    with speaking(results, Scope.INGEST) as client:
        assert client.add_file(record).is_new
        assert not client.add_file(record).is_new
        assert client.add_run(encode(bare).record).run.run_id == bare.id
    kept = [path for path in list_records(results) if run.id in path.name]
    assert [read_run(path) for path in kept] == [run]


def test_it_answers_an_alert_as_it_was_shown(results) -> None:
    with speaking(results, Scope.READ, Scope.TRIAGE) as client:
        alert = next(client.alerts())
        after = client.decide(alert, TriageAction.ACKNOWLEDGE, "known")
        assert (after.status.value, after.decisions[-1].who) == ("acknowledged", "robot")
        with pytest.raises(RefusedError) as refused:
            client.decide(alert, TriageAction.NOTE, "too late")
        assert (refused.value.problem.status, refused.value.problem.field) == (409, "version")


def test_what_is_refused_is_an_error_with_the_problem(results) -> None:
    with speaking(results, Scope.READ) as client:
        for ask, status in (
            (lambda: client.run("no/body"), 404),
            (lambda: next(client.runs(role="nobody")), 400),
            (lambda: client.add_run(b"{}"), 403),
        ):
            with pytest.raises(RefusedError) as refused:
                ask()
            assert refused.value.problem.status == status
            assert refused.value.problem.detail in str(refused.value)


def test_nobody_there_is_an_error_of_ours() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(ApiError, match=r"127\.0\.0\.1:9"):
        client.run("x")


def answering(client: Client, *answers: httpx.Response) -> list[httpx.Request]:
    """Have a client get these answers, one after the other."""
    left, seen = list(answers), list[httpx.Request]()

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return left.pop(0)

    client.close()
    client._http = httpx.Client(base_url="http://x", transport=httpx.MockTransport(answer))
    return seen


def test_it_waits_as_long_as_it_is_reported_and_no_longer(results, monkeypatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("hybridwatch.client.sleep", waits.append)
    with speaking(results, Scope.READ) as client:
        found = client.run(next(client.runs()).run_id)
        busy = [httpx.Response(429, headers={"retry-after": wait}) for wait in ("3", "4")]
        answering(client, *busy, httpx.Response(200, content=found.model_dump_json()))
        assert client.run(found.run_id) == found
        assert waits == [3.0, 4.0]
        answering(client, httpx.Response(429, headers={"retry-after": "3600"}))
        with pytest.raises(ApiError, match="429"):
            client.run(found.run_id)
        assert waits == [3.0, 4.0]


def test_a_newer_server_may_say_more_and_a_stranger_nothing_of_ours(results) -> None:
    with speaking(results, Scope.READ) as client:
        alert = next(client.alerts())
        more = plain(alert) | {"more": 1, "parts": [plain(alert.parts[0]) | {"more": 1}]}
        answering(client, httpx.Response(200, json=more), httpx.Response(200, text="<html>"))
        assert client.alert(alert.key).key == alert.key
        with pytest.raises(ApiError, match="expected an answer of the API"):
            client.alert(alert.key)


def test_it_asks_everything_that_there_is_to_ask() -> None:
    given = {route.answer.__name__ for route in ROUTES} | {one.handler.__name__ for one in WRITES}
    assert given - set(dir(Client)) == set()


@pytest.fixture
def results_on_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store whose database is on a server, in a schema of its own."""
    with running() as server:
        if server is None:
            pytest.skip(MISSING)
        with schema_of(server) as url:
            monkeypatch.setenv(DATABASE_VARIABLE, url)
            add(tmp_path, 1, builds=(BASELINE, NIGHTLY))
            add(tmp_path, 2, slower=1.3, builds=(BASELINE, NIGHTLY))
            yield tmp_path
            assert not (tmp_path / DATABASE_FILE).exists()


def test_everything_is_there_and_can_be_done(young, results_on_server) -> None:
    shown = token_for(results_on_server, *Scope)["authorization"].removeprefix("Bearer ")
    app = app_over(results_on_server, reads_need_one=True)
    with serving(app) as http, Client(str(http.base_url), shown) as client:
        assert client.report(next(client.runs()).run_id).bad_news
        series = next(client.series(metric="ttft"))
        assert len(list(client.levels(series.id))) == 2 * series.runs
        record = encode(replace(a_run({"ttft": (1.0, 2.0)}), id="bbbbbbbb")).record
        assert [client.add_run(record).is_new for _ in range(2)] == [True, False]
        alert = next(client.alerts())
        assert client.decide(alert, TriageAction.NOTE, "seen").decisions[-1].who == "robot"
        with pytest.raises(RefusedError, match="409"):
            client.decide(alert, TriageAction.NOTE, "too late")
        (token,) = open_tokens(results_on_server).by_digest().values()
        assert token.used_at is not None
        open_tokens(results_on_server).revoke("robot", token.used_at)
        with pytest.raises(RefusedError, match="401"):
            next(client.runs())
