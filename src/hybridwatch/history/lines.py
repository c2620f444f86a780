"""Lines of a history: one metric over runs, a line for each line of builds and definition."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, product
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from packaging.version import InvalidVersion, Version
from scipy import special

from hybridwatch.analysis.change_point import ChangePoint, History, describe_drifts
from hybridwatch.analysis.change_point.examine import ENOUGH_POINTS, examine
from hybridwatch.analysis.change_point.noise import two_levels
from hybridwatch.analysis.freshness import change_text, successors
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.database.moment import Series
from hybridwatch.errors import HistoryError
from hybridwatch.history.machine_changes import MachineChange
from hybridwatch.metrics import Kind, Metric

MOST_POINTS: Final = 120
"""Trials that a chart draws before it leaves some out: more hide each other, and drawing them is
most of what a browser does for a chart."""
_FEWEST: Final = 2
"""Trials that say anything about a side: its lowest and its highest."""

_LAST_NIGHT: Final = np.timedelta64(36, "h")
_MISSED: Final = 1.5
"""Usual times between runs from which on one is missing, if it is more than a night."""
_LONG: Final = np.timedelta64(8, "D")
"""Runs further apart are never joined."""

_TAIL: Final = 0.025
_NUMBER: Final = re.compile(r"\d+")
_ANY_RELEASE: Final = "*"
_NAMED: Final = 3
"""Settings by which a definition is named."""
_SHORT: Final = 8

Settings: TypeAlias = Mapping[str, Mapping[str, str]]
"""Settings of a scenario's definitions, by digest and name, where they are stored."""


@dataclass(frozen=True, slots=True)
class Line:
    """One history of one metric.

    Attributes:
        name: The line of builds; over releases, with ``*`` for the release.
        load: What sets the scenario's definition apart from others that are drawn; else empty.
        levels: A row for each side of each run, in order: as ``Series.levels``, and ``low``,
            ``high`` (where the median lies) and ``place`` (along the axis).
        points: The trials to be drawn, as ``Series.points``, and ``place``, ``median``, ``low``,
            ``high`` and ``n`` of their side.
        breaks: Where it goes on from lines of a definition that has ended.
    """

    name: str
    load: str
    levels: pd.DataFrame
    points: pd.DataFrame
    history: History
    over_releases: bool = False
    breaks: tuple["Break", ...] = ()

    @property
    def digest(self) -> str:
        """Of the scenario's definition."""
        return str(self.levels["digest"].iloc[0])

    @property
    def title(self) -> str:
        """Its name among all that are drawn."""
        return f"{self.name} ({self.load})" if self.load else self.name

    @property
    def is_long_enough(self) -> bool:
        """Whether noise and change could be distinguished, or need not be."""
        return len(self.levels) >= ENOUGH_POINTS or bool(self.history.points)

    @property
    def pieces(self) -> list[slice]:
        """Stretches that a line may join: runs over releases, or in time, none of them missing."""
        if self.over_releases:
            return [slice(0, len(self.levels))]
        moments = self.levels["started_at"].dt.tz_localize(None).to_numpy("datetime64[s]")
        waits = np.diff(moments)
        if not waits.size:
            return [slice(0, len(moments))]
        usual = max(_LAST_NIGHT, np.median(waits) * _MISSED)
        edges = np.flatnonzero((waits > usual) | (waits > _LONG)) + 1
        return [slice(a, b) for a, b in pairwise((0, *edges.tolist(), len(moments)))]

    @property
    def steps(self) -> "Iterator[LineStep]":
        """What changed from one run to the next, oldest first."""
        names = ("release", "fixes", "build")
        releases, fixes, builds = (self.levels[name].tolist() for name in names)
        for at in range(1, len(releases)):
            release = releases[at] if releases[at] != releases[at - 1] else ""
            build = builds[at] if not release and builds[at] != builds[at - 1] else ""
            moved = _moved(fixes[at - 1], fixes[at]) if fixes[at] != fixes[at - 1] else ()
            if release or build or moved:
                yield LineStep(at, release, build, moved)


