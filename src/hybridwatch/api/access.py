"""Who asks, whether they may, and how often.

Bearer tokens, refused as RFC 6750 wants it; and for each who asks a bucket that fills at a steady
rate.
"""

import logging
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from hybridwatch.api.queries import ProblemError
from hybridwatch.api.view import Aging
from hybridwatch.database.tokens import Scope, Token, Tokens, compute_digest
from hybridwatch.errors import TokenError

_BURST_S: Final = 2.0
"""A full bucket holds what comes in so many seconds."""
_MOST: Final = 10_000
"""Buckets that are kept; of more, those are forgotten that were not used for the longest time."""
_log: Final = logging.getLogger(__name__)
_LOOK_S: Final = 2.0
"""How long a token that was revoked is still taken."""
_NOTE_S: Final = 60.0
"""How often it is noted that a token is in use: a write to the database each time."""
_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_REALM: Final = 'Bearer realm="hybridwatch"'


class Limits:
    """The buckets. Threads share them.

    Args:
        per_s: Requests a second that each may send for long.
    """

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._full = max(1.0, per_s * _BURST_S)
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, whose: str) -> None:
        """Take one request out of a bucket."""
        with self._lock:
            now = time.monotonic()
            left, at = self._left.get(whose, (self._full, now))
            left = min(self._full, left + (now - at) * self._per_s)
            is_empty = left < 1
            self._left[whose] = (left if is_empty else left - 1, now)
            self._left.move_to_end(whose)
            if len(self._left) > _MOST:
                self._left.popitem(last=False)
        if is_empty:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"expected at most {self._per_s:g} requests a second of one token, or of one "
                "address without",
                headers={"retry-after": str(math.ceil((1 - left) / self._per_s))},
            )


class Access:
    """Knows the tokens. Threads share it."""

    def __init__(self, tokens: Tokens, *, reads_need_one: bool) -> None:
        self.reads_need_one = reads_need_one
        self._tokens = tokens
        self._known = Aging[Mapping[str, Token]](lambda _: tokens.by_digest(), _LOOK_S)
        self._lock = threading.Lock()
        self._noted: dict[str, float] = {}

    def is_open(self, scope: Scope) -> bool:
        """Whether anybody may, without a token."""
        return scope is Scope.READ and not self.reads_need_one

    def who(self, given: Sequence[str], scope: Scope) -> str:
        """Say whose token came with the headers ``Authorization``; empty where none is needed."""
        if not given:
            if self.is_open(scope):
                return ""
            raise _refused(HTTPStatus.UNAUTHORIZED, "this needs a token", scope)
        token = self._token(given)
        if token is None or not token.is_valid(datetime.now(UTC)):
            said = "the token is unknown, revoked or expired"
            raise _refused(HTTPStatus.UNAUTHORIZED, said, scope, 'error="invalid_token"')
        self._note(token)
        if not self.is_open(scope) and scope not in token.scopes:
            said = f"the token {token.name!r} does not allow this"
            challenge = f'error="insufficient_scope", scope="{scope.value}"'
            raise _refused(HTTPStatus.FORBIDDEN, said, scope, challenge)
        return token.name

    def _token(self, given: Sequence[str]) -> Token | None:
        found = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
        return self._known.get().get(compute_digest(found[1])) if found else None

    def _note(self, token: Token) -> None:
        now = time.monotonic()
        with self._lock:
            if now - self._noted.get(token.name, -_NOTE_S) < _NOTE_S:
                return
            self._noted[token.name] = now
        try:
            self._tokens.used(token.name, datetime.now(UTC))
        except TokenError as error:
            _log.warning("%s", error)  # who may read a store that cannot be written reads on


def _refused(status: HTTPStatus, said: str, scope: Scope, challenge: str = "") -> ProblemError:
    return ProblemError(
        status,
        f"Authorization: {said}",
        field="Authorization",
        expected=f"Bearer, and a token with the scope {scope.value}",
        headers={"www-authenticate": ", ".join(filter(None, [_REALM, challenge]))},
    )
