"""What a screen is given, and what it gives."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from hybridwatch.analysis.wording.numbers import age
from hybridwatch.database.queries import Index
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.entry import Entry, load_entry
from hybridwatch.history.runs import runs_by_id
from hybridwatch.pages.document import Document, When
from hybridwatch.pages.query import ViewQuery
from hybridwatch.records.store import Broken


@dataclass(frozen=True, slots=True)
class ScreenSource:
    """Everything that a screen may look at.

    Attributes:
        now: Ages count back from here; UTC.
        triage: The database of what people decided, as a URL; empty for the file next to the
            records.
        read: Reads and judges one record; the live page keeps what it read.
        checkout: Reads what the checkout around the records says; nothing, where there is none.
    """

    results: Path
    index: Index
    now: datetime
    triage: str = ""
    read: Callable[[Path], Entry | Broken] = load_entry
    checkout: Callable[[], Checkout] = Checkout

    def entry(self, run_id: str) -> Entry | Broken | None:
        """Read a run; ``None`` where there is none of this id."""
        row = runs_by_id(self.index).get(run_id)
        return self.read(self.results / row.record) if row else None

    def ago(self, moment: datetime) -> When:
        """Give a moment with its age."""
        return When(moment, age(moment, self.now))


Show: TypeAlias = Callable[[ScreenSource, ViewQuery], Document]
"""A screen: what it says of a store, for one address. Leave ``address`` and ``complaints`` of the
document alone: ``open_view`` fills them in."""
