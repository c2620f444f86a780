"""Any server that takes webhooks: a CloudEvent, signed as the Standard Webhooks specification says.

The event's id is the ``webhook-id``, by which a receiver knows a message that it has already: who
keeps to the specification sees each one once.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any, Final

from hybridwatch.integrations.notify.channels import URL, Webhook
from hybridwatch.integrations.notify.client import Http, Receipt, read_secret
from hybridwatch.integrations.notify.message import Message

_TYPE: Final = "hybridwatch.alert"
_SECRET: Final = r"whsec_[A-Za-z0-9+/]{32,88}={0,2}"  # noqa: S105 (its form)
"""24 to 64 bytes."""


class WebhookDoor:
    """A server.

    Args:
        source: What its events call where they come from; ``clock`` gives seconds since 1970.

    Raises:
        UndeliveredError: Address or secret are missing in the environment.
    """

    def __init__(
        self, channel: Webhook, source: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._url = read_secret(channel.url_from, rf"({URL})(/\S*)?", "an address with https://")
        self._secret = read_secret(
            channel.secret_from, _SECRET, "whsec_ and 24 to 64 bytes in base64"
        )
        self._source = source
        self._clock = clock
        self._http = Http([self._url, self._secret])

    def deliver(self, message: Message, place: str) -> Receipt:  # noqa: ARG002 (of no issue)
        """Post a message."""
        body = json.dumps(build_event(message, self._source)).encode()
        at = str(int(self._clock()))
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
