"""What should have been measured recently and was not."""

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pandas as pd

from hybridwatch.analysis.freshness import Gap, LastMeasured, gaps, what_counts
from hybridwatch.database.queries import Index
from hybridwatch.errors import RecordError
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.controls import bad_on_purpose
from hybridwatch.records.store import read_baselines, read_examples

_BOTH: Final = 2


def find_gaps(results: Path, index: Index, checkout: Checkout, now: datetime) -> tuple[Gap, ...]:
    """Find what the policy expects of a store and was not measured in time.

    Ages count back from ``now``, which has a time zone.
    """
    measured = _measured(index, *_noted(results))
    if measured is None:
        return ()
    return gaps(measured, checkout.policy, now, checkout.scenarios)


def _noted(results: Path) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
    """Places that have a pinned baseline, and runs that are examples."""
    try:
        pins, examples = read_baselines(results), read_examples(results)
    except RecordError:
        # A gate says what is wrong with the file; no page is to end by it.
        return frozenset(), frozenset()
    return frozenset((pin.scenario, pin.testbed) for pin in pins), examples


@lru_cache(maxsize=1)  # what an index says never changes
def _measured(
    index: Index, pinned: frozenset[tuple[str, str]], examples: frozenset[str]
) -> tuple[LastMeasured, ...] | None:
    """The newest run of each scenario on each testbed, of those that count.

    Nothing can be overdue where nothing but examples was ever measured: then ``None``.
    """
    runs = index.runs()
    every = runs[runs["side"] == 0]
    runs = every[~every["run"].isin(examples)]
    if runs.empty and not every.empty:
        return None
    bad = runs["record"].isin(bad_on_purpose(index))
    others = runs[~bad]
    places = zip(others["scenario"], others["testbed"], strict=True)
    compared = bool((others["sides"] == _BOTH).any()) or not pinned.isdisjoint(places)
    return what_counts(_newest(others), _newest(runs[bad]), compared=compared)


def _newest(runs: pd.DataFrame) -> Iterator[LastMeasured]:
    rows: Iterator[Any] = runs.drop_duplicates(["scenario", "testbed"], keep="last").itertuples()
    for row in rows:
        yield LastMeasured(row.scenario, row.testbed, row.started_at.to_pydatetime(), row.run)
