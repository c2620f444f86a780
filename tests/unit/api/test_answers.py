"""What the API answers is what the verbs print, and what the description promises."""

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from hybridwatch.api.answers import Problem
from hybridwatch.api.queries import MOST
from hybridwatch.api.routes import describe
from hybridwatch.database.decisions import open_triage
from hybridwatch.database.queries import open_index
from hybridwatch.history.alerts import find_alerts
from hybridwatch.history.checkout import Checkout
from tests.builders import BASELINE, NIGHTLY
from tests.command_line import run_verb
from tests.shipped import ROOT
from tests.unit.analysis.alerts.builders import acknowledge
from tests.unit.api.conftest import ALONE, NOW
from tests.unit.api.serving import app_over, serving
from tests.unit.database.stores import add


def said(*words: str) -> Any:
    answer = run_verb(*words)
    assert answer.exit_code in {0, 1}, answer.output
    return json.loads(answer.stdout)


def get(client: httpx.Client, path: str, **asked: Any) -> Any:
    answer = client.get(f"/v1/{path}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def everything(client: httpx.Client, path: str, **asked: Any) -> list[Any]:
    """Read every page of a list, a short one at a time."""
    found = []
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        page = get(client, path, cursor=page["next"], limit=2, **asked)
        assert 0 < len(page["items"]) <= 2
        found += page["items"]
    return found


def problem(answer: httpx.Response, status: int) -> Problem:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = Problem.model_validate_json(answer.text)
    assert found.status == status
    return found


def test_runs_are_those_of_records(client, store) -> None:
    listed = said("records", "--all", "--json", "--results", str(store))["records"]
    for one in listed:
        one["record"] = str(Path(one["record"]).relative_to(store))
    assert everything(client, "runs") == listed
    assert get(client, f"runs/{listed[0]['run_id']}") == listed[0]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"role": "alone"}, ["--role", "alone"]),
        ({"role": "comparison"}, ["--role", "comparison"]),
        ({"build": "night"}, ["--build", "night"]),
        ({"scenario": "smoke"}, ["--scenario", "smoke"]),
        ({"testbed": "epyc"}, ["--testbed", "epyc"]),
    ],
)
def test_runs_are_chosen_as_records_chooses(client, store, wanted, words) -> None:
    listed = said("records", "--all", "--json", "--results", str(store), *words)["records"]
    assert listed
    found = get(client, "runs", **wanted)["items"]
    assert [one["run_id"] for one in found] == [one["run_id"] for one in listed]


def test_a_report_is_that_of_compare(client, store) -> None:
    for one in get(client, "runs", role="comparison")["items"]:
        name = one["run_id"]
        wanted = said("compare", name, "--json", "--results", str(store))
        assert get(client, f"runs/{name}/report") == wanted


def test_a_run_of_one_build_has_no_report(client) -> None:
    assert "build" in problem(client.get(f"/v1/runs/{ALONE}/report"), 409).detail


def test_a_series_has_the_medians_of_each_side(client) -> None:
    found = get(client, "series", statistic="median")["items"]
    points = {one["id"]: everything(client, f"series/{one['id']}") for one in found}
    (alone,) = (point for many in points.values() for point in many if point["run_id"] == ALONE)
    assert (alone["value"], alone["n"]) == (10.5, 2)
    for one in found:
        mine = points[one["id"]]
        assert len({point["run_id"] for point in mine}) == one["runs"]
        assert [point["started_at"] for point in mine] == sorted(p["started_at"] for p in mine)


def test_a_series_can_be_that_of_one_build(client) -> None:
    (one,) = get(client, "series", metric="ttft", statistic="median")["items"]
    points = get(client, f"series/{one['id']}")["items"]
    newer = get(client, f"series/{one['id']}", build="night")["items"]
    assert newer == [point for point in points if point["side"] == 1]
    assert 0 < len(newer) < len(points)


def test_an_alert_says_what_somebody_did(client) -> None:
    (alert,) = get(client, "alerts", status="acknowledged")["items"]
    (decision,) = alert["decisions"]
    assert (decision["who"], decision["text"]) == ("ada", "known since 0.28")
    assert alert["parts"][0]["verdict"] == "regression"
    assert alert["key"] not in {one["key"] for one in get(client, "alerts", status="open")["items"]}


def test_what_is_unchanged_is_not_sent_again(client) -> None:
    for path in ("/openapi.json", "/v1/runs", "/v1/series", "/v1/alerts"):
        first = client.get(path)
        tag = first.headers["etag"]
        again = client.get(path, headers={"if-none-match": f'"other", W/{tag}'})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
        assert client.get(path, headers={"if-none-match": '"other"'}).content == first.content


def test_what_was_sent_before_is_not_made_again(store, monkeypatch) -> None:
    with serving(app_over(store)) as client:
        name = get(client, "runs", role="comparison", limit=1)["items"][0]["run_id"]
        tag = client.get(f"/v1/runs/{name}/report").headers["etag"]
        monkeypatch.setattr("hybridwatch.api.endpoints.judge", lambda *_: pytest.fail("judged"))
        for known, status in (({"if-none-match": tag}, 304), ({}, 200)):
            answer = client.get(f"/v1/runs/{name}/report", headers=known)
            assert (answer.status_code, answer.headers["etag"]) == (status, tag)