@dataclass(frozen=True, slots=True)
class Break:
    """Where, at its first run, a changed definition of the scenario began another series."""

    at: pd.Timestamp
    run: str
    reason: str


@dataclass(frozen=True, slots=True)
class LineStep:
    """A run, at one of the levels, whose engine is another; what is the same is empty."""

    at: int
    release: str
    build: str
    fixes: tuple[str, ...]

    @property
    def text(self) -> str:
        """All in one line."""
        release = f"release {self.release}" if self.release else ""
        build = f"build {self.build}" if self.build else ""
        return ", ".join(filter(None, (release, build, *self.fixes)))


def build_lines(
    series: Series,
    metric: Metric,
    *,
    newest: int,
    over_releases: bool,
    builds: Sequence[str] = (),
    settings: Settings = MappingProxyType({}),
    machines: Sequence[MachineChange] = (),
) -> list[Line]:
    """Lay out a series, of one scenario, testbed, metric and statistic, as lines.

    Of each line the ``newest`` last runs are shown and examined. Where ``over_releases``, builds
    that differ only in their release make one line, ordered by release and then by time; else a
    line is a build over time. ``builds`` names which lines of builds; none for all. ``settings`` is
    what definitions of the scenario ask for, by their digests, and ``machines`` how the testbed's
    machine changed, for lines over time.

    Lines are in the order of ``builds``, else the last measured first; of each definition the last
    first.
    """
    levels, points = _banded(_of_tonight(series))
    names = list_line_names(levels, over_releases=over_releases)
    wanted = builds or tuple(dict.fromkeys(reversed(names.tolist())))
    places = _places(levels, over_releases=over_releases)
    digests = levels["digest"].to_numpy()
    chosen: list[tuple[str, npt.NDArray[np.int64]]] = []
    for name, digest in product(wanted, dict.fromkeys(reversed(digests.tolist()))):
        rows = np.flatnonzero((names == name) & (digests == digest))
        order = rows[np.lexsort((rows, places[rows]))][-newest:]
        if len(order):
            chosen.append((name, order))
    shown = [order for _, order in chosen]
    drawn = points[_drawn(levels, points, np.concatenate(shown))] if shown else points
    placed = levels.assign(place=places)
    count = levels["n"].to_numpy(np.int64)
    trials = np.split(points["value"].to_numpy(), np.cumsum(count)[:-1])
    lines = [
        replace(
            _line(name, order, placed, drawn, metric, [trials[at] for at in order], machines),
            over_releases=over_releases,
        )
        for name, order in chosen
    ]
    return _with_definitions(lines, levels, settings) if len(np.unique(digests)) > 1 else lines


def compute_medians(
    levels: pd.DataFrame,
    metric: Metric,
    name: str,
    newest: int,
    over_releases: bool,
    machines: Sequence[MachineChange] = (),
) -> Iterator[Line]:
    """Give the newest line of a name, without trials and bands, if there is such a line."""
    levels = levels[_is_of_tonight(levels)]
    levels = levels[list_line_names(levels, over_releases=over_releases) == name]
    if levels.empty:
        return
    levels = levels[levels["digest"] == levels["digest"].iloc[-1]]
    order = np.argsort(_places(levels, over_releases=over_releases), kind="stable")[-newest:]
    ordered = levels.iloc[order]
    history = _examined(ordered, metric, machines)
    yield Line(name, "", ordered, pd.DataFrame(), history, over_releases)


def find_verdict(point: ChangePoint, metric: Metric) -> Verdict:
    """Whose colour a confirmed change has."""
    return Verdict.REGRESSION if metric.better.is_worse(point.effect) else Verdict.IMPROVEMENT


def _of_tonight(series: Series) -> Series:
    kept = _is_of_tonight(series.levels)
    points = series.points[np.repeat(kept, series.levels["n"])]
    return Series(points.reset_index(drop=True), series.levels[kept].reset_index(drop=True))


