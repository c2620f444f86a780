"""How far pip is with a lock, for a person who waits: its own words, counted."""

import time
from collections.abc import Callable
from typing import Final

from hybridwatch.engines.pip import BIG_DOWNLOAD

_MINUTE: Final = 60.0
_PACKAGE: Final = ("Collecting ", "Processing ")
"""How pip begins a package: one from an index, one from a folder."""
_OFTEN: Final = 20
"""Packages from one line to the next."""
_AHEAD: Final = 2
"""Packages that tell nothing of the others: the release itself comes first, and is large."""


class LockProgress:
    """Hears what pip prints, and says how many packages it has looked at.

    Args:
        say: Takes each line.
        title: What each begins with.
        expected: How many there will be, about; as many as the newest build has.
        clock: Seconds.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        title: str,
        expected: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._title = title
        self._expected = expected
        self._clock = clock
        self._found = 0
        self._begin = clock()

    def __call__(self, line: str) -> None:
        """Hear a line."""
        if download := BIG_DOWNLOAD.match(line):
            self._say(f"{self._title}: downloading {download[1]} ({download[2]})")
        elif line.startswith(_PACKAGE):
            self._found += 1
            if self._found <= _AHEAD:
                self._begin = self._clock()
            if self._found % _OFTEN == 0:
                counted = f"{self._found} of about {self._expected} packages"
                self._say(f"{self._title}: {counted}{self._left()}")

    def _left(self) -> str:
        """Guess from the packages so far; nothing once there are more than were expected."""
        to_come = self._expected - self._found
        if to_come <= 0:
            return ""
        seconds = (self._clock() - self._begin) / self._found * to_come
        return f", about {max(1, round(seconds / _MINUTE))} min left"
