"""Slack, webhooks and mail: receivers on this machine that keep to what each service published."""

import json
import logging
import smtplib
from datetime import datetime
from email.policy import default
from types import SimpleNamespace

import httpx
import pytest
from pydantic import TypeAdapter

from hybridwatch.integrations.notify import clients
from hybridwatch.integrations.notify.channels import Email, Slack, Webhook
from hybridwatch.integrations.notify.clients import (
    MailClient,
    SlackClient,
    UndeliveredError,
    WebhookClient,
    build_event,
    build_mail,
    build_payload,
)
from hybridwatch.integrations.notify.news import Content, News
from tests.unit.integrations.notify.pretended import CONTENT, HOSTILE, NOW, a_message
from tests.unit.integrations.notify.services import SECRET, SLACK_PATH

SLACK = Slack(name="team", url_from="T_SLACK")
HOOK = Webhook(name="pager", url_from="T_HOOK", secret_from="T_SECRET")  # noqa: S106


def slack() -> SlackClient:
    return SlackClient(SLACK)


def webhook() -> WebhookClient:
    return WebhookClient(HOOK, "/hybridwatch")


@pytest.fixture
def channel(mailbox, services) -> Email:
    return Email(
        name="list",
        host="127.0.0.1",
        port=services.smtp_port,
        security="none",
        sender="bot@example.org",
        to=["team@example.org", "boss@example.org"],
    )


@pytest.mark.parametrize("news", News)
def test_each_kind_of_news_is_what_slack_takes(services, news) -> None:
    slack().deliver(a_message(news), "")
    (payload,) = services.slack
    assert payload["text"] == payload["blocks"][0]["text"]["text"]
    assert payload["blocks"][0]["block_id"] == a_message().id


@pytest.mark.parametrize("news", News)
def test_a_receiver_takes_each_kind_of_news_as_a_signed_event(services, news) -> None:
    webhook().deliver(a_message(news), "")
    (event,) = services.events
    assert event["type"] == f"hybridwatch.alert.{news.value}"
    assert (event["source"], event["subject"]) == ("/hybridwatch", "ab" * 16)
    assert event["time"] == NOW
    assert event["data"] == json.loads(json.dumps(a_message(news).to_json()))


ADDRESS = "expected an address with https://"
BASE64 = "expected whsec_ and 24 to 64 bytes in base64"
HIDDEN = "found something else, which is not shown"


@pytest.mark.parametrize(
    ("opened", "variable", "value", "told"),
    [
        (slack, "T_SLACK", "", "expected the address of a webhook in the environment, found none"),
        (slack, "T_SLACK", "planted-secret", f"expected the address of a webhook, {HIDDEN}"),
        (slack, "T_SLACK", "http://example.org/planted-secret", HIDDEN),
        (webhook, "T_HOOK", "", f"{ADDRESS} in the environment, found none"),
        (webhook, "T_HOOK", "http://example.org/x", f"{ADDRESS}, {HIDDEN}"),
        (webhook, "T_SECRET", "", f"{BASE64} in the environment, found none"),
        (webhook, "T_SECRET", "planted-secret", HIDDEN),
        (webhook, "T_SECRET", "whsec_c2hvcnQ=", HIDDEN),
    ],
)
def test_a_wrong_secret_is_named_and_not_shown(
    services, monkeypatch, opened, variable, value, told
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UndeliveredError) as failure:
        opened()
    assert str(failure.value).startswith(f"{variable}: ")
    assert told in str(failure.value)
    assert "planted-secret" not in str(failure.value)


def test_nobody_there_is_worth_another_try(channel, monkeypatch) -> None:
    monkeypatch.setenv("T_SLACK", "http://127.0.0.1:9/services/x")
    mail = MailClient(channel.model_copy(update={"port": 9}))
    for client, told in ((slack(), "reached: ConnectError"), (mail, "ConnectionRefusedError")):
        with pytest.raises(UndeliveredError, match=told) as failure:
            client.deliver(a_message(), "")
        assert failure.value.again


