"""Which definitions of a scenario have ended in a store, and what goes on in their place."""

from collections.abc import Mapping
from typing import TypeAlias

from hybridwatch.analysis.freshness import find_successor, successors
from hybridwatch.database.queries import Index
from hybridwatch.history.cached import cached_per_index

Place: TypeAlias = tuple[str, str, str]
"""A scenario, a testbed, and the digest of a definition."""


@cached_per_index
def ended_definitions(index: Index, /) -> Mapping[Place, str]:
    """Give the digest that goes on today in place of each definition that has ended."""
    runs = index.runs()
    found: dict[Place, str] = {}
    for (scenario, testbed), own in runs.groupby(["scenario", "testbed"], sort=False):
        ended = successors(zip(own["digest"], own["started_at"], strict=True))
        found |= {(str(scenario), str(testbed), old): find_successor(old, ended) for old in ended}
    return found
