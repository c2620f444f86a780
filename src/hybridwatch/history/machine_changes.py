"""When the machine changed under both builds: the unchanged baseline is the control.

A night on which the baseline of most scenarios of a testbed moves the same way, and the contender
with it, is the machine's. Levels are logarithms of how slow a build is, medians over metrics, then
over scenarios. It has to last three nights, less where a recorded fact of the machine changed.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from hybridwatch.analysis.change_point import ChangePoint
from hybridwatch.analysis.change_point.noise import compute_noise
from hybridwatch.analysis.detection import kind_of
from hybridwatch.database.queries import Index
from hybridwatch.history.runs import cached_per_index
from hybridwatch.metrics import Kind, Metric, find_metric
from hybridwatch.records.identity import Role

Array: TypeAlias = npt.NDArray[np.float64]
Fact: TypeAlias = tuple[str, str, str]
"""What changed, from what, to what."""

_SMALLEST: Final = 0.025
"""A smaller change of the machine is not named; what compares two runs has margins above it."""
_BAR: Final = 3.0
"""Standard deviations of a night by which the machine has to move."""
_LASTS: Final = 3
"""Nights for which it has to stay; more where single nights are slow so often that as many in a
row would be chance."""
_LONGEST: Final = 6
_CHANCE: Final = 0.0007
"""Of as many slow nights in a row, by which a quarter's nights have one in 20 times."""
_BEFORE: Final = 20
_FEWEST: Final = 5
"""Nights before, without which there is no level to move from."""
_KNOWN: Final = 6
"""Nights from which it is known how much they differ."""
_LATEST: Final = 60
"""Nights that say how much nights differ."""
_SEEN: Final = 3
"""Nights before that a series needs."""
_MOST: Final = 2 / 3
"""Share of the scenarios that have to move by half of the change."""
_HALF: Final = 0.5
_ALIKE: Final = (0.5, 2.0)
"""A change of a series between these times the machine's is the machine's."""
_TIMED: Final = frozenset({Kind.TIME, Kind.RATE})
_DAY_NS: Final = 24 * 3600 * 10**9
_CELL: Final = ["scenario", "digest", "metric", "statistic"]
_COMPARED: Final = (Role.COMPARISON.value, Role.A_A.value)


@dataclass(frozen=True, slots=True)
class MachineChange:
    """A machine that is not what it was, between the run ``before`` and the one ``at``.

    ``facts`` is what is recorded of it and changed. ``slower`` is how much slower the baseline is
    since, as a logarithm, 0 where nothing moved; it ``moved`` in so many ``of`` the scenarios.
    """

    testbed: str
    before: datetime
    at: datetime
    facts: tuple[Fact, ...]
    slower: float = 0.0
    moved: int = 0
    of: int = 0

    @property
    def text(self) -> str:
        """All in one sentence, without a capital and a full stop."""
        facts = ", ".join(f"{name} {old} to {new}" for name, old, new in self.facts)
        if not self.slower:
            return f"the machine has since {self.at:%Y-%m-%d} another {facts}; no build moved"
        why = facts or "nothing that is recorded of it is another"
        return (
            f"the machine changed on {self.at:%Y-%m-%d}: {why}; both builds "
            f"{_percent(self.slower)} in {self.moved} of {self.of} scenarios"
        )

    def explains(self, point: ChangePoint, levels: pd.DataFrame, metric: Metric) -> bool:
        """Whether a change of a series of ``levels`` is the machine's: place, way, size."""
        if not self.slower or metric.kind not in _TIMED or point.effect <= -1:
            return False
        # The baseline decides the night: a change point may come a run too early or too late.
        last = len(levels) - 1
        early, late = (
            levels["started_at"].iloc[min(max(place, 0), last)]
            for place in (point.first - 2, point.last + 1)
        )
        way = metric.better.worse
        low, high = _ALIKE
        return (
            early < self.at <= late and low <= way * math.log1p(point.effect) / self.slower <= high
        )

    def taken_off(self, values: Array, moments: pd.Series, metric: Metric) -> Array:
        """Give the values as they would be without the change."""
        is_moved = (moments >= self.at).to_numpy() & (metric.kind in _TIMED)
        return values * np.exp(np.where(is_moved, -metric.better.worse * self.slower, 0.0))


