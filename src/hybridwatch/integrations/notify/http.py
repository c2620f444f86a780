"""HTTP for channels: one call, and what a failure of it means."""

import logging
from collections.abc import Collection, Mapping
from typing import Any, Final

import httpx

from hybridwatch.integrations.github.discretion import discreet
from hybridwatch.integrations.notify.door import UndeliveredError
from hybridwatch.reports.escape import one_line

_TIMEOUT_S: Final = 20.0
_SHOWN: Final = 200
_BUSY: Final = frozenset({408, 425, 429})
_NOBODY: Final = frozenset({401, 403, 404, 410})
"""The address, or the key to it, is wrong: whatever is sent there meets the same answer."""
_LOG: Final = logging.getLogger("httpx")


class Http:
    """A client that follows no redirection, so that no secret goes astray.

    Args:
        secrets: What no error and no log may show.
        headers: Of every call.
    """

    def __init__(self, secrets: Collection[str], headers: Mapping[str, str] | None = None) -> None:
        self._secrets = sorted((one for one in secrets if one), key=len, reverse=True)
        self._headers = dict(headers or {})

    def call(self, method: str, url: str, **what: Any) -> httpx.Response:
        """Make a call.

        Args:
            method: Of HTTP.
            url: Whole.
            what: As httpx takes it: ``json``, ``content``, ``params``, ``headers``.

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
