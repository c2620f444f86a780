"""The runs of an index, one row each, what each is for, and which definitions have ended."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial, wraps
from threading import RLock
from types import MappingProxyType
from typing import Concatenate, Final, ParamSpec, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from hybridwatch.analysis.freshness import find_successor, successors
from hybridwatch.analysis.verdict import ORDER, Verdict
from hybridwatch.database.queries import Index
from hybridwatch.records.identity import Role

_MOST: Final = 1024

_I = TypeVar("_I")
_P = ParamSpec("_P")
_R = TypeVar("_R")


def cached_per_index(
    function: Callable[Concatenate[_I, _P], _R],
) -> Callable[Concatenate[_I, _P], _R]:
    """Cache a function's result for the index that it was called with last."""

    @lru_cache(maxsize=1)
    def answers_of(index: _I) -> Callable[..., _R]:
        return lru_cache(maxsize=_MOST)(partial(function, index))

    @wraps(function)
    def kept(index: _I, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return answers_of(index)(*args, **kwargs)

    return kept


def one_at_a_time(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let one thread compute what is cached, so that many readers at once do not all compute it."""
    lock = RLock()

    @wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with lock:
            return function(*args, **kwargs)

    return guarded


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


CONTROL: Final = "control, bad on purpose"
"""What a run, or its contender, is called whose verdict is expected to be bad."""
_ALONE: Final = "One build alone: part of the histories; compare it with another run."
_TAKEN: Final = ("run", "record", "scenario", "version", "digest", "testbed", "sha256")


@lru_cache(maxsize=1)  # what an index says never changes, and every view asks
def list_roles(index: Index) -> Mapping[str, Role]:
    """Say of each run of two builds what it is for, by its record."""
    return {record: Role(role) for record, role in index.roles().items()}


def bad_on_purpose(index: Index) -> frozenset[str]:
    """Name the records whose contender lacks a fix or has a fault on purpose."""
    return frozenset(record for record, role in list_roles(index).items() if role.is_on_purpose)


@cached_per_index
def latest_comparisons(index: Index, /) -> pd.DataFrame:
    """Give ``Index.latest_verdicts`` of what goes on, without controls'; to be read only."""
    roles = list_roles(index).items()
    controls = {record for record, role in roles if role is not Role.COMPARISON}
    latest, ended = index.latest_verdicts(), ended_definitions(index)
    places = zip(latest["scenario"], latest["testbed"], latest["digest"], strict=True)
    goes_on = np.fromiter((place not in ended for place in places), bool, len(latest))
    return latest[goes_on & ~latest["record"].isin(controls)]


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list, with labels of its ``builds``, baseline first; one or two.

    ``record`` lies below the results folder; ``verdict`` is the worst of its comparisons, ``None``
    without a report, of which ``trouble`` says why; ``sha256`` is empty for a record of the first
    schema; of a control the contender is bad on purpose.
    """

    run: str
    record: str
    started_at: datetime
    scenario: str
    version: int
    digest: str
    testbed: str
    builds: tuple[str, ...]
    lines: tuple[str, ...]
    failures: int
    verdict: Verdict | None
    trouble: str
    sha256: str = ""
    is_control: bool = False

    @property
    def named(self) -> str:
        """The run in a list of choices."""
        verdict = self.verdict.value if self.verdict else "no verdict"
        verdict = CONTROL if self.is_control else verdict
        builds = " → ".join(self.builds)
        return f"{self.started_at:%Y-%m-%d %H:%M} · {verdict} · {builds} · {self.run}"


@cached_per_index
def runs_by_id(index: Index, /, scenario: str | None = None) -> Mapping[str, RunRow]:
    """List every readable run, or those of one scenario, by its id, the newest first."""
    runs = index.runs(scenario)
    worst, bad = _worst(index.outcomes(scenario)), bad_on_purpose(index)
    found: dict[str, RunRow] = {}
    sides: dict[str, list[tuple[str, str]]] = {}
    failures: dict[str, int] = {}
    names = zip(runs["record"], runs["build"], runs["line"], runs["failures"], strict=True)
    for record, build, line, failed in names:
        sides.setdefault(record, []).append((build, line))
        failures[record] = failures.get(record, 0) + int(failed)
    first = runs[runs["side"] == 0].iloc[::-1]
    # Column by column: row by row takes a second in a large store.
    columns = (first[name].tolist() for name in ("started_at", "trouble", *_TAKEN))
    for started_at, trouble, *taken in zip(*columns, strict=True):
        run, record, *_ = taken
        found[run] = RunRow(
            **dict(zip(_TAKEN, taken, strict=True)),
            started_at=started_at.to_pydatetime(),
            builds=tuple(build for build, _ in sides[record]),
            lines=tuple(line for _, line in sides[record]),
            failures=failures[record],
            verdict=worst.get(record),
            trouble=_ALONE if len(sides[record]) == 1 else trouble,
            is_control=record in bad,
        )
    return MappingProxyType(found)


@cached_per_index
def list_contenders(index: Index, /) -> Mapping[str, tuple[str, str]]:
    """Give the label and the release of what each run measured last, by the run's id."""
    runs = index.runs()
    last = runs[runs["side"] == runs["sides"] - 1]
    builds = zip(last["build"], last["release"], strict=True)
    return dict(zip(last["run"], builds, strict=True))


def _worst(verdicts: pd.DataFrame) -> Mapping[str, Verdict]:
    ranks = {verdict.value: rank for rank, verdict in enumerate(ORDER)}
    worst = verdicts["verdict"].map(ranks).groupby(verdicts["record"]).min()
    return {str(record): ORDER[int(rank)] for record, rank in worst.items()}


def controls_last(rows: Iterable[RunRow]) -> list[RunRow]:
    """Put the runs of engines that are bad on purpose behind all others, else in their order."""
    return sorted(rows, key=lambda row: row.is_control)
