"""Clients of Slack, webhooks and mail: each sends a message, and returns a receipt.

A message whose answer was lost is sent again: to Slack with the same ``block_id``, which is no key
there; to webhooks, as a CloudEvent signed by the Standard Webhooks specification, under a
``webhook-id`` that is seen once; by mail with the same ``Message-ID``.
"""

import base64
import hashlib
import hmac
import json
import logging
import os
import re
import smtplib
import ssl
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Final, Protocol

import httpx

from hybridwatch.errors import NotifyError
from hybridwatch.integrations.github.client import discreet
from hybridwatch.integrations.notify.channels import URL, Email, Slack, Webhook
from hybridwatch.integrations.notify.news import Message
from hybridwatch.reports.escape import one_line

_TIMEOUT_S: Final = 20.0
_SHOWN: Final = 200
_BUSY: Final = frozenset({408, 425, 429})
_WRONG_ADDRESS: Final = frozenset({401, 403, 404, 410})
"""The address, or the key to it, is wrong: every message would get the same answer."""
_LOG: Final = logging.getLogger("httpx")
_HEADER: Final = 150
_SECTION: Final = 3000
_FIELD: Final = 2000
"""Characters that Slack takes."""
_SUBJECT: Final = 200
_TYPE: Final = "hybridwatch.alert"
_SECRET: Final = r"whsec_[A-Za-z0-9+/]{32,88}={0,2}"  # noqa: S105 (its form)
"""24 to 64 bytes."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A message got through, to the issue ``place``; ``complaint`` is what was wrong anyway."""

    place: str = ""
    complaint: str = ""


class ChannelClient(Protocol):
    """Sends the messages of one channel."""

    def deliver(self, message: Message, place: str) -> Receipt:
        """Send a message; ``place`` is the number of its topic's issue, empty for none known."""


class UndeliveredError(NotifyError):
    """A message did not get through; it stays in the outbox.

    Args:
        alone: Whether only this message is refused; otherwise nothing else gets through either.
        again: Whether the next moment may be a better one.
        wait_s: How long the service wants us to wait; 0 where it did not.
    """

    def __init__(
        self, reason: str, *, alone: bool = False, again: bool = False, wait_s: float = 0.0
    ) -> None:
        super().__init__(reason)
        self.alone = alone
        self.again = again
        self.wait_s = wait_s


def read_secret(variable: str, form: str, expected: str) -> str:
    """Read a secret, which the pattern ``form`` fits, ``expected`` in words; none is repeated."""
    found = os.environ.get(variable, "")
    if not found:
        raise UndeliveredError(f"{variable}: expected {expected} in the environment, found none")
    if not re.fullmatch(form, found):
        raise UndeliveredError(
            f"{variable}: expected {expected}, found something else, which is not shown"
        )
    return found


