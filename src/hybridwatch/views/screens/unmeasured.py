"""What should have been measured lately and was not: loud wherever somebody looks."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import pandas as pd

from hybridwatch.analysis.freshness import Gap, Measured, gaps, what_counts
from hybridwatch.errors import RecordError
from hybridwatch.index import Index
from hybridwatch.store import read_baselines
from hybridwatch.views.address import address
from hybridwatch.views.controls import bad_on_purpose
from hybridwatch.views.document import Inline, Kind, Line, Link, Notice
from hybridwatch.views.screens.screen import Source
from hybridwatch.views.sentence import plural

_BOTH: Final = 2
_NAMED: Final = 8
"""Lines of a notice; the grid marks every scenario."""


def gaps_here(source: Source) -> tuple[Gap, ...]:
    """Find what the policy expects of this store and nobody measured lately."""
    checkout = source.checkout()
    measured = _measured(source.index, _pinned(source))
    return gaps(measured, checkout.policy, source.now, checkout.scenarios)


def _pinned(source: Source) -> frozenset[tuple[str, str]]:
    try:
        return frozenset((pin.scenario, pin.testbed) for pin in read_baselines(source.results))
    except RecordError:
        return frozenset()  # a gate says what is wrong with the file; no page is to end by it


def gap_of(scenario: str, testbed: str, source: Source) -> Gap | None:
    """Find whether a scenario was not measured lately on a testbed."""
    places = {(scenario, testbed), (scenario, "")}
    return next((gap for gap in gaps_here(source) if (gap.scenario, gap.testbed) in places), None)


def gaps_notice(found: Sequence[Gap]) -> Iterator[Notice]:
    """Name what was not measured lately, with the command that does; nothing without any."""
    if not found:
        return
    lines: list[Line] = [_line(gap) for gap in found[:_NAMED]]
    if len(found) > _NAMED:
        lines.append(f"and {len(found) - _NAMED} more")
    names = dict.fromkeys(gap.scenario for gap in found if gap.scenario)
    if names:
        lines.append("Measure them: hybridwatch run " + " ".join(list(names)[:_NAMED]))
    title = f"{plural(len(found), 'expected measurement')} missing"
    yield Notice(Kind.LOUD, title, tuple(lines))


def _line(gap: Gap) -> tuple[Inline, ...]:
    place = f" on {gap.testbed}" if gap.testbed else ""
    if gap.last is None:
        return (f"{gap.scenario or 'everything'}{place}: {gap.reason}",)
    view = address("scenario", scenario=gap.scenario, testbed=gap.last.testbed)
    return (Link(gap.scenario, view), f"{place}: {gap.reason}")


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
