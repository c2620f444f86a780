"""The store that is served, looked at again now and then."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hybridwatch.analysis.alerts import AlertGroup
from hybridwatch.api.aging import Aging
from hybridwatch.database.queries import Index
from hybridwatch.database.update import open_index
from hybridwatch.history.alerts import find_groups
from hybridwatch.history.checkout import Checkout
from hybridwatch.reports.jsonform import alert_to_json

_LOOK_S: Final = 2.0
"""How old an answer may be: a look lists every record."""
_READ_S: Final = 10.0
"""How old the scenarios and the policy may be: reading them takes longer, and they move seldom."""


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
class Alerts:
    """Every alert, and a digest of them all.

    Attributes:
        found: By the keys of their members.
        by_key: As ``--json`` tells them, by their own keys, the most urgent first.
        stamp: Changes with any of them.
    """

    found: Mapping[str, AlertGroup]
    by_key: Mapping[str, dict[str, Any]]
    stamp: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one question is answered from.

    Attributes:
        place: What is served.
        index: What it holds.
        alerts: Gives the alerts in it.
    """

    place: Place
    index: Index
    alerts: Callable[[], Alerts]


class StoreView:
    """What a store holds, as of a moment that is hardly past. Threads share it.

    Args:
        place: What is served.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._index = Aging(self._looked, _LOOK_S)
        self._checkout = Aging[Checkout](lambda _: place.checkout(), _READ_S)
        self._alerts = Aging[Alerts](lambda _: self._found(), _LOOK_S)

    def now(self) -> Snapshot:
        """Give everything the store holds.

        Raises:
            DatabaseError: The database cannot be used.
        """
        return Snapshot(self._place, self._index.get(), self._alerts.get)

    @property
    def place(self) -> Place:
        """What is served."""
        return self._place

    def look_again(self) -> None:
        """Have the next question answered from what the store holds then."""
        self._index.forget()
        self._alerts.forget()

    def _looked(self, before: Index | None) -> Index:
        return before if before and before.is_current() else open_index(self._place.results)

    def _found(self) -> Alerts:
        place, now = self._place, datetime.now(UTC)
        found = find_groups(
            place.results, self._index.get(), self._checkout.get(), now, place.triage
        )
        by_key = {alert.key: alert_to_json(alert) for alert in found}
        by_member = {one.matter.key: alert for alert in found for one in alert.members}
        stamp = hashlib.sha256(json.dumps(list(by_key.values())).encode()).hexdigest()
        return Alerts(by_member, by_key, stamp)
