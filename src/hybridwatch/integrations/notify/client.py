"""What every way out has in common: a message goes in, a receipt comes back, or an error.

Secrets come from the environment; HTTP is one call, and what a failure of it means.
"""

import logging
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import httpx

from hybridwatch.errors import NotifyError
from hybridwatch.integrations.github.client import discreet
from hybridwatch.integrations.notify.message import Message
from hybridwatch.reports.escape import one_line

_TIMEOUT_S: Final = 20.0
_SHOWN: Final = 200
_BUSY: Final = frozenset({408, 425, 429})
_NOBODY: Final = frozenset({401, 403, 404, 410})
"""The address, or the key to it, is wrong: whatever is sent there meets the same answer."""
_LOG: Final = logging.getLogger("httpx")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came of a message that got through.

    Attributes:
        place: Number of the issue that it went to; empty where there are none.
        complaint: What was wrong all the same, in one line; empty for nothing.
    """

    place: str = ""
    complaint: str = ""


class ChannelClient(Protocol):
    """Sends the messages of one channel."""

    def deliver(self, message: Message, place: str) -> Receipt:
        """Send a message.

        ``place`` is the number of the issue of its topic; empty where none is known.

        Raises:
            UndeliveredError: It did not get through.
        """


class UndeliveredError(NotifyError):
    """A message did not get through; it stays in the outbox.

    Args:
        alone: Whether only this message is refused; otherwise nothing else gets through either.
        again: Whether the next moment may be a better one.
        wait_s: How long the service asked us to wait; 0 where it did not.
    """

    def __init__(
        self, reason: str, *, alone: bool = False, again: bool = False, wait_s: float = 0.0
    ) -> None:
        super().__init__(reason)
        self.alone = alone
        self.again = again
        self.wait_s = wait_s


def read_secret(variable: str, form: str, expected: str) -> str:
    """Read a secret.

    All of it must match the pattern ``form``, which ``expected`` says in words.

    Raises:
        UndeliveredError: There is none, or it is something else; it is not repeated.
    """
    found = os.environ.get(variable, "")
    if not found:
        raise UndeliveredError(f"{variable}: expected {expected} in the environment, found none")
    if not re.fullmatch(form, found):
        raise UndeliveredError(
            f"{variable}: expected {expected}, found something else, which is not shown"
        )
    return found


class Http:
    """A client that follows no redirection, so that no secret reaches another server.

    Args:
        secrets: What no error and no log may show.
    """

    def __init__(self, secrets: Collection[str], headers: Mapping[str, str] | None = None) -> None:
        self._secrets = sorted((one for one in secrets if one), key=len, reverse=True)
        self._headers = dict(headers or {})

    def call(self, method: str, url: str, **what: Any) -> httpx.Response:
        """Make a call.

        ``what`` is as httpx takes it: ``json``, ``content``, ``params``, ``headers``.

        Raises:
            UndeliveredError: The service refuses, or cannot be reached.
        """
        try:
            # A connection for each call: a few a night, and none is left open.
            with discreet(_LOG, self._redact), self._client() as client:
                answer = client.request(method, url, **what)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            line = self._redact(one_line(f"{type(error).__name__}: {error}"))[:_SHOWN]
            raise UndeliveredError(f"cannot be reached: {line}", again=True) from None
        if not answer.is_success:
            raise self._refusal(answer)
        return answer

    def _client(self) -> httpx.Client:
        return httpx.Client(timeout=_TIMEOUT_S, headers=self._headers, follow_redirects=False)

    def _refusal(self, answer: httpx.Response) -> UndeliveredError:
        status = answer.status_code
        said = self._redact(one_line(answer.text))[:_SHOWN]
        reason = f"answered {status}" + (f": {said}" if said else "")
        busy = status >= 500 or status in _BUSY
        alone = not busy and not answer.is_redirect and status not in _NOBODY
        return UndeliveredError(reason, alone=alone, again=busy, wait_s=_asked_wait(answer))

    def _redact(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def _asked_wait(answer: httpx.Response) -> float:
    """Give the seconds in ``Retry-After``; 0 where there are none, or a date stands there."""
    try:
        return max(0.0, float(answer.headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0