def test_hostile_texts_are_plain_text_and_fit_and_make_no_headers(services, channel) -> None:
    content = Content(HOSTILE * 99, HOSTILE * 99, HOSTILE, HOSTILE, "warn", "speed", HOSTILE)
    slack().deliver(a_message(content=content), "")
    (payload,) = services.slack
    texts = [one for block in payload["blocks"] for one in (block.get("fields") or [block["text"]])]
    assert {one["type"] for one in texts} == {"plain_text"}
    assert {one["emoji"] for one in texts} == {False}
    assert "<!here>" not in payload["text"]
    assert "&lt;!here&gt;" in payload["text"]
    webhook().deliver(a_message(content=content), "")
    assert services.events[0]["data"]["scenario"] == HOSTILE
    content = Content(f"x\r\nBcc: all@example.org {HOSTILE}", HOSTILE, HOSTILE, "", "warn", "speed")
    MailClient(channel).deliver(a_message(content=content), "")
    (mail,) = services.mails
    assert mail["Bcc"] is None
    assert mail.get_content_type() == "text/plain"
    assert "\n" not in str(mail.policy.clone(max_line_length=0) and mail["Subject"])


# Slack.


def test_what_a_message_says() -> None:
    payload = build_payload(a_message(News.WORSE))
    assert payload["text"] == "Worse now: slower in smoke/dummy-run"
    head, detail, facts, lines, link = payload["blocks"]
    assert detail["text"]["text"] == "ttft +54.1 % and 1 more metric"
    assert "Build\ncpu-0.28.0 against cpu-0.27.1" in [one["text"] for one in facts["fields"]]
    assert lines["text"]["text"] == "ttft median: regression, +54.1 %\nitl p99: missing"
    assert link["elements"][0]["text"].startswith("<https://hybridwatch.example.org/alerts?alert=")
    assert head["type"] == "header"


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
        slack().deliver(a_message(), "")
    assert not failure.value.again
    assert not failure.value.alone


def test_the_address_is_in_no_error_and_no_log(services, caplog, monkeypatch) -> None:
    caplog.set_level(logging.DEBUG)
    slack().deliver(a_message(), "")
    echoed = f"{services.url}/services/elsewhere-secret"
    monkeypatch.setenv("T_SLACK", echoed)
    monkeypatch.setattr(services, "answer", lambda *_: (400, f"no {echoed}", {}))
    with pytest.raises(UndeliveredError) as failure:
        slack().deliver(a_message(), "")
    assert str(failure.value) == "answered 400: no ***"
    assert failure.value.alone
    said = [record.getMessage() for record in caplog.records if record.name == "httpx"]
    assert len(said) == 2, "httpx logs each request with its address"
    assert not any("/services/" in line for line in said)


def test_a_redirection_is_not_followed(services, monkeypatch) -> None:
    elsewhere = {"Location": f"{services.url}{SLACK_PATH}"}
    monkeypatch.setattr(services, "answer", lambda *_: (302, "", elsewhere))
    with pytest.raises(UndeliveredError, match="answered 302"):
        slack().deliver(a_message(), "")
    assert services.slack == []


@pytest.mark.parametrize(("value", "seconds"), [("30", 30.0), ("soon", 0.0), ("-3", 0.0)])
def test_a_busy_slack_says_how_long_to_wait(services, monkeypatch, value, seconds) -> None:
    monkeypatch.setattr(services, "answer", lambda *_: (429, "", {"Retry-After": value}))
    with pytest.raises(UndeliveredError) as failure:
        slack().deliver(a_message(), "")
    assert (failure.value.again, failure.value.wait_s) == (True, seconds)


def test_the_facts_of_the_end_do_not_say_what_the_gate_does() -> None:
    names = [name for name, _ in a_message(News.RECOVERED).facts()]
    assert "By the gate's policy it" not in names
    assert CONTENT.rank == "block"


# Webhooks.


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
    assert TypeAdapter(Content).validate_json(CONTENT.to_json()) == CONTENT


def test_what_is_sent_again_has_the_same_id_and_a_new_signature(services) -> None:
    client = webhook()
    for _ in range(2):
        client.deliver(a_message(), "")
    first, second = services.events
    assert first == second


