"""Freshness: measurements that are overdue, and definitions that replaced others.

A definition that was changed ends a series, and what was bad in it is answered by the next one; two
loads that are measured each night are two series that both go on.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final, TypeVar

from hybridwatch.analysis.policy import Policy, covers

REMEMBERED: Final = timedelta(days=30)
"""A testbed is expected to go on measuring if it did so this long before the newest record: long
enough for repairs and holidays, short enough for a machine that was given back to be forgotten."""

_HOURS_BELOW: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class LastMeasured:
    """A scenario that was measured."""

    scenario: str
    testbed: str
    started_at: datetime
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """Something expected that was not measured in time, or never (without ``last``).

    ``scenario`` is an id, or a group of which nothing is known; empty for a whole testbed that the
    policy expects and that never measured. ``testbed`` is empty where no expected one ever
    measured.
    """

    scenario: str
    testbed: str
    last: LastMeasured | None = None
    age: timedelta | None = None

    @property
    def reason(self) -> str:
        """What is missing, one line, without the names of scenario and testbed."""
        if self.last is None or self.age is None:
            return "missing: there is no record of it; measure it"
        where = "" if self.testbed else " on any expected testbed"
        run = f": {self.last.run_id}" if self.last.run_id else ""
        day = self.last.started_at.date().isoformat()
        return f"not measured since {day} ({age_text(self.age)}){where}{run}"


def what_counts(
    others: Iterable[LastMeasured], controls: Iterable[LastMeasured], *, compared: bool
) -> tuple[LastMeasured, ...]:
    """Choose the runs that count as measurements, by whether any but ``controls`` compares builds.

    If so, a control stands for nothing; else the suite is only being tried, and its controls are
    what was to be measured.
    """
    return tuple(others) if compared else (*others, *controls)


def gaps(
    measured: Iterable[LastMeasured], policy: Policy, now: datetime, scenarios: Collection[str] = ()
) -> tuple[Gap, ...]:
    """Find what the policy expects and was not measured within its ``max_age_days``.

    A scenario is expected on every expected testbed that ever measured it, and on one at least.

    ``measured`` is in any order, without known-bad controls. ``scenarios`` has every id there is,
    so that one that was never measured is missed; without them only what the policy names is.
    ``now`` has a time zone. Gaps are in order of scenario and testbed, each at most once.
    """
    newest = _newest(measured)
    recent = _recent(newest.values(), now)
    testbeds = {at for _, at in newest if is_expected(at, policy, recent)}
    oldest = timedelta(days=policy.max_age_days)
    found: list[Gap] = list(_silent(newest, policy))
    for scenario in _wanted(newest, policy, recent, scenarios):
        here = [one for one in newest.values() if one.scenario == scenario]
        there = [one for one in here if one.testbed in testbeds]
        for one in there:
            age = now - one.started_at
            if age > oldest:
                found.append(Gap(scenario, one.testbed, one, age))
        if not there:
            known = () if policy.testbeds else here
            last = max(known, key=lambda one: one.started_at, default=None)
            found.append(Gap(scenario, "", last, None if last is None else now - last.started_at))
    return tuple(sorted(found, key=lambda gap: (gap.scenario, gap.testbed)))


def is_expected(testbed: str, policy: Policy, recent: Iterable[LastMeasured]) -> bool:
    """Whether a testbed has to measure; ``recent`` counts where the policy names no testbeds."""
    if policy.testbeds:
        return any(fnmatchcase(testbed, known) for known in policy.testbeds)
    return any(one.testbed == testbed for one in recent)


def age_text(age: timedelta) -> str:
    """Write an age for a person: days, or hours of what is younger than two days."""
    if age >= _HOURS_BELOW:
        return f"{age.days} days"
    hours = max(0, int(age.total_seconds() // 3600))
    return f"{hours} hour{'' if hours == 1 else 's'}"


def _newest(measured: Iterable[LastMeasured]) -> dict[tuple[str, str], LastMeasured]:
    ordered = sorted(measured, key=lambda one: one.started_at)
    return {(one.scenario, one.testbed): one for one in ordered}


def _recent(newest: Collection[LastMeasured], now: datetime) -> tuple[LastMeasured, ...]:
    """What was measured shortly before the newest record: so a dead store is not forgotten."""
    last = min(now, max((one.started_at for one in newest), default=now))
    return tuple(one for one in newest if last - one.started_at <= REMEMBERED)


def _wanted(
    newest: Iterable[tuple[str, str]],
    policy: Policy,
    recent: Iterable[LastMeasured],
    scenarios: Collection[str],
) -> Iterator[str]:
    if not policy.expected:
        yield from {one.scenario for one in recent}
        return
    known = {*scenarios, *(scenario for scenario, _ in newest)}
    covered: set[str] = set()
    for expected in policy.expected:
        # A name that covers nothing known is an id, or a group, that was never measured.
        covered |= {one for one in known if covers(expected, one)} or {expected}
    yield from covered


def _silent(newest: Mapping[tuple[str, str], LastMeasured], policy: Policy) -> Iterator[Gap]:
    for wanted in policy.testbeds:
        if not any(fnmatchcase(testbed, wanted) for _, testbed in newest):
            yield Gap("", wanted)


_NIGHT: Final = timedelta(days=1)
"""What is measured within it may be one night's loads, of which the last is new."""

_NAMED: Final = 3
_LONGEST: Final = 40
"""Characters of a setting; the beginning of a longer one, such as a digest, distinguishes it."""
_SHORT: Final = 8

_Digest = TypeVar("_Digest", bound=Hashable)


def successors(measured: Iterable[tuple[_Digest, datetime]]) -> Mapping[_Digest, _Digest]:
    """Say which definition took the place of each that has ended; that may have ended itself.

    One has ended when another began after its last run and was measured more than a night later.
    ``measured`` has each run's definition and start, of one scenario on one testbed, in any order.
    """
    first: dict[_Digest, datetime] = {}
    last: dict[_Digest, datetime] = {}
    for digest, started_at in measured:
        first[digest] = min(first.get(digest, started_at), started_at)
        last[digest] = max(last.get(digest, started_at), started_at)
    found: dict[_Digest, _Digest] = {}
    for digest, end in last.items():
        later = [one for one in first if first[one] > end and last[one] > end + _NIGHT]
        if later:
            found[digest] = min(later, key=first.__getitem__)
    return found


def find_successor(digest: _Digest, successors: Mapping[_Digest, _Digest]) -> _Digest:
    """Give what goes on today in place of a definition: itself, where it has not ended."""
    while digest in successors:
        digest = successors[digest]
    return digest


def change_text(
    old: Mapping[str, str],
    new: Mapping[str, str],
    versions: tuple[int, int],
    digests: tuple[str, str],
) -> str:
    """Say what a definition changed: its settings, else its version, else no more than its digest.

    Settings are empty where they are not known.
    """
    changed = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    if changed and old and new:
        parts = [f"{name} {_shown(old.get(name))} → {_shown(new.get(name))}" for name in changed]
        more = f" and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
        return ", ".join(parts[:_NAMED]) + more
    if versions[0] != versions[1]:
        return "version {} → {}".format(*versions)
    before, after = (digest[:_SHORT] for digest in digests)
    return f"the scenario's definition changed, digest {before} → {after}"


def _shown(setting: str | None) -> str:
    if setting is None:
        return "none"
    return setting if len(setting) <= _LONGEST else f"{setting[:_SHORT]}…"
