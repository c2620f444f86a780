"""Slack, a receiver of webhooks, GitLab and a mail server, in this process, which may fail.

Each holds what it is sent against what the service has published, and refuses it as the service
would: Slack's own models of Block Kit (``slack_sdk``), the CloudEvents and the Standard Webhooks
projects' own packages for receivers, GitLab's documented parameters, and a real SMTP server
(``aiosmtpd``).
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event
from cloudevents.core.exceptions import CloudEventValidationError
from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.live_server import LiveServer, QuietHandler
from tests.live_server import serving as serve_live
from tests.weather import Mood, Weather

SECRET: Final = "whsec_" + "c2VjcmV0IG9mIHRoZSB0ZXN0cywgMjQgYnl0ZXM="
GITLAB_TOKEN: Final = "glpat-planted-0123456789"  # noqa: S105 (opens nothing)
PROJECT: Final = "team/engine"
ME: Final = 77
SLACK_PATH: Final = "/services/T0/B0/planted"
_MOST_BLOCKS: Final = 50
_FIELD: Final = 2000
_POST: Final = {"title", "description", "labels"}
_PUT: Final = {"title", "description", "state_event"}

Answer = tuple[int, Any, dict[str, str]]


class Refused(Exception):  # noqa: N818 (an answer)
    """What was sent is not what the service takes."""


@dataclass
class Services:
    """What was sent to each, as it came; what was sent twice stands there twice."""

    url: str = ""
    weather: Weather = field(default_factory=Weather)
    slack: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    issues: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    mails: list[Message] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    """Of every answer."""
    after_request: Callable[[], None] | None = None
    smtp_port: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def variables(self) -> dict[str, str]:
        """What the environment of a call has."""
        return {
            "T_SLACK": self.url + SLACK_PATH,
            "T_HOOK": f"{self.url}/hook",
            "T_SECRET": SECRET,
            "T_GITLAB": GITLAB_TOKEN,
        }

    def answer(self, method: str, target: str, headers: dict[str, str], raw: bytes) -> Answer:
        """Serve one request."""
        with self.lock:
            try:
                return self._route(method, target, headers, raw)
            except Refused as error:
                return 400, str(error), {}

    def _route(self, method: str, target: str, headers: dict[str, str], raw: bytes) -> Answer:
        url = urlsplit(target)
        if url.path == SLACK_PATH:
            self.slack.append(_checked_payload(json.loads(raw)))
            return 200, "ok", {}
        if url.path == "/hook":
            self.events.append(_checked_event(headers, raw))
            return 204, "", {}
        if url.path.startswith("/api/v4/"):
            if headers.get("private-token") != GITLAB_TOKEN:
                return 401, {"message": "401 Unauthorized"}, {}
            query = {name: values[-1] for name, values in parse_qs(url.query).items()}
            place = [unquote(part) for part in url.path.removeprefix("/api/v4/").split("/")]
            return self._gitlab(method, place, query, json.loads(raw) if raw else {})
        return 404, "no_service", {}

    def _gitlab(self, method: str, place: list[str], query: dict[str, str], sent: Any) -> Answer:
        match method, place:
            case "GET", ["user"]:
                return 200, {"id": ME, "username": "bot"}, {}
            case "GET", ["projects", name, "issues"] if name == PROJECT:
                return _page(self._matching(query), query)
            case "POST", ["projects", name, "issues"] if name == PROJECT:
                return 201, self.open_issue(**_checked(sent, _POST, {"title"})), {}
            case "GET", ["projects", _, "issues", number]:
                found = self._issue(number)
                return (200, found, {}) if found else (404, {"message": "404 Not found"}, {})
            case "PUT", ["projects", _, "issues", number]:
                found = self._issue(number)
                if found is None:
                    return 404, {"message": "404 Not found"}, {}
                self._change(found, _checked(sent, _PUT, set()))
                return 200, found, {}
            case "GET", ["projects", _, "issues", number, "notes"]:
                return _page([one for one in self.notes if one["iid"] == number], query)
            case "POST", ["projects", _, "issues", number, "notes"]:
                _checked(sent, {"body"}, {"body"})
                note = {"id": len(self.notes) + 1, "iid": number, "author": {"id": ME}, **sent}
                self.notes.append(note)
                return 201, note, {}
            case _:
                pass
        return 404, {"message": "404 Project Not Found"}, {}

    def open_issue(
        self, title: str, description: str = "", labels: str = "", author: int = ME
    ) -> dict[str, Any]:
        """Make an issue, as anybody might."""
        made = {
            "id": 900 + len(self.issues),
            "iid": len(self.issues) + 1,
            "title": title,
            "description": description,
            "labels": labels.split(","),
            "state": "opened",
            "author": {"id": author},
        }
        self.issues.append(made)
        return made

    def said_on(self, number: int) -> list[str]:
        """What was said on an issue of GitLab."""
        return [note["body"] for note in self.notes if note["iid"] == str(number)]

    def _matching(self, query: dict[str, str]) -> list[dict[str, Any]]:
        return [
            one
            for one in self.issues
            if query["labels"] in one["labels"]
            and one["author"]["id"] == int(query["author_id"])
            and query["state"] == "all"
        ]

    def _issue(self, number: str) -> dict[str, Any] | None:
        return next((one for one in self.issues if one["iid"] == int(number)), None)

    def _change(self, found: dict[str, Any], sent: dict[str, Any]) -> None:
        event = sent.pop("state_event", None)
        if event not in {None, "close", "reopen"}:
            raise Refused("state_event does not have a valid value")
        found |= sent
        if event:
            found["state"] = "closed" if event == "close" else "opened"


def _page(items: list[dict[str, Any]], query: dict[str, str]) -> Answer:
    size, page = int(query.get("per_page", "20")), int(query.get("page", "1"))
    following = str(page + 1) if len(items) > size * page else ""
    return 200, items[size * (page - 1) : size * page], {"x-next-page": following}


def _checked(sent: Any, known: set[str], needed: set[str]) -> dict[str, Any]:
    """Hold parameters against those that GitLab documents for a call."""
    if not isinstance(sent, dict) or not needed <= set(sent) <= known:
        raise Refused(f"expected {sorted(known)}, found {sorted(sent)}")
    wrong = [name for name, value in sent.items() if not isinstance(value, str)]
    if wrong or len(sent.get("title", "")) > 255:
        raise Refused(f"is invalid: {wrong or 'title'}")
    return sent


def _checked_payload(payload: Any) -> dict[str, Any]:
    """Hold a message against Slack's models of Block Kit, as a webhook would."""
    blocks = payload.get("blocks", [])
    if not isinstance(payload.get("text"), str) or not 0 < len(blocks) <= _MOST_BLOCKS:
        raise Refused("invalid_payload")
    try:
        for block in blocks:
            parsed = Block.parse(block)
            if parsed is None or parsed.to_dict() != block:
                raise Refused(f"invalid_blocks: {block}")
    except SlackObjectFormationError as error:
        raise Refused(f"invalid_blocks: {error}") from None
    fields = [one for block in blocks for one in block.get("fields", ())]
    if any(not 0 < len(one["text"]) <= _FIELD for one in fields):
        raise Refused("invalid_blocks: fields")
    return dict(payload)


