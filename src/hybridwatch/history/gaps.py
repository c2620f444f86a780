"""What should have been measured lately and was not."""

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pandas as pd

from hybridwatch.analysis.freshness import Gap, Measured, gaps, what_counts
from hybridwatch.database.queries import Index
from hybridwatch.errors import RecordError
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.controls import bad_on_purpose
from hybridwatch.store import read_baselines

_BOTH: Final = 2


def find_gaps(results: Path, index: Index, checkout: Checkout, now: datetime) -> tuple[Gap, ...]:
    """Find what the policy expects of a store and nobody measured lately.

    Args:
        results: The results folder.
        index: What it holds.
        checkout: The policy, and the scenarios that there are.
        now: Ages count back from here; aware.
    """
    measured = _measured(index, _pinned(results))
    return gaps(measured, checkout.policy, now, checkout.scenarios)


def _pinned(results: Path) -> frozenset[tuple[str, str]]:
    try:
        return frozenset((pin.scenario, pin.testbed) for pin in read_baselines(results))
    except RecordError:
        return frozenset()  # a gate says what is wrong with the file; no page is to end by it


@lru_cache(maxsize=1)  # what an index says never changes
def _measured(index: Index, pinned: frozenset[tuple[str, str]]) -> tuple[Measured, ...]:
    """The newest run of each scenario on each testbed, of those that count."""
    runs = index.runs()
    runs = runs[runs["side"] == 0]
    bad = runs["record"].isin(bad_on_purpose(index))
    others = runs[~bad]
    places = zip(others["scenario"], others["testbed"], strict=True)
    compared = bool((others["sides"] == _BOTH).any()) or not pinned.isdisjoint(places)
    return what_counts(_newest(others), _newest(runs[bad]), compared=compared)


def _newest(runs: pd.DataFrame) -> Iterator[Measured]:
    rows: Iterator[Any] = runs.drop_duplicates(["scenario", "testbed"], keep="last").itertuples()
    for row in rows:
        yield Measured(row.scenario, row.testbed, row.started_at.to_pydatetime(), row.run)
