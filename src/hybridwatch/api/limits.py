"""How often somebody may ask: a bucket for each, which fills at a steady rate."""

import math
import threading
import time
from collections import OrderedDict
from http import HTTPStatus
from typing import Final

from hybridwatch.api.problem import ProblemError

_BURST_S: Final = 2.0
"""A full bucket holds what comes in so many seconds."""
_MOST: Final = 10_000
"""Buckets that are kept; of more, those are forgotten that were not used for the longest time."""


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
        """Take one request out of a bucket.

        Raises:
            ProblemError: There is none left; the answer says when there will be.
        """
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