@cached_per_index
def machine_changes(index: Index, /) -> tuple[MachineChange, ...]:
    """Find every change of a testbed's machine, oldest first."""
    machines = index.machines()
    names = [*_CELL, "record", "testbed", "contender", "started_at", "old", "new"]
    verdicts = index.verdicts(roles=_COMPARED, only=names)
    runs = index.runs()
    baselines = runs[runs["side"] == 0].set_index("record")["build"]
    verdicts["build"] = verdicts["record"].map(baselines)
    found: list[MachineChange] = []
    for testbed, own in machines.groupby("testbed", sort=False):
        mine = verdicts[verdicts["testbed"] == testbed]
        found += _find_changes(str(testbed), own.reset_index(drop=True), mine)
    return tuple(sorted(found, key=lambda one: one.at))


def changes_since(index: Index, moment: datetime) -> list[MachineChange]:
    """Give the changes of machines that moved both builds, since a moment, the newest first."""
    return [one for one in reversed(machine_changes(index)) if one.slower and one.at >= moment]


def _find_changes(
    testbed: str, machines: pd.DataFrame, verdicts: pd.DataFrame
) -> Iterator[MachineChange]:
    moments = machines["started_at"]
    border = _quiet_time(moments)
    nights = _nights(moments, border)
    firsts = np.flatnonzero(np.diff(nights, prepend=nights[0] - 1))
    facts: defaultdict[int, list[Fact]] = defaultdict(list)
    for night, fact in _new_facts(machines["machine"].tolist(), nights):
        facts[night].append(fact)

    def edges(night: int) -> tuple[datetime, datetime]:
        place = int(np.searchsorted(nights, night))
        return moments.iloc[max(place - 1, 0)].to_pydatetime(), moments.iloc[place].to_pydatetime()

    for night, slower, moved, of in _moves(verdicts, border, nights[firsts], facts):
        # What changed on the evening before, or on the next, is the same upgrade.
        near = [fact for each in (night - 1, night, night + 1) for fact in facts.pop(each, ())]
        yield MachineChange(testbed, *edges(night), tuple(near), slower, moved, of)
    for night, own in facts.items():
        yield MachineChange(testbed, *edges(night), tuple(own))


def _new_facts(
    machines: Sequence[str], nights: npt.NDArray[np.int64]
) -> Iterator[tuple[int, Fact]]:
    """Yield what changed from run to run, and in which night; what is not known changes nothing."""
    known: dict[str, str] = {}
    for night, text in zip(nights.tolist(), machines, strict=True):
        for name, new in json.loads(text).items():
            old = known.get(name, new)
            known[name] = new
            if old != new:
                yield night, (name, old, new)