def _is_of_tonight(levels: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Leave out the last night's build where tonight's of the same line is held against it."""
    both, same = (levels.duplicated(["run", name], keep=False) for name in ("line", "build"))
    return np.asarray(~(both & ~same & (levels["side"] == 0)))


def _banded(series: Series) -> tuple[pd.DataFrame, pd.DataFrame]:
    levels, points = series.levels, series.points
    count = levels["n"].to_numpy(np.int64)
    start = np.cumsum(count) - count
    values = points["value"].to_numpy()
    of_level = np.repeat(np.arange(len(levels)), count)
    ranked = values[np.lexsort((values, of_level))]
    ranks = {int(n): _rank(int(n)) for n in np.unique(count)}
    rank = np.array([ranks[int(n)] for n in count], dtype=np.int64)
    band = {
        "low": ranked[start + rank] if len(levels) else values,
        "high": ranked[start + count - 1 - rank] if len(levels) else values,
    }
    return levels.assign(**band), points.assign(level=of_level, trial=points["nth"] + 1)


def _rank(n: int) -> int:
    """How many of n trials, from either end, the 95 % interval of their median may leave out."""
    unlikely = special.bdtr(np.arange(n // 2), n, 0.5) <= _TAIL
    return max(0, int(unlikely.sum()) - 1)


def _places(levels: pd.DataFrame, *, over_releases: bool) -> npt.NDArray[np.float64]:
    """Where levels stand: at their release's number, runs of one release together; or in time."""
    if not over_releases:
        return np.asarray(levels["started_at"].astype("int64"), dtype=np.float64)
    codes, names = pd.factorize(levels["release"])
    ranks = {name: at for at, name in enumerate(releases_in_order(names.tolist()))}
    many = np.bincount(codes, minlength=len(names))
    nth = np.empty(len(codes))
    nth[np.argsort(codes, kind="stable")] = np.concatenate([*map(np.arange, many), []])
    at = np.array([ranks[name] for name in names], dtype=np.float64)
    # Finer than a screen, and shorter to send to a browser than a third in all its digits.
    return np.round(at[codes] + 0.5 * ((nth + 0.5) / many[codes] - 0.5), 4)


def _drawn(
    levels: pd.DataFrame, points: pd.DataFrame, sides: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Choose every k-th trial of each side, its lowest and highest; of too many sides, the last."""
    last = np.sort(sides)[-(MOST_POINTS // _FEWEST) :]
    room = MOST_POINTS // max(1, len(last))
    count = levels["n"].to_numpy(np.int64)
    every = np.repeat(np.maximum(1, -(-count // room)), count)
    kept = (points["nth"].to_numpy() % every == 0) & (room > _FEWEST)
    grouped = points["value"].groupby(points["level"])
    kept[grouped.idxmin().to_numpy()] = True
    kept[grouped.idxmax().to_numpy()] = True
    return np.asarray(kept & np.isin(points["level"].to_numpy(), last))


def _line(
    name: str,
    order: npt.NDArray[np.int64],
    levels: pd.DataFrame,
    points: pd.DataFrame,
    metric: Metric,
    trials: Sequence[npt.NDArray[np.float64]],
    machines: Sequence[MachineChange],
) -> Line:
    own = levels.iloc[order].reset_index(drop=True)
    mine = points[np.isin(points["level"].to_numpy(), order)]
    at = mine["level"].to_numpy()
    sides = {name: levels[name].to_numpy()[at] for name in ("place", "low", "high", "n")}
    whole = mine.assign(**sides, median=levels["value"].to_numpy()[at])
    history = _examined(own, metric, machines)
    doubts = _describe(own["started_at"], trials, history, metric)
    return Line(name, "", own, whole, replace(history, doubts=(*doubts, *history.doubts)))


def _describe(
    moments: pd.Series, trials: Sequence[npt.NDArray[np.float64]], history: History, metric: Metric
) -> Iterator[str]:
    is_ratio = metric.kind.has_noise and min(one.min() for one in trials) > 0
    if history.drifts:
        days = [f"{moment:%-d %b %Y}" for moment in moments]
        yield from describe_drifts(history, days, is_ratio=is_ratio)
    if is_ratio and len(trials) >= ENOUGH_POINTS:
        two = two_levels(trials, history)
        yield from [two.text(lambda value: numbers.value(value, metric))] if two else []


def _examined(levels: pd.DataFrame, metric: Metric, machines: Sequence[MachineChange]) -> History:
    values = levels["value"].to_numpy()
    try:
        found = examine(values, kind=metric.kind)
        if found.drifts and machines:
            # Two steps in one direction look like a drift: leave out the one that is known.
            for one in machines:
                values = one.taken_off(values, levels["started_at"], metric)
            found = examine(values, kind=metric.kind)
    except HistoryError as error:
        return History(doubts=(str(error),))
    if metric.kind is not Kind.EXACT:
        return found
    # How often a broken engine breaks a rule is up to its load; what changes is whether it does.
    turns = [point for point in found.points if 0 in values[point.index - 1 : point.index + 1]]
    return replace(found, points=tuple(turns))


def _with_definitions(
    lines: Sequence[Line], levels: pd.DataFrame, settings: Settings
) -> list[Line]:
    ended = successors(zip(levels["digest"], levels["started_at"], strict=True))
    versions = dict(zip(levels["digest"].tolist(), levels["version"].tolist(), strict=True))
    loads = name_definitions(versions, settings)
    drawn = {line.digest for line in lines}

    def reasons(line: Line) -> Iterator[str]:
        for old, new in ended.items():
            if new == line.digest and old in drawn:
                before, after = (settings.get(one, {}) for one in (old, new))
                yield change_text(before, after, (versions[old], versions[new]), (old, new))

    def breaks(line: Line) -> Iterator[Break]:
        first: Any = levels.iloc[int((levels["digest"] == line.digest).to_numpy().argmax())]
        for reason in reasons(line):
            yield Break(first["started_at"], first["run"], reason)

    return [replace(one, load=loads[one.digest], breaks=tuple(breaks(one))) for one in lines]


@lru_cache(maxsize=1024)
def _moved(before: str, after: str) -> tuple[str, ...]:
    """Name the fixes whose state changed; of one that only one run knew of nothing is known."""
    old: Mapping[str, str] = json.loads(before)
    new: Mapping[str, str] = json.loads(after)
    both = sorted(old.keys() & new.keys())
    return tuple(
        f"{name}: {old[name]} \u2192 {new[name]}" for name in both if old[name] != new[name]
    )


def list_line_names(levels: pd.DataFrame, *, over_releases: bool) -> npt.NDArray[np.object_]:
    """Name the line that each level or run belongs to; needs ``line`` and ``release``."""
    builds = levels["line"].astype(object).to_numpy()
    if not over_releases:
        return builds
    pairs = zip(builds, levels["release"], strict=True)
    return np.array([_without(build, release) for build, release in pairs], dtype=object)


def releases_in_order(releases: Sequence[str]) -> list[str]:
    """Order releases as pip does: 0.9 before 0.27, ``dev5`` before ``dev47`` and the release."""
    return sorted(set(releases), key=_release_key)


def name_definitions(versions: Mapping[str, int], settings: Settings) -> Mapping[str, str]:
    """Name each definition by what it has of its own."""
    known = {digest: settings.get(digest, {}) for digest in versions}
    names = sorted({name for one in known.values() for name in one})
    varied = [name for name in names if len({one.get(name) for one in known.values()}) > 1]
    found = {
        digest: ", ".join(f"{name} {one[name]}" for name in varied[:_NAMED] if name in one)
        for digest, one in known.items()
    }
    if len(set(found.values())) < len(found):
        found = {digest: f"version {version}" for digest, version in versions.items()}
    if len(set(found.values())) < len(found):
        found = {digest: f"definition {digest[:_SHORT]}" for digest in versions}
    return found


@lru_cache(maxsize=4096)
def _without(build: str, release: str) -> str:
    return build.replace(release, _ANY_RELEASE, 1) if release else build


def _release_key(release: str) -> tuple[bool, Version | tuple[int, ...], str]:
    try:
        return True, Version(release), release
    except InvalidVersion:  # a name that pip does not know is older than all others
        return False, tuple(map(int, _NUMBER.findall(release))), release
