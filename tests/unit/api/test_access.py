"""Who may ask for what, and how often, and how those who may not are told."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select, update

from hybridwatch.api.app import Access, Limits
from hybridwatch.api.queries import ProblemError
from hybridwatch.api.routes import describe
from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.database.schema import TOKEN
from hybridwatch.database.tokens import Scope, Tokens, compute_digest, open_tokens
from hybridwatch.errors import TokenError
from tests.unit.api.serving import app_over, serving, token_for
from tests.unit.database.stores import add

NOW = datetime(2026, 11, 24, tzinfo=UTC)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    add(tmp_path, 1)
    return tmp_path


@pytest.fixture
def closed(results: Path) -> Iterator[httpx.Client]:
    """A server that lets nobody read without a token."""
    with serving(app_over(results, reads_need_one=True)) as client:
        yield client


def test_who_shows_nothing_is_asked_for_a_token(closed) -> None:
    refused = closed.get("/v1/runs")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == 'Bearer realm="hybridwatch"'
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["field"] == "Authorization"


@pytest.mark.parametrize(
    "said",
    ["Bearer wrong", "Bearer", "Basic aGk6aG8=", "Bearer two words", "Bearer \xe4", "wrong"],
)
def test_a_wrong_token_is_called_invalid(closed, results, said) -> None:
    token_for(results, Scope.READ)
    refused = closed.get("/v1/runs", headers={"authorization": said.encode("latin-1")})
    assert refused.status_code == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]


def test_a_right_token_reads_and_two_are_none(closed, results) -> None:
    shown = token_for(results, Scope.READ)
    assert closed.get("/v1/runs", headers=shown).status_code == 200
    twice = [*shown.items(), *shown.items()]
    assert closed.get("/v1/runs", headers=twice).status_code == 401


def test_a_token_for_something_else_learns_what_it_lacks(closed, results) -> None:
    refused = closed.get("/v1/runs", headers=token_for(results, Scope.INGEST, Scope.TRIAGE))
    assert refused.status_code == 403
    assert refused.headers["www-authenticate"] == (
        'Bearer realm="hybridwatch", error="insufficient_scope", scope="read"'
    )


def test_where_anybody_may_read_a_wrong_token_is_reported_all_the_same(results) -> None:
    shown = token_for(results, Scope.INGEST)
    with serving(app_over(results)) as client:
        assert client.get("/v1/runs").status_code == 200
        assert client.get("/v1/runs", headers=shown).status_code == 200
        wrong = {"authorization": "Bearer wrong"}
        assert client.get("/v1/runs", headers=wrong).status_code == 401


def test_a_revoked_token_and_one_that_expired_allow_nothing(young, closed, results) -> None:
    shown = token_for(results, Scope.READ)
    assert closed.get("/v1/runs", headers=shown).status_code == 200
    open_tokens(results).revoke("robot", NOW)
    assert closed.get("/v1/runs", headers=shown).status_code == 401
    other = token_for(results, Scope.READ, name="other")
    assert closed.get("/v1/runs", headers=other).status_code == 200
    with Database(find_database_url(results)).writing() as connection:
        connection.execute(update(TOKEN).values(expires_at=NOW - timedelta(days=1)))
    assert closed.get("/v1/runs", headers=other).status_code == 401


def test_the_last_use_is_noted_but_not_each(young, closed, results) -> None:
    shown = token_for(results, Scope.READ)

    def used() -> datetime | None:
        return next(iter(open_tokens(results).by_digest().values())).used_at

    assert used() is None
    closed.get("/v1/runs", headers=shown)
    first = used()
    assert first is not None
    closed.get("/v1/runs", headers=shown)
    assert used() == first


def test_a_use_that_cannot_be_noted_keeps_nobody_out(results, monkeypatch) -> None:
    tokens = open_tokens(results)
    text = tokens.make("robot", {Scope.READ}, datetime.now(UTC), None)

    def broken(*_: object) -> None:
        raise TokenError("read-only")

    monkeypatch.setattr(Tokens, "used", broken)
    access = Access(tokens, reads_need_one=True)
    assert access.who([f"Bearer {text}"], Scope.READ) == "robot"


def test_no_token_is_kept_as_it_is(results) -> None:
    text = token_for(results, Scope.READ)["authorization"].removeprefix("Bearer ")
    assert text.encode() not in (results / "hybridwatch.sqlite").read_bytes()
    with Database(find_database_url(results)).reading() as connection:
        assert connection.scalar(select(TOKEN.c.digest)) == compute_digest(text)


def test_two_tokens_differ_and_are_long(results) -> None:
    made = [open_tokens(results).make(name, {Scope.READ}, NOW, None) for name in ("a", "b")]
    assert len(set(made)) == 2
    assert min(map(len, made)) >= 43


@pytest.mark.parametrize(
    ("name", "scopes", "expires_at", "said"),
    [
        ("", {Scope.READ}, None, "name of the token"),
        ("a\nb", {Scope.READ}, None, "control character"),
        ("a", set(), None, "expected a scope"),
        ("a", {Scope.READ}, NOW, "expected a time ahead"),
        ("taken", {Scope.READ}, None, "expected a new name"),
    ],
)
def test_what_is_no_token_is_not_made(results, name, scopes, expires_at, said) -> None:
    tokens = open_tokens(results)
    tokens.make("taken", {Scope.READ}, NOW, None)
    tokens.revoke("taken", NOW)
    with pytest.raises(TokenError, match=said):
        tokens.make(name, scopes, NOW, expires_at)
    with pytest.raises(TokenError, match="expected the name of a valid token"):
        tokens.revoke("taken", NOW)


def test_the_description_says_which_scope_each_question_needs() -> None:
    needed = {"token": ["read"]}
    for need_one, wanted in ((False, [needed, {}]), (True, [needed])):
        found = describe(reads_need_one=need_one)
        reads = [path["get"] for path in found["paths"].values() if "get" in path]
        assert {tuple(map(str, one["security"])) for one in reads} == {tuple(map(str, wanted))}
        assert found["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("hybridwatch.api.app.time.monotonic", lambda: now[0])
    return now


def taken(bucket: Limits, whose: str, tries: int) -> int:
    done = 0
    for _ in range(tries):
        try:
            bucket.take(whose)
        except ProblemError:
            continue
        done += 1
    return done


def test_a_full_bucket_is_emptied_and_fills_again(clock) -> None:
    bucket = Limits(10.0)
    assert taken(bucket, "a", 50) == 20
    clock[0] += 0.5
    assert taken(bucket, "a", 50) == 5
    clock[0] += 1000.0
    assert taken(bucket, "a", 50) == 20


def test_the_bucket_of_another_is_another(clock) -> None:
    bucket = Limits(10.0)
    assert (taken(bucket, "a", 50), taken(bucket, "b", 50)) == (20, 20)


def test_who_is_refused_hears_when_to_come_again(clock) -> None:
    bucket = Limits(0.1)
    bucket.take("a")
    with pytest.raises(ProblemError) as refused:
        bucket.take("a")
    wait = int(refused.value.headers["retry-after"])
    assert wait == 10
    clock[0] += wait
    bucket.take("a")


def test_a_bucket_is_forgotten_when_it_is_full_again_and_not_before(clock) -> None:
    bucket = Limits(1.0)
    assert taken(bucket, "a", 5) == 2
    for number in range(20_000):
        bucket.take(str(number))
    assert taken(bucket, "a", 1) == 0
    clock[0] += 3
    bucket.take("b")
    assert len(bucket._left) == 1


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/runs", {"host": "elsewhere.example"}, 421),
        ("/nothing", {}, 404),
        ("/openapi.json", {}, 200),
    ],
)
def test_whatever_is_asked_counts(tmp_path, path, headers, status) -> None:
    add(tmp_path, 1)
    with serving(app_over(tmp_path, per_s=0.01)) as client:
        tries = [client.get(path, headers=headers).status_code for _ in range(2)]
    assert tries == [status, 429]


def test_who_asks_too_often_waits_and_others_do_not(tmp_path) -> None:
    add(tmp_path, 1)
    shown = token_for(tmp_path, Scope.READ)
    with serving(app_over(tmp_path, per_s=0.01)) as client:
        assert client.get("/v1/runs").status_code == 200
        refused = client.get("/v1/runs")
        assert refused.status_code == 429
        assert refused.headers["content-type"] == "application/problem+json"
        assert int(refused.headers["retry-after"]) > 0
        assert client.get("/v1/runs", headers=shown).status_code == 200
        assert client.get("/v1/runs", headers=shown).status_code == 429


def test_wrong_tokens_are_tries_of_the_address(tmp_path) -> None:
    add(tmp_path, 1)
    with serving(app_over(tmp_path, per_s=0.01)) as client:
        wrong = {"authorization": "Bearer wrong"}
        tries = [client.get("/v1/runs", headers=wrong).status_code for _ in range(2)]
        assert tries == [401, 429]
