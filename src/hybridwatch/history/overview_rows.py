"""The overview's grid: what holds now of every scenario, in a few columns of metrics."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, NamedTuple

import pandas as pd

from hybridwatch.analysis.verdict import ORDER, Verdict
from hybridwatch.database.moment import STANDING
from hybridwatch.database.queries import Index
from hybridwatch.history.runs import cached_per_index
from hybridwatch.metrics import Metric, find_metric
from hybridwatch.records.identity import Role

COLUMNS: Final[Mapping[str, str]] = {
    "contracts": "contract.*",
    "answers": "accuracy.*",
    "throughput": "output_throughput",
    "ttft": "ttft",
    "tpot": "tpot",
    "host syncs": "host_syncs_per_step",
    "others": "*",
}
"""Metrics under each heading; the first that fits has it, so that nothing is left out."""

_SAME_NIGHT: Final = timedelta(days=1)
_PART: Final = ["scenario", "testbed"]


class VerdictRow(NamedTuple):
    """A verdict as the index has it."""

    scenario: str
    digest: str
    baseline: str
    contender: str
    testbed: str
    metric: str
    statistic: str
    verdict: str
    effect: float
    run: str
    started_at: pd.Timestamp
    stale: bool

    @property
    def question(self) -> tuple[str, ...]:
        """What makes another verdict an answer to the same."""
        return tuple(getattr(self, name) for name in STANDING)


@dataclass(frozen=True, slots=True)
class CellStatus:
    """The newest verdict on one metric (``None``: unknown) and pair; medians oldest first."""

    row: VerdictRow
    metric: Metric | None
    name: str
    verdict: Verdict
    medians: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class GridRow:
    """A scenario on a testbed: the builds measured within a day of its newest run.

    ``pairs`` has baseline and contender of each comparison that counts, the last measured first;
    ``cells`` the loudest standing under each heading, of ``counted`` ones.
    """

    scenario: str
    testbed: str
    newest: datetime
    pairs: tuple[tuple[str, str], ...]
    cells: Mapping[str, CellStatus]
    counted: Mapping[str, int]

    @property
    def loudest(self) -> CellStatus:
        """What to look at first."""
        return min(self.cells.values(), key=_loudness)

    @property
    def undecided(self) -> tuple[str, ...]:
        """What could not be decided of a row that is settled all the same, as ``settled_runs``."""
        throughput = self.cells.get("throughput")
        is_settled = throughput is not None and throughput.verdict.is_good_news
        if not is_settled or self.loudest.verdict is not Verdict.INCONCLUSIVE:
            return ()
        each = self.cells.values()
        return tuple(cell.name for cell in each if cell.verdict is Verdict.INCONCLUSIVE)

    @property
    def verdict(self) -> Verdict:
        """The loudest verdict, but for what is undecided in a row that is settled."""
        return Verdict.EQUIVALENT if self.undecided else self.loudest.verdict


def current(latest: pd.DataFrame) -> pd.DataFrame:
    """Keep what belongs to the last day of each scenario and testbed, of any rows."""
    pair = [*_PART, "digest", "baseline", "contender"]
    of_pair = latest.groupby(pair)["started_at"].transform("max")
    of_scenario = latest.groupby(_PART)["started_at"].transform("max")
    return latest[of_pair > of_scenario - _SAME_NIGHT]


def build_grid(verdicts: pd.DataFrame, index: Index, runs_back: int) -> list[GridRow]:
    """Lay out verdicts from ``current`` as a grid, the loudest row first, with sparklines."""
    medians = _medians(index, runs_back)
    parts: defaultdict[tuple[str, str], list[VerdictRow]] = defaultdict(list)
    for row in reversed(verdict_rows(verdicts)):
        parts[row.scenario, row.testbed].append(row)
    rows = [_row(*place, part, medians) for place, part in parts.items()]
    # Newest first where they are equally loud.
    rows.sort(key=lambda row: row.newest, reverse=True)
    return sorted(rows, key=lambda row: ORDER.index(row.verdict))


@cached_per_index
def settled_runs(index: Index, /) -> Mapping[str, int]:
    """Count what is undecided in each run that is settled all the same, by its record.

    A run in which nothing is worse is settled once its throughput is decided: one time or a share
    of few answers that no number of its trials could decide is then a remark on it.
    """
    counted = index.tallies((Role.COMPARISON.value,), COLUMNS["throughput"].__eq__)
    is_special, is_open = counted["n_special"] > 0, counted["verdict"] == Verdict.INCONCLUSIVE.value
    is_good = counted["verdict"].isin([v.value for v in Verdict if v.is_good_news])
    decided = counted["record"][is_special & is_good]
    rest = counted[is_open & ~is_special & counted["record"].isin(decided)]
    return dict(zip(rest["record"], rest["n"].tolist(), strict=True))


@lru_cache(maxsize=1024)
def render_heading(metric_id: str) -> str:
    """Find the heading under which a metric is shown."""
    return next(name for name, wanted in COLUMNS.items() if fnmatchcase(metric_id, wanted))


@lru_cache(maxsize=1024)
def render_name(metric_id: str, statistic: str) -> tuple[Metric | None, str]:
    """Find a metric and name it with its statistic; one that is not known keeps both words."""
    try:
        metric = find_metric(metric_id)
    except KeyError:
        return None, f"{metric_id} {statistic}"
    return metric, metric.label(statistic)


def verdict_rows(verdicts: pd.DataFrame) -> list[VerdictRow]:
    """Take verdicts out of a frame; column by column, since row by row is slow."""
    columns = (verdicts[name].tolist() for name in VerdictRow._fields)
    return [VerdictRow(*row) for row in zip(*columns, strict=True)]


def _row(
    scenario: str,
    testbed: str,
    part: Sequence[VerdictRow],
    medians: Mapping[tuple[str, ...], list[float]],
) -> GridRow:
    found: defaultdict[str, list[CellStatus]] = defaultdict(list)
    for row in part:
        found[render_heading(row.metric)].append(_standing(row, medians.get(row.question, ())))
    ordered = [standing.row for each in found.values() for standing in each]
    return GridRow(
        scenario=scenario,
        testbed=testbed,
        newest=max(row.started_at for row in part).to_pydatetime(),
        pairs=tuple(dict.fromkeys((row.baseline, row.contender) for row in ordered)),
        cells={name: min(each, key=_loudness) for name, each in found.items()},
        counted={name: len(each) for name, each in found.items()},
    )


def _standing(row: VerdictRow, medians: Sequence[float]) -> CellStatus:
    named = render_name(row.metric, row.statistic)
    return CellStatus(row, *named, Verdict(row.verdict), tuple(medians))


def _loudness(standing: CellStatus) -> tuple[int, float]:
    """Order by verdict, then by size; a size that is not there comes last."""
    size = abs(standing.row.effect)
    return ORDER.index(standing.verdict), -size if size == size else 0.0


@lru_cache(maxsize=1)  # what an index says never changes
def _medians(index: Index, runs_back: int) -> Mapping[tuple[str, ...], list[float]]:
    lines = index.sparklines(runs_back)
    keys = zip(*(lines[name] for name in STANDING), strict=True)
    return dict(zip(keys, lines["medians"], strict=True))


@lru_cache(maxsize=1)  # what an index says never changes
def since_when(index: Index) -> Mapping[tuple[str, ...], datetime]:
    """Say of each question since when its newest verdict holds without another between."""
    last = index.turns()
    questions = zip(*(last[name].tolist() for name in STANDING), strict=True)
    moments = (moment.to_pydatetime() for moment in last["started_at"])
    return dict(zip(questions, moments, strict=True))
