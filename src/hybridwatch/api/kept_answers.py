"""Answers that were given a moment ago, so that many readers cost as much as one."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_MOST_BYTES: Final = 32 * 2**20


class KeptAnswers:
    """The answers that were asked for last, by their tag; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, tag: str, make: Callable[[], bytes]) -> bytes:
        """Give an answer, made anew if it is not at hand."""
        with self._lock:
            if tag in self._bodies:
                self._bodies.move_to_end(tag)
                return self._bodies[tag]
        body = make()
        with self._lock:
            self._bytes += len(body) - len(self._bodies.pop(tag, b""))
            self._bodies[tag] = body
            while self._bytes > _MOST_BYTES:
                self._bytes -= len(self._bodies.popitem(last=False)[1])
        return body
