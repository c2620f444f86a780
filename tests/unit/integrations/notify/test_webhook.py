"""A webhook whose receiver keeps to CloudEvents and Standard Webhooks."""

import json
from datetime import datetime
from types import SimpleNamespace

import httpx
import pytest

from hybridwatch.integrations.notify import clients
from hybridwatch.integrations.notify.channels import Webhook
from hybridwatch.integrations.notify.clients import UndeliveredError, WebhookDoor, build_event
from hybridwatch.integrations.notify.news import STORED_CONTENT, Content, News
from tests.unit.integrations.notify.pretended import CONTENT, HOSTILE, NOW, a_message
from tests.unit.integrations.notify.services import SECRET

CHANNEL = Webhook(name="pager", url_from="T_HOOK", secret_from="T_SECRET")  # noqa: S106


@pytest.mark.parametrize("news", News)
def test_a_receiver_takes_each_kind_of_news_as_a_signed_event(services, news) -> None:
    WebhookDoor(CHANNEL, "/hybridwatch").deliver(a_message(news), "")
    (event,) = services.events
    assert event["type"] == f"hybridwatch.alert.{news.value}"
    assert (event["source"], event["subject"]) == ("/hybridwatch", "ab" * 16)
    assert event["time"] == NOW
    assert event["data"] == json.loads(json.dumps(a_message(news).to_json()))


def test_the_data_have_every_fact(services) -> None:
    data = json.loads(json.dumps(a_message().to_json()))
    assert data["headline"] == "Slower in smoke/dummy-run"
    assert data["metrics"][0] == {
        "metric": "ttft",
        "statistic": "median",
        "verdict": "regression",
        "effect": 0.541,
        "change": "+54.1 %",
    }
    assert datetime.fromisoformat(data["found_at"]) == NOW
    assert STORED_CONTENT.validate_json(CONTENT.to_json()) == CONTENT


def test_hostile_texts_arrive_as_they_were(services) -> None:
    content = Content(HOSTILE, HOSTILE, HOSTILE, HOSTILE, "warn", "speed")
    WebhookDoor(CHANNEL, "/hybridwatch").deliver(a_message(content=content), "")
    assert services.events[0]["data"]["scenario"] == HOSTILE


def test_what_is_sent_again_has_the_same_id_and_a_new_signature(services) -> None:
    client = WebhookDoor(CHANNEL, "/hybridwatch")
    for _ in range(2):
        client.deliver(a_message(), "")
    first, second = services.events
    assert first == second


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("T_HOOK", "", "T_HOOK: expected an address with https:// in the environment, found none"),
        ("T_HOOK", "http://example.org/x", "T_HOOK: expected an address with https://, found some"),
        ("T_SECRET", "", "T_SECRET: expected whsec_ and 24 to 64 bytes in base64 in the environm"),
        ("T_SECRET", "planted-secret", "found something else, which is not shown"),
        ("T_SECRET", "whsec_c2hvcnQ=", "found something else, which is not shown"),
    ],
)
def test_a_wrong_secret_is_named_and_not_shown(
    services, monkeypatch, variable, value, told
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UndeliveredError) as failure:
        WebhookDoor(CHANNEL, "/hybridwatch")
    assert told in str(failure.value)
    assert "planted-secret" not in str(failure.value)


def test_a_signature_by_another_secret_is_refused(services, monkeypatch) -> None:
    """Planted: a receiver that does not verify would take it."""
    monkeypatch.setenv("T_SECRET", SECRET[:-5] + "AAAA=")
    with pytest.raises(UndeliveredError, match="No matching signature found") as failure:
        WebhookDoor(CHANNEL, "/hybridwatch").deliver(a_message(), "")
    assert failure.value.alone
    assert services.events == []


def test_an_old_signature_is_refused(services, monkeypatch) -> None:
    """Planted: a clock that stands still."""
    client = WebhookDoor(CHANNEL, "/hybridwatch")
    monkeypatch.setattr(clients, "time", SimpleNamespace(time=lambda: 1e9))
    with pytest.raises(UndeliveredError, match="Message timestamp too old"):
        client.deliver(a_message(), "")


@pytest.mark.parametrize("missing", ["id", "source", "type", "specversion"])
def test_the_receiver_refuses_what_is_no_event(services, monkeypatch, missing) -> None:
    """Planted: an event without an attribute that it has to have."""
    event = build_event(a_message(), "/hybridwatch")
    del event[missing]
    monkeypatch.setattr("hybridwatch.integrations.notify.clients.build_event", lambda *_: event)
    with pytest.raises(UndeliveredError, match="answered 400"):
        WebhookDoor(CHANNEL, "/hybridwatch").deliver(a_message(), "")
    assert services.events == []


def test_the_receiver_refuses_what_is_not_signed(services) -> None:
    body = json.dumps(build_event(a_message(), "/hybridwatch"))
    assert httpx.post(f"{services.url}/hook", content=body).status_code == 400
