"""How often somebody may ask; each for themselves."""

import pytest

from hybridwatch.api import access
from hybridwatch.api.access import Limits
from hybridwatch.api.queries import ProblemError
from hybridwatch.database.tokens import Scope
from tests.unit.api.serving import app_over, serving, token_for
from tests.unit.database.stores import add


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("hybridwatch.api.access.time.monotonic", lambda: now[0])
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


def test_buckets_are_not_kept_without_end(clock, monkeypatch) -> None:
    monkeypatch.setattr(access, "_MOST", 3)
    bucket = Limits(1.0)
    for number in range(100):
        bucket.take(str(number))
    assert len(bucket._left) == 3


def test_whoever_asks_too_often_waits_and_others_do_not(tmp_path) -> None:
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
