"""The store that is served, looked at again now and then; answers are kept for a moment."""

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from hybridwatch.analysis.alerts import AlertGroup
from hybridwatch.database.queries import Index, open_index
from hybridwatch.history.alerts import find_groups
from hybridwatch.history.checkout import Checkout
from hybridwatch.reports.jsonform import alert_to_json

_MOST_SHARE: Final = 0.1
"""Of the time at most this is spent on making one value again, however long that takes."""

_Value = TypeVar("_Value")
_MOST_BYTES: Final = 32 * 2**20
_LOOK_S: Final = 2.0
"""How old an answer may be: a look lists every record."""
_READ_S: Final = 10.0
"""How old the scenarios and the policy may be: reading them takes longer, and they move seldom."""


class Aging(Generic[_Value]):
    """A value that may be some seconds old. Threads share it, and one at a time makes it again.

    Meanwhile others get the one before, unless that was forgotten, or was not read for long.
    ``make`` is given the one before, which may be older than ``old_s`` where making it takes long.
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
        """Give the value if no one has to wait for it."""
        return self._value if time.monotonic() < self._until else None

    def get(self) -> _Value:
        """Give the value; what ``make`` raises comes through."""
        if (value := self.at_hand()) is not None:
            return value
        if not self._lock.acquire(blocking=False):
            # Who is about to replace it takes a moment; it may be too old to wait with.
            if self._value is not None and time.monotonic() < self._at_latest:
                return self._value
            self._lock.acquire()
        try:
            return self._made_anew()
        finally:
            self._lock.release()

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
        """Have it made again the next time, also where another thread is just making it."""
        with self._noting:
            self._forgotten += 1
            self._until = self._at_latest = 0.0


class KeptAnswers:
    """The answers that were given last, by their tag; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, tag: str, make: Callable[[], bytes]) -> bytes:
        """Give an answer, made again if it is not at hand."""
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


@dataclass(frozen=True, slots=True)
class Alerts:
    """Every alert by its members' keys, and as ``--json`` has it by its own, most urgent first."""

    found: Mapping[str, AlertGroup]
    by_key: Mapping[str, dict[str, Any]]
    stamp: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one question is answered from."""

    results: Path
    index: Index
    alerts: Callable[[], Alerts]


class StoreView:
    """What a store holds, as of a moment that is hardly past. Threads share it."""

    def __init__(self, results: Path, checkout: Callable[[], Checkout]) -> None:
        self.results = results
        self._index = Aging(self._looked, _LOOK_S)
        self._checkout = Aging[Checkout](lambda _: checkout(), _READ_S)
        self._alerts = Aging[Alerts](lambda _: self._found(), _LOOK_S)

    def now(self) -> Snapshot:
        """Give everything the store holds."""
        return Snapshot(self.results, self._index.get(), self._alerts.get)

    def look_again(self) -> None:
        """Have the next question answered from what the store holds then."""
        self._index.forget()
        self._alerts.forget()

    def _looked(self, before: Index | None) -> Index:
        return before if before and before.is_current() else open_index(self.results)

    def _found(self) -> Alerts:
        index, checkout, now = self._index.get(), self._checkout.get(), datetime.now(UTC)
        found = find_groups(self.results, index, checkout, now)
        by_key = {alert.key: alert_to_json(alert) for alert in found}
        by_member = {one.subject.key: alert for alert in found for one in alert.members}
        stamp = hashlib.sha256(json.dumps(list(by_key.values())).encode()).hexdigest()
        return Alerts(by_member, by_key, stamp)
