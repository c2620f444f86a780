"""Values that hang on what others write: made anew when they are asked for and have grown old."""

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

_MOST_SHARE: Final = 0.1
"""Of the time at most this is spent on making one value anew, however long that takes."""

_Value = TypeVar("_Value")


class Aging(Generic[_Value]):
    """A value that may be some seconds old. Threads share it, and one at a time makes it anew.

    Who asks meanwhile gets the one before, unless that was forgotten or nobody asked for long.

    Args:
        make: Makes it; of the value before, or of ``None``.
        old_s: How old it may be before somebody makes it anew; older where making it takes long.
    """

    def __init__(self, make: Callable[[_Value | None], _Value], old_s: float) -> None:
        self._make = make
        self._old_s = old_s
        self._lock = threading.Lock()
        self._noting = threading.Lock()
        self._value: _Value | None = None
        self._until = 0.0
        self._at_latest = 0.0
        self._forgotten = 0

    def at_hand(self) -> _Value | None:
        """Give the value if nobody has to wait for it."""
        return self._value if time.monotonic() < self._until else None

    def get(self) -> _Value:
        """Give the value; what ``make`` raises comes through."""
        if (value := self.at_hand()) is not None:
            return value
        if not self._lock.acquire(blocking=False):
            if (value := self._before()) is not None:
                return value
            self._lock.acquire()
        try:
            return self._made_anew()
        finally:
            self._lock.release()

    def _before(self) -> _Value | None:
        """Give the value that somebody is about to replace, if it is not too old for that."""
        return self._value if time.monotonic() < self._at_latest else None

    def _made_anew(self) -> _Value:
        if (value := self.at_hand()) is not None:
            return value
        began, forgotten = time.monotonic(), self._forgotten
        value = self._value = self._make(self._value)
        now = time.monotonic()
        with self._noting:
            if forgotten == self._forgotten:  # else it may be of before what made it old
                old_s = max(self._old_s, (now - began) / _MOST_SHARE)
                self._until, self._at_latest = now + old_s, now + 2 * old_s
        return value

    def forget(self) -> None:
        """Have it made anew the next time, also where somebody is just making it."""
        with self._noting:
            self._forgotten += 1
            self._until = self._at_latest = 0.0