def _checked_event(headers: dict[str, str], raw: bytes) -> dict[str, Any]:
    """Take a webhook as a receiver does that keeps to both specifications."""
    try:
        Webhook(SECRET).verify(raw, headers)
        event = from_structured_event(HTTPMessage(headers, raw))
    except (WebhookVerificationError, CloudEventValidationError, ValueError) as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    # The package makes an id, and takes 1.0 for granted, where an event says neither.
    if event.get_id() != headers["webhook-id"] or json.loads(raw).get("specversion") != "1.0":
        raise Refused("webhook-id is not the event's, or it has no specversion")
    return {**event.get_attributes(), "data": event.get_data()}


@contextmanager
def serving(services: Services) -> Iterator[Services]:
    """Serve all but the mail on a free port."""

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.body()
            mood = services.weather.mood()
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer: Answer = 503, "busy", services.headers
            if mood is not Mood.BUSY:
                answer = services.answer(self.command, self.path, headers, raw)
                if services.after_request is not None:
                    services.after_request()
            if mood is Mood.CUT:
                self.close_connection = True
                return
            self._say((502, "lost", {}) if mood is Mood.LOST else answer)

        def _say(self, answer: Answer) -> None:
            status, body, headers = answer
            content = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.reply(status, content, headers)

        do_GET = do_POST = do_PUT = _serve  # noqa: N815 (http.server's names)

    with serve_live(LiveServer(Handler)) as server:
        services.url = server.url
        yield services


class _Mailbox:
    """Takes mail, or fails."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.refused: set[str] = set()

    async def handle_RCPT(
        self,
        server: SMTP,  # noqa: ARG002
        session: Session,  # noqa: ARG002
        envelope: Envelope,
        address: str,
        rcpt_options: list[str],  # noqa: ARG002
    ) -> str:
        if address in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(
        self,
        server: SMTP,  # noqa: ARG002
        session: Session,  # noqa: ARG002
        envelope: Envelope,
    ) -> str:
        mood = self.services.weather.mood()
        if mood is Mood.BUSY:
            return "451 try again later"
        content = envelope.content
        assert isinstance(content, bytes)
        self.services.mails.append(message_from_bytes(content, policy=default))
        if self.services.after_request is not None:
            self.services.after_request()
        return "250 OK" if mood is Mood.FINE else "451 lost"


class _Controller(Controller):
    """Asks itself whether it serves at the port that it was given, not at port 0."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def mail_server(services: Services) -> Iterator[_Mailbox]:
    """Serve mail on a free port, without encryption."""
    box = _Mailbox(services)
    controller = _Controller(box, hostname="127.0.0.1", port=0)
    controller.start()
    try:
        services.smtp_port = controller.port
        yield box
    finally:
        controller.stop()
