"""E-mail, by a real mail server on this machine."""

import smtplib
from email.policy import default

import pytest

from hybridwatch.integrations.notify.channels import Email
from hybridwatch.integrations.notify.clients import MailDoor, UndeliveredError, build_mail
from hybridwatch.integrations.notify.news import Content, News
from tests.unit.integrations.notify.pretended import HOSTILE, a_message


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


def test_a_message_arrives_as_plain_text(services, channel) -> None:
    assert MailDoor(channel).deliver(a_message(News.RECOVERED), "").complaint == ""
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


def test_hostile_texts_make_no_headers(services, channel) -> None:
    content = Content(f"x\r\nBcc: all@example.org {HOSTILE}", HOSTILE, HOSTILE, "", "warn", "speed")
    MailDoor(channel).deliver(a_message(content=content), "")
    (mail,) = services.mails
    assert mail["Bcc"] is None
    assert mail.get_content_type() == "text/plain"
    assert "\n" not in str(mail.policy.clone(max_line_length=0) and mail["Subject"])


def test_what_some_refuse_is_told_and_not_sent_again(services, channel, mailbox) -> None:
    mailbox.refused = {"boss@example.org"}
    receipt = MailDoor(channel).deliver(a_message(), "")
    assert receipt.complaint == "taken for some, refused for boss@example.org"
    assert len(services.mails) == 1


def test_what_all_refuse_is_not_delivered(services, channel, mailbox) -> None:
    mailbox.refused = {"boss@example.org", "team@example.org"}
    with pytest.raises(UndeliveredError) as failure:
        MailDoor(channel).deliver(a_message(), "")
    assert (failure.value.alone, failure.value.again) == (True, False)


def test_a_busy_server_is_worth_another_try(services, channel) -> None:
    services.weather.share = 1.0
    with pytest.raises(UndeliveredError, match="451") as failure:
        MailDoor(channel).deliver(a_message(), "")
    assert (failure.value.alone, failure.value.again) == (False, True)


def test_nobody_there_is_worth_another_try(channel) -> None:
    with pytest.raises(UndeliveredError, match="ConnectionRefusedError") as failure:
        MailDoor(channel.model_copy(update={"port": 9})).deliver(a_message(), "")
    assert failure.value.again


def test_a_password_that_is_refused_is_not_shown(channel, monkeypatch) -> None:
    monkeypatch.setenv("T_MAIL", "planted-secret")

    def login(*_):
        raise smtplib.SMTPAuthenticationError(535, b"no planted-secret here")

    monkeypatch.setattr(smtplib.SMTP, "login", login)
    client = MailDoor(channel.model_copy(update={"user": "bot", "password_from": "T_MAIL"}))
    with pytest.raises(UndeliveredError) as failure:
        client.deliver(a_message(), "")
    assert "planted-secret" not in str(failure.value)
    assert "***" in str(failure.value)
    assert (failure.value.alone, failure.value.again) == (False, False)


def test_encryption_is_asked_for_before_anything_is_said(services, channel) -> None:
    """This server has none: nothing may be sent to it in the open."""
    with pytest.raises(UndeliveredError, match="STARTTLS extension not supported"):
        MailDoor(channel.model_copy(update={"security": "starttls"})).deliver(a_message(), "")
    assert services.mails == []


def test_a_mail_is_read_back_as_it_was_written(channel) -> None:
    mail = build_mail(a_message(), channel)
    assert mail.as_bytes(policy=default).startswith(b"Subject: hybridwatch: Slower")
