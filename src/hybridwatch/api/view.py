"""The store that is served, looked at again now and then."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.database.queries import Index
from hybridwatch.database.update import open_index
from hybridwatch.history.checkout import Checkout

_LOOK_S: Final = 2.0
"""How old an answer may be: a look lists every record."""


@dataclass(frozen=True, slots=True)
class Place:
    """What is served.

    Attributes:
        results: The results folder.
        checkout: Gives the scenarios and the policy that judge alerts, as they are now.
        triage: The database of what people decided, as a URL; empty for the folder's.
    """

    results: Path
    checkout: Callable[[], Checkout]
    triage: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one question is answered from."""

    place: Place
    index: Index


class StoreView:
    """What a store holds. Threads share it: one looks, the others wait for it.

    Args:
        place: What is served.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._looked = 0.0

    def now(self) -> Snapshot:
        """Give everything the store holds, as of a moment that is hardly past.

        Raises:
            DatabaseError: The database cannot be used.
        """
        with self._lock:
            if self._index is None or time.monotonic() - self._looked >= _LOOK_S:
                if self._index is None or not self._index.is_current():
                    self._index = open_index(self._place.results)
                self._looked = time.monotonic()
            return Snapshot(self._place, self._index)
