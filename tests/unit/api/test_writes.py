"""Records that are added and alerts that are answered, each under the name of a token."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from hybridwatch.analysis import alert_decisions
from hybridwatch.api.routes import Upload
from hybridwatch.database.decisions import open_triage
from hybridwatch.database.tokens import Scope
from hybridwatch.records.codec import Encoded, encode
from hybridwatch.records.run import Run
from hybridwatch.records.store import list_records, read_run, write_run
from tests.builders import BASELINE, NIGHTLY, a_run
from tests.unit.api.serving import app_over, serving, token_for
from tests.unit.database.stores import add

NEW = "bbbbbbbb"
SMALL = Upload({"record": 2000, "bulk": 100})


pytestmark = pytest.mark.usefixtures("young")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    add(tmp_path, 1, builds=(BASELINE, NIGHTLY))
    add(tmp_path, 2, slower=1.3, builds=(BASELINE, NIGHTLY))
    return tmp_path


@pytest.fixture
def robot(results: Path) -> Iterator[httpx.Client]:
    with serving(app_over(results)) as client:
        client.headers.update(token_for(results, Scope.INGEST, Scope.TRIAGE))
        yield client


def one(number: float = 10.0) -> Run:
    return replace(a_run({"output_throughput": (number, 11.0)}), id=NEW)


def with_answers(results: Path) -> tuple[Run, Encoded]:
    """Give a run with a file of answers beside its record."""
    run = replace(read_run(list_records(results)[0]), id=NEW)
    encoded = encode(run)
    assert encoded.bulk is not None
    return run, encoded


def post(client: httpx.Client, record: bytes, kind: str = "application/json") -> httpx.Response:
    return client.post("/v1/runs", content=record, headers={"content-type": kind})


def form(client: httpx.Client, **files: bytes) -> httpx.Response:
    return client.post("/v1/runs", files={name: (name, some) for name, some in files.items()})


def test_a_record_is_added_once_and_is_there_at_once(robot, results) -> None:
    encoded = encode(one())
    made, again = post(robot, encoded.record), post(robot, encoded.record)
    assert (made.status_code, again.status_code) == (201, 200)
    assert made.headers["location"] == f"/v1/runs/{NEW}"
    assert made.json() == again.json() == robot.get(made.headers["location"]).json()
    (path,) = (path for path in list_records(results) if NEW in path.name)
    assert path.read_bytes() == encoded.record


def test_another_record_of_the_same_run_is_refused(robot, results) -> None:
    post(robot, encode(one()).record)
    before = {path: path.read_bytes() for path in list_records(results)}
    refused = post(robot, encode(one(12.0)).record)
    assert (refused.status_code, refused.json()["field"]) == (409, "id")
    assert {path: path.read_bytes() for path in list_records(results)} == before


def test_a_record_comes_with_its_answers(robot, results) -> None:
    run, encoded = with_answers(results)
    assert encoded.bulk is not None
    lacking = post(robot, encoded.record)
    assert (lacking.status_code, lacking.json()["field"]) == (422, "bulk")
    wrong = form(robot, record=encoded.record, bulk=b"no answers")
    assert wrong.status_code == 422
    assert "sha256" in wrong.json()["detail"]
    assert not [path for path in list_records(results) if NEW in path.name]
    assert form(robot, record=encoded.record, bulk=encoded.bulk).status_code == 201
    assert form(robot, record=encoded.record, bulk=encoded.bulk).status_code == 200
    (path,) = (path for path in list_records(results) if NEW in path.name)
    assert read_run(path) == run


def changed(record: bytes, **keys: Any) -> bytes:
    return json.dumps(json.loads(record) | keys).encode()


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (lambda record: record[:-10], ""),
        (lambda _: b"[]", ""),
        (lambda _: b"\xff", ""),
        (lambda record: changed(record, trials=1), "trials"),
        (lambda record: changed(record, surprise=1), "surprise"),
        (lambda record: changed(record, sha256=None), "sha256"),
        (lambda record: record.replace(b"10.0", b"99.0"), "sha256"),
    ],
)
def test_what_is_no_record_is_reported_where(robot, results, made, field) -> None:
    before = list_records(results)
    refused = post(robot, made(encode(one()).record))
    assert refused.status_code == 422
    assert refused.json().get("field", "") == field
    assert list_records(results) == before


def test_forms_that_are_none(robot, results) -> None:
    record = encode(one()).record
    for files in ({"bulk": b"x"}, {"record": record, "bulk": b"x"}, {"record": record, "x": b""}):
        assert form(robot, **files).status_code == 422
    assert post(robot, record, "multipart/form-data").status_code == 422
    assert post(robot, record, "multipart/form-data; boundary=x").status_code == 422
    assert post(robot, record, "text/plain").status_code == 415
    assert robot.post("/v1/runs?limit=1", content=record).status_code == 400
    assert not [path for path in list_records(results) if NEW in path.name]


def test_too_much_is_refused_whether_its_length_is_said_or_not(results, monkeypatch) -> None:
    from hybridwatch.api import routes

    small = tuple(
        replace(write, upload=SMALL) if write.path == "/runs" else write for write in routes.WRITES
    )
    monkeypatch.setattr("hybridwatch.api.app.WRITES", small)
    with serving(app_over(results)) as robot:
        robot.headers.update(token_for(results, Scope.INGEST))
        long = b"x" * 2001

        def in_pieces() -> Iterator[bytes]:
            yield long

        for content in (long, in_pieces()):
            refused = robot.post(
                "/v1/runs", content=content, headers={"content-type": "application/json"}
            )
            assert refused.status_code == 413
        assert form(robot, record=b"x", bulk=b"x" * 101).status_code == 413
        assert post(robot, b"x" * 2000).status_code == 422


def test_many_who_add_the_same_at_once_add_it_once(robot, results) -> None:
    record, begun = encode(one()).record, threading.Barrier(4)

    def send(_: int) -> int:
        begun.wait()
        return post(robot, record).status_code

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(send, range(4))) == [200, 200, 200, 201]
    assert len([path for path in list_records(results) if NEW in path.name]) == 1


def test_a_store_that_cannot_be_written_says_so(robot, results) -> None:
    (results / "records").rename(results / "aside")
    (results / "records").write_text("in the way")
    refused = post(robot, encode(one()).record)
    assert refused.status_code == 503
    assert str(results) not in refused.text


def test_who_has_no_such_scope_adds_and_answers_nothing(results) -> None:
    shown = token_for(results, Scope.READ)
    with serving(app_over(results)) as client:
        for path in ("/v1/runs", "/v1/alerts/x/decisions"):
            assert client.post(path, json={}).status_code == 401
            assert client.post(path, json={}, headers=shown).status_code == 403


def the_alert(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/v1/alerts", params={"limit": 1}).json()["items"][0]
    return found


def answer(client: httpx.Client, alert: dict[str, Any], **said: Any) -> httpx.Response:
    shown = {name: alert[name] for name in ("version", "newest_run_id")}
    return client.post(f"/v1/alerts/{alert['key']}/decisions", json=shown | said)


def test_an_alert_is_answered_under_the_name_of_the_token(robot, results) -> None:
    alert = the_alert(robot)
    made = answer(robot, alert, action="acknowledge", text="known")
    assert made.status_code == 201
    after = made.json()
    assert (after["status"], after["version"]) == ("acknowledged", 1)
    assert [(one["who"], one["text"]) for one in after["decisions"]] == [("robot", "known")]
    assert robot.get(made.headers["location"]).json() == after
    with open_triage(results) as triage:
        assert [entry.who for entry in triage.decisions()[alert["key"]].entries] == ["robot"]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"action": "mute", "until": "2026-12-01T00:00:00Z", "text": ""}, "muted"),
        ({"action": "accept", "text": "the new level"}, "closed"),
        ({"action": "assign", "text": "ada"}, "open"),
        ({"action": "link", "text": "https://github.com/a/b/issues/1"}, "open"),
        ({"action": "duplicate", "text": "0" * 32}, "closed"),
    ],
)
def test_every_kind_of_answer_is_that_of_the_dashboard(robot, monkeypatch, said, status) -> None:
    monkeypatch.setattr(alert_decisions, "LONGEST_MUTE", alert_decisions.LONGEST_MUTE * 100)
    if "until" in said:
        said = said | {"until": "2099-12-01T00:00:00Z"}
    assert answer(robot, the_alert(robot), **said).json()["status"] == status


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"action": "forgive", "text": "x"}, "action"),
        ({"text": "x"}, "action"),
        ({"action": "note", "text": ""}, "note"),
        ({"action": "note", "text": "a\x07"}, "note"),
        ({"action": "mute", "text": ""}, "mute"),
        ({"action": "mute", "until": "2026-12-01T00:00:00"}, "until"),
        ({"action": "mute", "until": "0001-01-01T00:00:00+14:00"}, "mute"),
        ({"action": "mute", "until": "9999-12-31T23:59:59-14:00"}, "mute"),
        ({"action": "note", "text": "x", "until": "2099-12-01T00:00:00Z"}, "until"),
        ({"action": "note", "text": "x", "version": "0"}, "version"),
        ({"action": "note", "text": "x", "who": "eve"}, "who"),
    ],
)
def test_an_answer_that_is_none_is_reported_where(robot, results, said, field) -> None:
    refused = answer(robot, the_alert(robot), **said)
    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert refused.json()["expected"]
    assert refused.json()["found"]
    with open_triage(results) as triage:
        assert triage.decisions() == {}


def test_an_alert_is_no_duplicate_of_itself(robot) -> None:
    alert = the_alert(robot)
    assert answer(robot, alert, action="duplicate", text=alert["key"]).status_code == 422


def test_who_was_overtaken_is_reported(robot, results) -> None:
    alert = the_alert(robot)
    answer(robot, alert, action="note", text="first")
    late = answer(robot, alert, action="note", text="second")
    assert (late.status_code, late.json()["field"]) == (409, "version")
    add(results, 3, slower=2.0, builds=(BASELINE, NIGHTLY))
    late = answer(robot, alert | {"version": 1}, action="acknowledge", text="as I saw it")
    assert (late.status_code, late.json()["field"]) == (409, "newest_run_id")
    assert answer(robot, the_alert(robot), action="note", text="third").status_code == 201


def test_no_alert_of_this_key(robot) -> None:
    alert = the_alert(robot) | {"key": "nobody"}
    assert answer(robot, alert, action="note", text="x").status_code == 404
    assert robot.get("/v1/alerts/nobody").status_code == 404


def test_an_answer_to_a_cause_is_kept_with_each_of_its_members(robot, results) -> None:
    run = read_run(list_records(results)[-1])
    there = replace(run, id=NEW, testbed=replace(run.testbed, id="h100"), sha256=None)
    write_run(results, there)
    alert = the_alert(robot)
    assert [one["testbed"] for one in alert["members"]] == [run.testbed.id, "h100"]
    after = answer(robot, alert, action="acknowledge", text="known").json()
    assert [one["status"] for one in after["members"]] == ["acknowledged"] * 2
    assert (after["version"], len(after["decisions"])) == (2, 1)
    for member in after["members"]:
        assert robot.get(f"/v1/alerts/{member['key']}").json() == after
    again = answer(robot, alert, action="note", text="too late")
    assert again.status_code == 409
