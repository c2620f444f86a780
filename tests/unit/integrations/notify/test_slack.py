"""Slack, by a webhook that holds what it is sent against Slack's own models."""

import logging

import httpx
import pytest

from hybridwatch.integrations.notify.channels import Slack
from hybridwatch.integrations.notify.clients import SlackDoor, UndeliveredError, build_payload
from hybridwatch.integrations.notify.news import Content, News
from tests.unit.integrations.notify.pretended import CONTENT, HOSTILE, a_message
from tests.unit.integrations.notify.services import SLACK_PATH

CHANNEL = Slack(name="team", url_from="T_SLACK")


@pytest.fixture
def client(services) -> SlackDoor:
    return SlackDoor(CHANNEL)


@pytest.mark.parametrize("news", News)
def test_each_kind_of_news_is_what_slack_takes(services, client, news) -> None:
    client.deliver(a_message(news), "")
    (payload,) = services.slack
    assert payload["text"] == payload["blocks"][0]["text"]["text"]
    assert payload["blocks"][0]["block_id"] == a_message().id


def test_what_a_message_says() -> None:
    payload = build_payload(a_message(News.WORSE))
    assert payload["text"] == "Worse now: slower in smoke/dummy-run"
    head, detail, facts, lines, link = payload["blocks"]
    assert detail["text"]["text"] == "ttft +54.1 % and 1 more metric"
    assert "Build\ncpu-0.28.0 against cpu-0.27.1" in [one["text"] for one in facts["fields"]]
    assert lines["text"]["text"] == "ttft median: regression, +54.1 %\nitl p99: missing"
    assert link["elements"][0]["text"].startswith("<https://hybridwatch.example.org/alerts?alert=")
    assert head["type"] == "header"


def test_hostile_texts_are_plain_text_and_fit(services, client) -> None:
    content = Content(HOSTILE * 99, HOSTILE * 99, HOSTILE, HOSTILE, "warn", "speed", HOSTILE)
    client.deliver(a_message(content=content), "")
    (payload,) = services.slack
    texts = [one for block in payload["blocks"] for one in (block.get("fields") or [block["text"]])]
    assert {one["type"] for one in texts} == {"plain_text"}
    assert {one["emoji"] for one in texts} == {False}
    assert "<!here>" not in payload["text"]
    assert "&lt;!here&gt;" in payload["text"]


PLAIN = {"type": "plain_text", "text": "x"}


@pytest.mark.parametrize(
    "payload",
    [
        {"text": "no blocks"},
        {"blocks": [{"type": "divider"}]},
        {"text": "x", "blocks": [{"type": "header", "text": {**PLAIN, "text": "x" * 151}}]},
        {"text": "x", "blocks": [{"type": "section", "fields": [PLAIN] * 11}]},
        {"text": "x", "blocks": [{"type": "section"}]},
        {"text": "x", "blocks": [{"type": "divider", "colour": "red"}]},
        {"text": "x", "blocks": [{"type": "divider"}] * 51},
    ],
)
def test_the_stand_in_refuses_what_slack_would(services, payload) -> None:
    """Planted: without the models nobody would notice."""
    assert httpx.post(services.url + SLACK_PATH, json=payload).status_code == 400
    assert services.slack == []


def test_an_answer_that_is_not_slacks_is_no_delivery(services, monkeypatch) -> None:
    monkeypatch.setenv("T_SLACK", f"{services.url}/services/elsewhere")
    with pytest.raises(UndeliveredError, match="answered 404: no_service") as failure:
        SlackDoor(CHANNEL).deliver(a_message(), "")
    assert not failure.value.again
    assert not failure.value.alone


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("", "T_SLACK: expected the address of a webhook in the environment, found none"),
        ("planted-secret", "T_SLACK: expected the address of a webhook, found something else"),
        ("http://example.org/planted-secret", "found something else, which is not shown"),
    ],
)
def test_a_wrong_secret_is_named_and_not_shown(monkeypatch, value, told) -> None:
    monkeypatch.setenv("T_SLACK", value)
    with pytest.raises(UndeliveredError) as failure:
        SlackDoor(CHANNEL)
    assert told in str(failure.value)
    assert "planted-secret" not in str(failure.value)


def test_the_address_is_in_no_error_and_no_log(services, client, caplog, monkeypatch) -> None:
    caplog.set_level(logging.DEBUG)
    client.deliver(a_message(), "")
    echoed = f"{services.url}/services/elsewhere-secret"
    monkeypatch.setenv("T_SLACK", echoed)
    monkeypatch.setattr(services, "answer", lambda *_: (400, f"no {echoed}", {}))
    with pytest.raises(UndeliveredError) as failure:
        SlackDoor(CHANNEL).deliver(a_message(), "")
    assert str(failure.value) == "answered 400: no ***"
    assert failure.value.alone
    said = [record.getMessage() for record in caplog.records if record.name == "httpx"]
    assert len(said) == 2, "httpx logs each request with its address"
    assert not any("/services/" in line for line in said)


def test_a_redirection_is_not_followed(services, monkeypatch) -> None:
    elsewhere = {"Location": f"{services.url}{SLACK_PATH}"}
    monkeypatch.setattr(services, "answer", lambda *_: (302, "", elsewhere))
    with pytest.raises(UndeliveredError, match="answered 302"):
        SlackDoor(CHANNEL).deliver(a_message(), "")
    assert services.slack == []


def test_nobody_there_is_worth_another_try(monkeypatch) -> None:
    monkeypatch.setenv("T_SLACK", "http://127.0.0.1:9/services/x")
    with pytest.raises(UndeliveredError, match="cannot be reached: ConnectError") as failure:
        SlackDoor(CHANNEL).deliver(a_message(), "")
    assert failure.value.again


@pytest.mark.parametrize(("value", "seconds"), [("30", 30.0), ("soon", 0.0), ("-3", 0.0)])
def test_a_busy_slack_says_how_long_to_wait(services, client, monkeypatch, value, seconds) -> None:
    monkeypatch.setattr(services, "answer", lambda *_: (429, "", {"Retry-After": value}))
    with pytest.raises(UndeliveredError) as failure:
        client.deliver(a_message(), "")
    assert (failure.value.again, failure.value.wait_s) == (True, seconds)


def test_the_facts_of_the_end_do_not_say_what_the_gate_does() -> None:
    names = [name for name, _ in a_message(News.RECOVERED).facts()]
    assert "By the gate's policy it" not in names
    assert CONTENT.rank == "block"
