"""Does the suite see? Which stored runs are controls, and whether each did what it must.

What such a run showed is decided in ``analysis.sight``, for the terminal too.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from hybridwatch.analysis.sight import (
    NOTHING,
    Promise,
    Reading,
    Sight,
    blemishes_in,
    kind_of,
    promise_of,
    sight_of,
)
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.queries import Index
from hybridwatch.metric import Kind
from hybridwatch.record.identity import FixState
from hybridwatch.record.role import Role, lost_fixes
from hybridwatch.scenario.scenario import Scenario

ON_PURPOSE: Final = frozenset({Role.KNOWN_BAD, Role.PLANTED})
_CONTROLS: Final = frozenset({Role.KNOWN_BAD, Role.A_A})
_SIDES: Final = 2


class Engine(NamedTuple):
    """A side of a run, as the index knows it."""

    label: str
    release: str
    fixes: Mapping[str, FixState]


@dataclass(frozen=True, slots=True)
class ControlRun:
    """A stored run of a control.

    Attributes:
        run: Its id.
        record: Its record, below the results folder.
        scenario: Id.
        testbed: Id.
        builds: Labels, baseline first.
        started_at: UTC.
        role: Known-bad or A/A.
        lost: The fixes that the contender lacks on purpose.
        readings: Its comparisons.
        sight: What a known-bad control showed; ``None`` of an A/A run.
        blemishes: What the healthy engine of a known-bad control was not clean of.
    """

    run: str
    record: str
    scenario: str
    testbed: str
    builds: tuple[str, str]
    started_at: datetime
    role: Role
    lost: tuple[str, ...]
    readings: tuple[Reading, ...]
    sight: Sight | None
    blemishes: tuple[str, ...]

    @property
    def alarms(self) -> tuple[Reading, ...]:
        """The comparisons that are called a regression; of an A/A run, each is a false alarm."""
        return tuple(one for one in self.readings if one.verdict is Verdict.REGRESSION)


@lru_cache(maxsize=1)  # what an index says never changes, and every view asks
def roles_of(index: Index) -> Mapping[str, Role]:
    """Say of each run of two builds what it is for, by its record."""
    return {record: Role(role) for record, role in index.roles().items()}


def bad_on_purpose(index: Index) -> frozenset[str]:
    """Name the records whose contender lacks a fix or has a fault because somebody wanted it."""
    return frozenset(record for record, role in roles_of(index).items() if role in ON_PURPOSE)


def controls_of(index: Index, scenarios: Mapping[str, Scenario]) -> tuple[ControlRun, ...]:
    """List the controls among the runs, oldest first.

    A run without a fix that its scenario does not guard is no control of it, and left out.

    Args:
        index: A store.
        scenarios: Those that are known, by id. One that is not is taken to guard whatever its
            runs take out, and to speak of answers.
    """
    return controls_among(index, known_in(scenarios))


class Known(NamedTuple):
    """Of a scenario, what makes a run a control of it and says what it must show."""

    scenario: str
    fix: str
    promise: Promise


def known_in(scenarios: Mapping[str, Scenario]) -> frozenset[Known]:
    """Take from scenarios what controls depend on: little, and fit to be the key of a cache."""
    return frozenset(Known(name, one.fix, promise_of(one)) for name, one in scenarios.items())


@lru_cache(maxsize=1)
def controls_among(index: Index, known: frozenset[Known]) -> tuple[ControlRun, ...]:
    """List the controls among the runs, as ``controls_of``."""
    sides, roles, readings = _sides(index), roles_of(index), _readings(index)
    scenarios = {one.scenario: one for one in known}
    runs = index.runs()
    first = runs[(runs["side"] == 0) & runs["record"].isin(_wanted(roles))]
    rows: Iterator[Any] = first.itertuples()
    found = (
        _control(row, roles[row.record], sides[row.record], readings.get(row.record, ()), scenarios)
        for row in rows
    )
    return tuple(control for control in found if control is not None)


def newest_of(controls: Sequence[ControlRun]) -> Mapping[str, ControlRun]:
    """Give each scenario's newest known-bad control that could be judged; else its newest."""
    newest: dict[str, ControlRun] = {}
    for control in controls:
        if control.role is Role.KNOWN_BAD and (
            control.sight is not Sight.NOT_ASKED or control.scenario not in newest
        ):
            newest[control.scenario] = control
    return newest


def _control(
    row: Any,
    role: Role,
    sides: tuple[Engine, Engine],
    readings: Sequence[Reading],
    scenarios: Mapping[str, Known],
) -> ControlRun | None:
    scenario = scenarios.get(row.scenario)
    lost = lost_fixes(*sides) if role is Role.KNOWN_BAD else ()
    if lost and scenario is not None and scenario.fix not in lost:
        return None
    promise = NOTHING if scenario is None else scenario.promise
    return ControlRun(
        run=row.run,
        record=row.record,
        scenario=row.scenario,
        testbed=row.testbed,
        builds=(sides[0].label, sides[1].label),
        started_at=row.started_at.to_pydatetime(),
        role=role,
        lost=lost,
        readings=tuple(readings),
        sight=sight_of(readings, deadly=promise.deadly) if role is Role.KNOWN_BAD else None,
        blemishes=blemishes_in(readings, promise) if role is Role.KNOWN_BAD else (),
    )


def _wanted(roles: Mapping[str, Role]) -> list[str]:
    return [record for record, role in roles.items() if role in _CONTROLS]


@lru_cache(maxsize=1)
def _sides(index: Index) -> Mapping[str, tuple[Engine, Engine]]:
    runs = index.runs()
    runs = runs[runs["sides"] == _SIDES]
    engines: defaultdict[str, list[Engine]] = defaultdict(list)
    rows = zip(runs["record"], runs["build"], runs["release"], runs["fixes"], strict=True)
    for record, build, release, fixes in rows:
        engines[record].append(Engine(build, release, fixes_of(fixes)))
    return {record: (both[0], both[-1]) for record, both in engines.items()}


@lru_cache(maxsize=1)
def _readings(index: Index) -> Mapping[str, Sequence[Reading]]:
    """What each control's report says, by record."""
    found: defaultdict[str, list[Reading]] = defaultdict(list)
    names = ("record", "metric", "statistic", "verdict", "old", "new")
    wanted = index.verdicts(roles=[role.value for role in _CONTROLS], only=names)
    # Column by column: row by row takes seconds in a large store.
    for record, metric, statistic, verdict, old, new in zip(
        *(wanted[name].tolist() for name in names), strict=True
    ):
        found[record].append(Reading(metric, statistic, Verdict(verdict), old, new))
    return dict(found)


@lru_cache(maxsize=1024)  # a store has few builds
def fixes_of(states: str) -> Mapping[str, FixState]:
    """Read the states of a build's fixes, as the index keeps them."""
    return {fix: FixState(state) for fix, state in json.loads(states).items()}


def broken_contracts(control: ControlRun) -> tuple[Reading, ...]:
    """Give the contracts that tell a control's engine from the healthy one."""
    return _bad(control, Kind.EXACT)


def lost_answers(control: ControlRun) -> tuple[Reading, ...]:
    """Give the tasks whose answers tell a control's engine from the healthy one."""
    return _bad(control, Kind.PROPORTION)


def _bad(control: ControlRun, kind: Kind) -> tuple[Reading, ...]:
    bad = (one for one in control.readings if one.verdict.is_bad_news)
    return tuple(one for one in bad if kind_of(one.metric) is kind)
