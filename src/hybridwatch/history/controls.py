"""Which stored runs are controls, and whether each did what it must (``analysis.detection``)."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

import pandas as pd

from hybridwatch.analysis.detection import (
    NOTHING,
    ControlReading,
    Detection,
    DetectionPromise,
    baseline_violations_in,
    find_detection,
    find_promise,
    is_deterministic,
    kind_of,
)
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.queries import Index
from hybridwatch.history.runs import cached_per_index
from hybridwatch.metrics import Kind
from hybridwatch.records.identity import FixState, Role, lost_fixes
from hybridwatch.scenarios.scenario import Scenario

_CONTROLS: Final = (Role.KNOWN_BAD.value, Role.A_A.value)


class _Side(NamedTuple):
    record: str
    run: str
    scenario: str
    testbed: str
    started_at: pd.Timestamp
    role: str
    line: str
    build: str
    release: str
    fixes: str


@dataclass(slots=True)
class _Tally:
    """What the comparisons of a run say; ``deterministic`` of those free of a machine's noise."""

    comparisons: int = 0
    regressions: int = 0
    deterministic: set[Verdict] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ControlRun:
    """A stored run of a control, its ``record`` below the results folder; the baseline comes first.

    ``lines`` are those of the builds, ``lost`` the fixes that the contender lacks on purpose. Each
    of the ``regressions`` of an A/A run is a false alarm; ``detection`` is ``None`` of one.
    """

    run: str
    record: str
    scenario: str
    testbed: str
    builds: tuple[str, str]
    lines: tuple[str, str]
    started_at: datetime
    role: Role
    lost: tuple[str, ...]
    comparisons: int
    regressions: int
    detection: Detection | None
    _promise: DetectionPromise
    _index: Index

    @property
    def readings(self) -> tuple[ControlReading, ...]:
        """Its comparisons; read from the database when they are first needed."""
        return _readings(self._index, self.record)

    @property
    def alarms(self) -> tuple[ControlReading, ...]:
        """The comparisons that are called a regression."""
        return tuple(one for one in self.readings if one.verdict is Verdict.REGRESSION)

    @property
    def baseline_violations(self) -> tuple[str, ...]:
        """What the healthy engine of a known-bad control was not clean of."""
        if self.role is not Role.KNOWN_BAD:
            return ()
        return baseline_violations_in(self.readings, self._promise)


def list_controls(index: Index, scenarios: Mapping[str, Scenario]) -> tuple[ControlRun, ...]:
    """List the controls among the runs, oldest first.

    One without a fix that its scenario does not guard is left out. A scenario that is not among
    ``scenarios`` is taken to guard whatever its runs take out, and to speak of answers.
    """
    return controls_among(index, known_in(scenarios))


class KnownScenarios(NamedTuple):
    """Of a scenario, what makes a run a control of it and says what it must show."""

    scenario: str
    guarded: tuple[str, ...]
    promise: DetectionPromise


def known_in(scenarios: Mapping[str, Scenario]) -> frozenset[KnownScenarios]:
    """Take from scenarios what controls depend on: little, and fit to be the key of a cache."""
    return frozenset(
        KnownScenarios(name, one.guarded, find_promise(one)) for name, one in scenarios.items()
    )


@lru_cache(maxsize=1)
def controls_among(index: Index, known: frozenset[KnownScenarios]) -> tuple[ControlRun, ...]:
    """List the controls among the runs, as ``list_controls``."""
    tallies, scenarios = _tallies(index), {one.scenario: one for one in known}
    found = (
        _control(index, sides, tallies[sides[0].record], scenarios.get(sides[0].scenario))
        for sides in _sides(index)
    )
    return tuple(control for control in found if control is not None)


def find_newest(controls: Sequence[ControlRun]) -> Mapping[str, ControlRun]:
    """Give each scenario's newest known-bad control that could be judged; else its newest."""
    newest: dict[str, ControlRun] = {}
    for control in controls:
        if control.role is Role.KNOWN_BAD and (
            control.detection is not Detection.NOT_ASKED or control.scenario not in newest
        ):
            newest[control.scenario] = control
    return newest


def _control(
    index: Index, sides: tuple[_Side, _Side], tally: _Tally, scenario: KnownScenarios | None
) -> ControlRun | None:
    old, new = sides
    role = Role(old.role)
    lost = _lost(old.fixes, new.fixes) if role is Role.KNOWN_BAD else ()
    if lost and scenario is not None and not {*scenario.guarded} & {*lost}:
        return None
    promise = NOTHING if scenario is None else scenario.promise
    return ControlRun(
        run=old.run,
        record=old.record,
        scenario=old.scenario,
        testbed=old.testbed,
        builds=(old.build, new.build),
        lines=(old.line, new.line),
        started_at=old.started_at.to_pydatetime(),
        role=role,
        lost=lost,
        comparisons=tally.comparisons,
        regressions=tally.regressions,
        detection=find_detection(tally.deterministic, deadly=promise.deadly)
        if role is Role.KNOWN_BAD
        else None,
        _promise=promise,
        _index=index,
    )


def _sides(index: Index) -> Iterator[tuple[_Side, _Side]]:
    runs = index.runs()
    runs = runs[runs["role"].isin(_CONTROLS)]
    columns = (runs[name].tolist() for name in _Side._fields)  # row by row takes seconds
    sides = map(_Side._make, zip(*columns, strict=True))
    return zip(sides, sides, strict=True)


def _tallies(index: Index) -> defaultdict[str, _Tally]:
    found: defaultdict[str, _Tally] = defaultdict(_Tally)
    counted = index.tallies(_CONTROLS, is_deterministic)
    columns = (counted[name].tolist() for name in ("record", "verdict", "n", "n_special"))
    for record, value, n, n_deterministic in zip(*columns, strict=True):
        tally, verdict = found[record], Verdict(value)
        tally.comparisons += n
        tally.regressions += n if verdict is Verdict.REGRESSION else 0
        if n_deterministic > 0:
            tally.deterministic.add(verdict)
    return found


@cached_per_index
def _readings(index: Index, /, record: str) -> tuple[ControlReading, ...]:
    names = ("metric", "statistic", "verdict", "old", "new")
    wanted = index.verdicts(records=[record], only=names)
    rows = zip(*(wanted[name].tolist() for name in names), strict=True)
    return tuple(
        ControlReading(metric, statistic, Verdict(verdict), old, new)
        for metric, statistic, verdict, old, new in rows
    )


@lru_cache(maxsize=1024)  # a store has few pairs of builds
def _lost(before: str, after: str) -> tuple[str, ...]:
    return lost_fixes(list_fixes(before), list_fixes(after))


@lru_cache(maxsize=1024)  # a store has few builds
def list_fixes(states: str) -> Mapping[str, FixState]:
    """Read the states of a build's fixes, as the index keeps them."""
    return {fix: FixState(state) for fix, state in json.loads(states).items()}


def bad_readings(control: ControlRun, kind: Kind) -> tuple[ControlReading, ...]:
    """Give the metrics of a kind that tell a control's engine from the healthy one."""
    bad = (one for one in control.readings if one.verdict.is_bad_news)
    return tuple(one for one in bad if kind_of(one.metric) is kind)
