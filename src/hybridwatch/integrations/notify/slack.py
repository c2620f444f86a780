"""Slack, by an incoming webhook: Block Kit, with texts from records as plain text only.

Slack has no key by which it would know a message again, so one whose answer was lost is posted
again: at least once, each time with the same ``block_id``.
"""

from collections.abc import Iterator
from typing import Any, Final

from hybridwatch.integrations.notify.channels import URL, Slack
from hybridwatch.integrations.notify.client import Http, Receipt, UndeliveredError, read_secret
from hybridwatch.integrations.notify.message import Message

_HEADER: Final = 150
_SECTION: Final = 3000
_FIELD: Final = 2000
_CUT: Final = "\N{HORIZONTAL ELLIPSIS}"


class SlackDoor:
    """A Slack channel.

    Raises:
        UndeliveredError: The address is missing in the environment.
    """

    def __init__(self, channel: Slack) -> None:
        self._url = read_secret(channel.url_from, rf"({URL})/\S*", "the address of a webhook")
        self._http = Http([self._url])

    def deliver(self, message: Message, place: str) -> Receipt:  # noqa: ARG002 (of no issue)
        """Post a message."""
        said = self._http.call("POST", self._url, json=build_payload(message)).text
        if said != "ok":
            raise UndeliveredError(f"expected Slack's answer ok, found {said[:100]!r}", alone=True)
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
    shown = text if len(text) <= most else text[: most - 1] + _CUT
    return {"type": "plain_text", "text": shown, "emoji": False}