def test_a_signature_by_another_secret_is_refused(services, monkeypatch) -> None:
    """Planted: a receiver that does not verify would take it."""
    monkeypatch.setenv("T_SECRET", SECRET[:-5] + "AAAA=")
    with pytest.raises(UndeliveredError, match="No matching signature found") as failure:
        webhook().deliver(a_message(), "")
    assert failure.value.alone
    assert services.events == []


def test_an_old_signature_is_refused(services, monkeypatch) -> None:
    """Planted: a clock that stands still."""
    client = webhook()
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
        webhook().deliver(a_message(), "")
    assert services.events == []


def test_the_receiver_refuses_what_is_not_signed(services) -> None:
    body = json.dumps(build_event(a_message(), "/hybridwatch"))
    assert httpx.post(f"{services.url}/hook", content=body).status_code == 400


# Mail.


def test_a_message_arrives_as_plain_text(services, channel) -> None:
    assert MailClient(channel).deliver(a_message(News.RECOVERED), "").complaint == ""
    (mail,) = services.mails
    assert mail["Subject"] == "hybridwatch: Recovered: slower in smoke/dummy-run"
    assert mail["Message-ID"] == f"<{a_message().id}@example.org>"
    assert mail["Auto-Submitted"] == "auto-generated"
    text = mail.get_content()
    assert "ttft median: regression, +54.1 %" in text
    assert "Build: cpu-0.28.0 against cpu-0.27.1" in text
    assert "https://hybridwatch.example.org/alerts?alert=" in text


def test_mails_about_one_topic_are_one_conversation(channel) -> None:
    first, second = (build_mail(a_message(number=number), channel) for number in (1, 2))
    assert first["References"] == second["References"]
    assert first["Message-ID"] != second["Message-ID"]
    again = build_mail(a_message(), channel)
    assert again["Message-ID"] == first["Message-ID"], "by which a mail store knows it again"
    assert again.as_bytes(policy=default).startswith(b"Subject: hybridwatch: Slower")


def test_what_some_refuse_is_reported_and_not_sent_again(services, channel, mailbox) -> None:
    mailbox.refused = {"boss@example.org"}
    receipt = MailClient(channel).deliver(a_message(), "")
    assert receipt.complaint == "taken for some, refused for boss@example.org"
    assert len(services.mails) == 1


def test_what_all_refuse_is_not_delivered(services, channel, mailbox) -> None:
    mailbox.refused = {"boss@example.org", "team@example.org"}
    with pytest.raises(UndeliveredError) as failure:
        MailClient(channel).deliver(a_message(), "")
    assert (failure.value.alone, failure.value.again) == (True, False)


def test_a_busy_server_is_worth_another_try(services, channel) -> None:
    services.weather.share = 1.0
    with pytest.raises(UndeliveredError, match="451") as failure:
        MailClient(channel).deliver(a_message(), "")
    assert (failure.value.alone, failure.value.again) == (False, True)


def test_a_password_that_is_refused_is_not_shown(channel, monkeypatch) -> None:
    monkeypatch.setenv("T_MAIL", "planted-secret")

    def login(*_):
        raise smtplib.SMTPAuthenticationError(535, b"no planted-secret here")

    monkeypatch.setattr(smtplib.SMTP, "login", login)
    client = MailClient(channel.model_copy(update={"user": "bot", "password_from": "T_MAIL"}))
    with pytest.raises(UndeliveredError) as failure:
        client.deliver(a_message(), "")
    assert "planted-secret" not in str(failure.value)
    assert "***" in str(failure.value)
    assert (failure.value.alone, failure.value.again) == (False, False)


def test_encryption_is_asked_for_before_anything_is_said(services, channel) -> None:
    """This server has none: nothing may be sent to it in the open."""
    with pytest.raises(UndeliveredError, match="STARTTLS extension not supported"):
        MailClient(channel.model_copy(update={"security": "starttls"})).deliver(a_message(), "")
    assert services.mails == []