class Http:
    """A client that follows no redirection, and whose errors and log show no secret."""

    def __init__(self, secrets: Collection[str], headers: Mapping[str, str] | None = None) -> None:
        self._secrets = sorted((one for one in secrets if one), key=len, reverse=True)
        self._headers = dict(headers or {})

    def call(self, method: str, url: str, **what: Any) -> httpx.Response:
        """Make a call; ``what`` is as httpx takes it: ``json``, ``content``, ``params``."""
        try:
            # A connection for each call: a few a night, and none is left open.
            client = httpx.Client(timeout=_TIMEOUT_S, headers=self._headers, follow_redirects=False)
            with discreet(_LOG, self._redact), client:
                answer = client.request(method, url, **what)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            line = self._redact(one_line(f"{type(error).__name__}: {error}"))[:_SHOWN]
            raise UndeliveredError(f"cannot be reached: {line}", again=True) from None
        if not answer.is_success:
            raise self._refusal(answer)
        return answer

    def _refusal(self, answer: httpx.Response) -> UndeliveredError:
        status = answer.status_code
        text = self._redact(one_line(answer.text))[:_SHOWN]
        reason = f"answered {status}" + (f": {text}" if text else "")
        busy = status >= 500 or status in _BUSY
        alone = not busy and not answer.is_redirect and status not in _WRONG_ADDRESS
        return UndeliveredError(reason, alone=alone, again=busy, wait_s=_read_wait(answer))

    def _redact(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def _read_wait(answer: httpx.Response) -> float:
    """Give the seconds in ``Retry-After``; 0 where there are none, or a date stands there."""
    try:
        return max(0.0, float(answer.headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0


class SlackClient:
    """A Slack channel; ``UndeliveredError`` where its address is missing in the environment."""

    def __init__(self, channel: Slack) -> None:
        self._url = read_secret(channel.url_from, rf"({URL})/\S*", "the address of a webhook")
        self._http = Http([self._url])

    def deliver(self, message: Message, place: str) -> Receipt:  # noqa: ARG002 (of no issue)
        """Post a message."""
        text = self._http.call("POST", self._url, json=build_payload(message)).text
        if text != "ok":
            raise UndeliveredError(f"expected Slack's answer ok, found {text[:100]!r}", alone=True)
        return Receipt()


def build_payload(message: Message) -> dict[str, Any]:
    """Write what Slack is sent: blocks, and the line that a notification shows."""
    # Slack looks for its own marks in this one text, and takes these three for the whole of them.
    text = message.headline.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": text[:_SECTION], "blocks": list(_blocks(message))}


def _blocks(message: Message) -> Iterator[dict[str, Any]]:
    head = _plain(message.headline, _HEADER)
    yield {"type": "header", "block_id": message.id, "text": head}
    if message.detail:
        yield {"type": "section", "text": _plain(message.detail, _SECTION)}
    facts = [_plain(f"{name}\n{value}", _FIELD) for name, value in message.facts()]
    if facts:
        yield {"type": "section", "fields": facts}
    if lines := message.lines():
        yield {"type": "section", "text": _plain("\n".join(lines), _SECTION)}
    if link := message.content.link:
        yield {
            "type": "context",
            "elements": [{"type": "mrkdwn", "text": f"<{link}|Open in the dashboard>"}],
        }


def _plain(text: str, most: int) -> dict[str, Any]:
    shown = text if len(text) <= most else text[: most - 1] + "…"
    return {"type": "plain_text", "text": shown, "emoji": False}


class WebhookClient:
    """A server; ``source`` is what its events call where they come from."""

    def __init__(self, channel: Webhook, source: str) -> None:
        self._url = read_secret(channel.url_from, rf"({URL})(/\S*)?", "an address with https://")
        self._secret = read_secret(
            channel.secret_from, _SECRET, "whsec_ and 24 to 64 bytes in base64"
        )
        self._source = source
        self._http = Http([self._url, self._secret])

    def deliver(self, message: Message, place: str) -> Receipt:  # noqa: ARG002 (of no issue)
        """Post a message."""
        body = json.dumps(build_event(message, self._source)).encode()
        at = str(int(time.time()))
        headers = {
            "Content-Type": "application/cloudevents+json; charset=utf-8",
            "webhook-id": message.id,
            "webhook-timestamp": at,
            "webhook-signature": _signature(self._secret, f"{message.id}.{at}.".encode() + body),
        }
        self._http.call("POST", self._url, content=body, headers=headers)
        return Receipt()


def build_event(message: Message, source: str) -> dict[str, Any]:
    """Write a message as a CloudEvent 1.0."""
    return {
        "specversion": "1.0",
        "id": message.id,
        "source": source,
        "type": f"{_TYPE}.{message.news.value}",
        "subject": message.topic,
        "time": message.made_at.isoformat(),
        "datacontenttype": "application/json",
        "data": message.to_json(),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = secret.removeprefix("whsec_")
    padded = base64.b64decode(key + "=" * (-len(key) % 4))
    return "v1," + base64.b64encode(hmac.new(padded, signed, hashlib.sha256).digest()).decode()


class MailClient:
    """A mail server."""

    def __init__(self, channel: Email) -> None:
        self._channel = channel
        variable = channel.password_from
        self._password = "" if variable is None else read_secret(variable, r".+", "a password")

    def deliver(self, message: Message, place: str) -> Receipt:  # noqa: ARG002 (of no issue)
        """Send a message."""
        mail = build_mail(message, self._channel)
        try:
            with self._connected() as server:
                refused = server.send_message(mail, self._channel.sender, self._channel.to)
        except (smtplib.SMTPException, OSError) as error:
            raise self._undelivered(error) from None
        # To send it again would reach the others twice.
        complaint = f"taken for some, refused for {', '.join(refused)}" if refused else ""
        return Receipt(complaint=complaint)

    @contextmanager
    def _connected(self) -> Iterator[smtplib.SMTP]:
        channel, context = self._channel, ssl.create_default_context()
        where = channel.host, channel.port
        if channel.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(*where, timeout=_TIMEOUT_S, context=context)
        else:
            server = smtplib.SMTP(*where, timeout=_TIMEOUT_S)
        try:
            if channel.security == "starttls":
                server.starttls(context=context)
            if channel.user:
                server.login(channel.user, self._password)
            yield server
        finally:
            with suppress(smtplib.SMTPException, OSError):
                server.quit()  # what was taken is taken, whatever becomes of the farewell
            server.close()

    def _undelivered(self, error: Exception) -> UndeliveredError:
        line = one_line(f"{type(error).__name__}: {error}")
        line = line.replace(self._password, "***") if self._password else line
        code = _read_code(error)
        refused = 500 <= code < 600
        alone = refused and not isinstance(error, smtplib.SMTPAuthenticationError)
        return UndeliveredError(line[:300], alone=alone, again=not refused)


def build_mail(message: Message, channel: Email) -> EmailMessage:
    """Write a message as a mail; those about one topic are one conversation."""
    mail = EmailMessage()
    domain = channel.sender.rpartition("@")[2]
    mail["Subject"] = f"hybridwatch: {message.headline}"[:_SUBJECT]
    mail["From"] = channel.sender
    mail["To"] = ", ".join(channel.to)
    mail["Date"] = format_datetime(message.made_at)
    mail["Message-ID"] = f"<{message.id}@{domain}>"
    mail["References"] = f"<{message.topic}.{message.channel}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    facts = [f"{name}: {value}" for name, value in message.facts()]
    link = [message.content.link] if message.content.link else []
    parts = ([message.headline], [message.detail], facts, message.lines(), link)
    mail.set_content("\n\n".join("\n".join(part) for part in parts if any(part)) + "\n")
    return mail


def _read_code(error: Exception) -> int:
    """Give the server's answer as a number; 0 where it gave none."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return min((code for code, _ in error.recipients.values()), default=0)
    return error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else 0