def _quiet_time(moments: pd.Series) -> int:
    """Find the middle of the longest pause of all days, in ns: no night ends at midnight."""
    times = np.unique(_nanoseconds(moments) % _DAY_NS)
    pauses = np.diff(times, append=times[0] + _DAY_NS)
    longest = int(pauses.argmax())
    return int((times[longest] + pauses[longest] // 2) % _DAY_NS)


def _nights(moments: pd.Series, border: int) -> npt.NDArray[np.int64]:
    return (_nanoseconds(moments) - border) // _DAY_NS


def _nanoseconds(moments: pd.Series) -> npt.NDArray[np.int64]:
    return np.asarray(moments.dt.as_unit("ns").astype("int64"), dtype=np.int64)


def _moves(
    verdicts: pd.DataFrame, border: int, nights: npt.NDArray[np.int64], facts: Iterable[int]
) -> Iterator[tuple[int, float, int, int]]:
    timed = [name for name in verdicts["metric"].unique() if kind_of(name) in _TIMED]
    is_timed = verdicts["metric"].isin(timed)
    rows = verdicts[is_timed & (verdicts["old"] > 0) & (verdicts["new"] > 0)]
    if rows.empty:
        return
    ways = {name: find_metric(name).better.worse for name in timed}
    rows = rows.assign(night=_nights(rows["started_at"], border))
    way = rows["metric"].map(ways).to_numpy()
    baseline, contender = (
        _levels(rows.assign(level=way * np.log(rows[side])), [*_CELL, build], nights)
        for side, build in (("old", "build"), ("new", "contender"))
    )
    places = {night: at for at, night in enumerate(nights.tolist())}
    changed = {places[night] for night in facts if night in places}
    for at, slower, moved in find_moves(baseline, contender, changed):
        yield int(nights[at]), slower, int(moved.sum()), moved.size


def _levels(rows: pd.DataFrame, key: list[str], nights: npt.NDArray[np.int64]) -> Array:
    """Lay out levels by scenario, series and night; NaN where nothing was measured."""
    table = rows.groupby([*key, "night"])["level"].median().unstack("night").reindex(columns=nights)
    scenarios, codes = np.unique(table.index.get_level_values("scenario"), return_inverse=True)
    counts = np.bincount(codes)
    found = np.full((len(scenarios), int(counts.max()), len(nights)), np.nan)
    nth = np.arange(len(codes)) - (np.cumsum(counts) - counts)[codes]  # the index is sorted
    found[codes, nth] = table.to_numpy()
    return found


def find_moves(
    baseline: Array, contender: Array, changed: Iterable[int]
) -> Iterator[tuple[int, float, npt.NDArray[np.bool_]]]:
    """Find the nights on which both builds moved, and stayed where they then were.

    Both arrays hold levels by scenario, series and night. ``changed`` names the nights on which a
    fact of the machine changed. Each has how much slower the baseline is since, and which moved.
    """
    changed_nights, start = set(changed), 0
    alone: list[float] = []
    for night in range(baseline.shape[-1]):
        by_scenario = _shifts(baseline, start, night)
        common = _medians(by_scenario, 0)
        earlier = np.array(alone[-_LATEST:])
        alone += [float(common[0])] if np.isfinite(common[0]) else []
        shown = common[np.isfinite(common)]
        if night - start < _FEWEST or not shown.size:
            continue
        slower, is_known = float(np.median(shown[:_LASTS])), night in changed_nights
        lasts = _needed(earlier, slower)
        bar = _bar(earlier, is_known_change=is_known)
        if shown.size < (1 if is_known else lasts) or abs(slower) < bar:
            continue
        moved = _medians(by_scenario[:, :lasts], 1) / slower >= _HALF
        if moved.mean() < _MOST or np.any(shown[:lasts] / slower < _HALF):
            continue
        others = _medians(_shifts(contender, start, night)[:, :lasts], 0)
        if _medians(others, 0) / slower >= _HALF:  # not where no contender was there before
            yield night, slower, moved
            start = night


def _needed(earlier: Array, slower: float) -> int:
    """How many nights a change has to stay, by how often single nights moved half as far."""
    moved = int(np.sum(earlier * np.sign(slower) >= _HALF * abs(slower)))
    often = (moved + 1) / (earlier.size + 2)
    return min(max(_LASTS, math.ceil(math.log(_CHANCE) / math.log(often))), _LONGEST)


def _bar(earlier: Array, *, is_known_change: bool) -> float:
    """How far the machine has to move to be distinguished from nights that differ."""
    if earlier.size < _KNOWN:
        return _SMALLEST if is_known_change else math.inf
    noise = compute_noise(earlier)
    return max(_SMALLEST, _BAR * noise.scale / math.sqrt(1 - noise.correlation))


def _shifts(levels: Array, start: int, night: int) -> Array:
    """How much each scenario moved on a night and the next ones, against the nights before."""
    before = levels[:, :, max(start, night - _BEFORE) : night]
    if not before.shape[-1]:
        return np.full((len(levels), 1), np.nan)
    usual = np.where(np.isfinite(before).sum(axis=-1) >= _SEEN, _medians(before, -1), np.nan)
    return _medians(levels[:, :, night : night + _LONGEST] - usual[..., None], 1)


def _medians(values: Array, axis: int) -> Array:
    """Medians of what is finite; NaN of nothing."""
    ranked = np.sort(values, axis=axis)  # NaN comes last
    count = np.isfinite(values).sum(axis=axis, keepdims=True)
    low, high = (
        np.take_along_axis(ranked, np.maximum(place, 0), axis=axis)
        for place in ((count - 1) // 2, np.minimum(count // 2, values.shape[axis] - 1))
    )
    return np.asarray((low + high).squeeze(axis) / 2)


def _percent(slower: float) -> str:
    change = abs(math.expm1(slower))
    return f"{change:.1%}".replace("%", " % slower" if slower > 0 else " % faster")