def test_a_decision_changes_the_tag_of_alerts_alone(young, tmp_path) -> None:
    for number in range(1, 3):
        add(tmp_path, number, slower=1.3, builds=(BASELINE, NIGHTLY))
    with serving(app_over(tmp_path)) as client:
        before = {path: client.get(path).headers["etag"] for path in ("/v1/alerts", "/v1/runs")}
        (alert, *_) = find_alerts(tmp_path, open_index(tmp_path), Checkout(), NOW)
        with open_triage(tmp_path) as triage:
            triage.decide(alert, acknowledge("seen"), "ada", NOW)
        after = {path: client.get(path).headers["etag"] for path in before}
        assert after["/v1/runs"] == before["/v1/runs"]
        assert after["/v1/alerts"] != before["/v1/alerts"]


def test_another_question_and_another_store_have_other_tags(client, tmp_path) -> None:
    tags = {client.get("/v1/runs", params={"limit": n}).headers["etag"] for n in (1, 2)}
    assert len(tags) == 2
    add(tmp_path, 1)
    with serving(app_over(tmp_path)) as other:
        assert other.get("/v1/runs", params={"limit": 1}).headers["etag"] not in tags


def test_a_new_record_changes_answer_and_tag(young, tmp_path) -> None:
    add(tmp_path, 1)
    with serving(app_over(tmp_path)) as client:
        first = client.get("/v1/runs")
        cursor_of_one = {"limit": 1}
        assert client.get("/v1/runs", params=cursor_of_one).json()["next"] is None
        add(tmp_path, 2)
        again = client.get("/v1/runs", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 200
    assert len(again.json()["items"]) == 2


@pytest.mark.parametrize(
    ("path", "field", "found"),
    [
        ("runs?limit=0", "limit", "0"),
        (f"runs?limit={MOST + 1}", "limit", str(MOST + 1)),
        ("runs?limit=1_0", "limit", "1_0"),
        ("runs?cursor=!", "cursor", "!"),
        ("runs?role=nobody", "role", "nobody"),
        ("runs?scenarios=smoke", "scenarios", "scenarios"),
        ("runs?limit=1&limit=2", "limit", "2 times"),
        ("alerts?status=bad", "status", "bad"),
    ],
)
def test_a_wrong_question_learns_what_is_wrong(client, path, field, found) -> None:
    said_so = problem(client.get(f"/v1/{path}"), 400)
    assert (said_so.field, said_so.found) == (field, found)
    assert said_so.expected


@pytest.mark.parametrize("cursor", ["AAAA", "_w", "A"])
def test_a_cursor_of_another_list_is_reported(client, cursor) -> None:
    assert problem(client.get("/v1/runs", params={"cursor": cursor}), 404).field == "cursor"


def test_what_there_is_not(client) -> None:
    for path, field in (("runs/zz", "run"), ("runs/zz/report", "run"), ("series/zz", "series")):
        assert problem(client.get(f"/v1/{path}"), 404).field == field
    assert "/v2/runs" in problem(client.get("/v2/runs"), 404).detail
    for path, allowed in (("/v1/series", "GET, HEAD"), ("/v1/runs", "GET, HEAD, POST")):
        refused = client.delete(path)
        problem(refused, 405)
        assert refused.headers["allow"] == allowed


def test_another_name_is_not_answered(client) -> None:
    refused = client.get("/v1/runs", headers={"host": "evil.example"})
    assert problem(refused, 421).found == "evil.example"


def test_a_store_that_cannot_be_read_is_no_secret_told(tmp_path, monkeypatch) -> None:
    add(tmp_path, 1)
    app = app_over(tmp_path)
    monkeypatch.setenv("HYBRIDWATCH_DATABASE", "nonsense://user:secret@nowhere")
    with serving(app) as client:
        refused = client.get("/v1/runs")
    problem(refused, 503)
    assert "secret" not in refused.text
    assert refused.headers["retry-after"]


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clone") / "results"
    shutil.copytree(ROOT / "results" / "records", folder / "records")
    return folder


def test_every_committed_run_is_that_of_records(committed) -> None:
    listed = said("records", "--all", "--json", "--results", str(committed))["records"]
    for one in listed:
        one["record"] = str(Path(one["record"]).relative_to(committed))
    with serving(app_over(committed)) as client:
        assert get(client, "runs", limit=MOST)["items"] == listed
    assert len(listed) > 10


def test_reports_of_every_committed_record_are_on_schema(committed) -> None:
    schema = {"$ref": "#/components/schemas/ReportAnswer", **describe(reads_need_one=False)}
    checker = jsonschema_rs.validator_for(schema)
    with serving(app_over(committed)) as client:
        runs = get(client, "runs", limit=MOST)["items"]
        two = [one["run_id"] for one in runs if one["role"] != "alone"]
        assert len(two) > 10
        for name in two:
            report = get(client, f"runs/{name}/report")
            checker.validate(report)
            report["comparisons"][0]["surprise"] = 1
            assert not checker.is_valid(report)
