"""Hosts with the results of their health checks, and the drivers that drain the queue."""

import json
import os
import socket
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, func, insert, select, update

from hybridwatch.database.connection import Database
from hybridwatch.database.schema import ATTEMPT, DRIVER, HOST, PLACEMENT, PROOF, TESTBED
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.cluster import REMEMBERED, HealthReport, HealthVerdict, Node
from hybridwatch.orchestration.fleet.job import Host, HostStatus, Start


def is_free(connection: Connection, name: str, *standings: HostStatus) -> bool:
    """Whether a host stands so, and nothing is done on its machine; locks what says so."""
    machine = select(HOST.c.machine).where(HOST.c.name == name).scalar_subquery()
    those = select(HOST).where(HOST.c.machine == machine).order_by(HOST.c.name)
    rows = connection.execute(those.with_for_update()).fetchall()
    fits = any(row.name == name and HostStatus(row.state) in standings for row in rows)
    return fits and not any(row.job for row in rows)


def is_kept_there(connection: Connection, start: Start, now: datetime) -> bool:
    """Whether a series may be measured on a host, which becomes its keeper if it has none."""
    series = start.job.series
    if not series:
        return True
    keepers = _keepers(connection, series)
    if start.host in keepers:
        return True
    if keepers and not start.job.options.stand_in:
        still = HOST.c.name.in_(keepers), HOST.c.state != HostStatus.RETIRED.value
        if connection.scalar(select(func.count()).select_from(HOST).where(*still)):
            return False
    # Two drivers that both find no keeper take turns here; the second one finds the first one's.
    bed = select(TESTBED.c.name).where(TESTBED.c.name == start.job.testbed).with_for_update()
    connection.execute(bed)
    if set(_keepers(connection, series)) != set(keepers):
        return False
    row = {"series": series, "host": start.host, "since": now}
    connection.execute(insert(PLACEMENT), [row])
    return True


def _keepers(connection: Connection, series: str) -> list[str]:
    return list(connection.scalars(select(PLACEMENT.c.host).where(PLACEMENT.c.series == series)))


HEALTH_CHECK_HOLDS: Final = timedelta(hours=6)
"""How long a host measures before its next health check."""
ABSENT: Final = timedelta(minutes=5)
"""A host that was away for longer may be another one."""
_CHECKED_BY: Final = "proof for "
"""Stands in the place of a job while a host is checked, with the driver that reserved it."""
DEAD_AFTER: Final = timedelta(seconds=60)
"""A driver without a heartbeat for so long has expired."""


class HostRegistry:
    """Hosts and drivers of one results folder."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def see(self, nodes: Iterable[Node]) -> None:
        """Note which hosts are there; an unknown one has to pass a health check."""
        now = self._clock()
        with self._database.changing() as connection:
            known = read_hosts(connection)
            for node in sorted(nodes, key=lambda one: one.name):
                about = {
                    "machine": node.machine,
                    "labels": json.dumps(dict(node.labels), sort_keys=True),
                    "gpus": node.gpus,
                    "seen_at": now,
                }
                if node.name in known:
                    was_away = HOST.c.name == node.name, HOST.c.seen_at < now - ABSENT
                    again = update(HOST).where(*was_away, HOST.c.state == HostStatus.READY.value)
                    connection.execute(again.values(state=HostStatus.NEW.value))
                    _set_host(connection, node.name, **about)
                else:
                    new = {"name": node.name, "state": HostStatus.NEW.value, "since": now}
                    row = {**new, "reason": "", "job": "", **about}
                    connection.execute(insert(HOST), [row])

    def hosts(self) -> dict[str, Host]:
        """Give every host that was ever seen."""
        with self._database.reading() as connection:
            return read_hosts(connection)

    def past(self, host: Host) -> tuple[list[float], list[float]]:
        """Kernel seconds of a host's passed checks, and of each other one of its kind the last.

        Own ones of before a quarantine count too: it has to be as it was.
        """
        timed = PROOF.c.passed, PROOF.c.kernel_s.is_not(None)
        with self._database.reading() as connection:
            own = connection.scalars(
                select(PROOF.c.kernel_s)
                .where(PROOF.c.host == host.name, *timed)
                .order_by(PROOF.c.at.desc())
                .limit(REMEMBERED)
            ).all()
            hosts = read_hosts(connection)
            like = {one.name for one in hosts.values() if _kind(one) == _kind(host)} - {host.name}
            others = select(PROOF.c.host, PROOF.c.kernel_s).where(PROOF.c.host.in_(like), *timed)
            last = {
                row.host: row.kernel_s for row in connection.execute(others.order_by(PROOF.c.at))
            }
        return list(reversed(own)), list(last.values())

    def reserve_host(self, name: str, driver: str) -> bool:
        """Reserve a host for a health check, if one is due and its machine is idle."""
        with self._database.changing() as connection:
            if is_free(connection, name, HostStatus.READY) and self._is_proven(connection, name):
                return False
            if not is_free(connection, name, HostStatus.NEW, HostStatus.READY):
                return False
            _set_host(connection, name, job=_CHECKED_BY + driver, state=HostStatus.NEW.value)
        return True

    def release_host(self, name: str) -> None:
        """Release a host whose health check did not run."""
        with self._database.changing() as connection:
            _set_host(connection, name, job="")

    def _is_proven(self, connection: Connection, name: str) -> bool:
        fresh = (
            PROOF.c.host == name,
            PROOF.c.passed,
            PROOF.c.at > self._clock() - HEALTH_CHECK_HOLDS,
        )
        return connection.scalar(select(PROOF.c.at).where(*fresh).limit(1)) is not None

    def record_health(self, name: str, report: HealthReport, judged: HealthVerdict) -> None:
        """Store a health report, and let the host measure or not."""
        now = self._clock()
        row = {
            "host": name,
            "at": now,
            "facts": json.dumps(dict(report.facts), sort_keys=True),
            "kernel_s": report.kernel_s,
            "a_a": report.a_a,
            "passed": judged.passed,
            "reason": judged.reason,
        }
        with self._database.changing() as connection:
            connection.execute(insert(PROOF), [row])
            _set_host(connection, name, job="")
            if judged.passed:
                _set_status(connection, name, HostStatus.READY, "", now)
            elif not judged.again:
                _set_status(connection, name, HostStatus.QUARANTINED, judged.reason, now)

    def set_status(self, name: str, standing: HostStatus, reason: str) -> None:
        """Let a host measure or not, whatever it showed."""
        with self._database.changing() as connection:
            if name not in (known := read_hosts(connection)):
                names = ", ".join(sorted(known)) or "none"
                raise FleetError(f"host {name!r}: expected one of {names}")
            _set_status(connection, name, standing, reason, self._clock())

    def join(self, driver: str) -> None:
        """Note that a driver drains the queue."""
        now = self._clock()
        with self._database.writing() as connection:
            others = [row for row in _drivers(connection) if row.beat_at > now - DEAD_AFTER]
            if others and self._database.file is not None:
                other = others[0]
                seconds = (now - other.beat_at).total_seconds()
                raise FleetError(
                    f"{self._database.name}: expected no other driver, found {other.place}, seen "
                    f"{seconds:.0f} s ago: a SQLite file serves one at a time; for several use "
                    "PostgreSQL (docs/database.md)"
                )
            place = f"process {os.getpid()} on {socket.gethostname()}"
            row = {"name": driver, "place": place, "started_at": now, "beat_at": now}
            connection.execute(insert(DRIVER), [{**row, "ended": False}])

    def heartbeat(self, driver: str) -> bool:
        """Show that a driver lives; ``False`` if it has expired in the meantime."""
        alive = DRIVER.c.name == driver, ~DRIVER.c.ended
        with self._database.changing() as connection:
            done = connection.execute(update(DRIVER).where(*alive).values(beat_at=self._clock()))
        return done.rowcount == 1

    def leave(self, driver: str) -> None:
        """Note that a driver is done."""
        with self._database.changing() as connection:
            connection.execute(update(DRIVER).where(DRIVER.c.name == driver).values(ended=True))

    def expire_dead_drivers(self) -> list[str]:
        """End drivers without a heartbeat, release their hosts; gives those with open attempts."""
        latest = self._clock() - DEAD_AFTER
        left = ATTEMPT.c.end == "", DRIVER.c.ended
        with self._database.changing() as connection:
            silent = DRIVER.c.beat_at <= latest, ~DRIVER.c.ended
            connection.execute(update(DRIVER).where(*silent).values(ended=True))
            gone = select(DRIVER.c.name).join(ATTEMPT, ATTEMPT.c.driver == DRIVER.c.name)
            names = list(connection.scalars(gone.where(*left).distinct()))
            reserved = {_CHECKED_BY + row.name for row in _drivers(connection)}
            for host in read_hosts(connection).values():
                if host.job.startswith(_CHECKED_BY) and host.job not in reserved:
                    _set_host(connection, host.name, job="")
        return names


def read_hosts(connection: Connection) -> dict[str, Host]:
    """Give every host, by name."""
    names = ("name", "machine", "labels", "gpus", "state", "reason", "job")
    rows = connection.execute(select(*(HOST.c[one] for one in names)).order_by(HOST.c.name))
    return {
        name: Host(name, machine, json.loads(labels), gpus, HostStatus(state), *others)
        for name, machine, labels, gpus, state, *others in rows
    }


def _kind(host: Host) -> tuple[frozenset[tuple[str, str]], int]:
    """What hosts have in common that should be as fast: all labels but the machine's."""
    return frozenset(item for item in host.labels.items() if item[0] != "machine"), host.gpus


def _drivers(connection: Connection) -> list[Any]:
    return list(connection.execute(select(DRIVER).where(~DRIVER.c.ended)).fetchall())


def _set_status(
    connection: Connection, name: str, standing: HostStatus, reason: str, now: datetime
) -> None:
    _set_host(connection, name, state=standing.value, reason=reason, since=now)


def _set_host(connection: Connection, name: str, **change: Any) -> None:
    connection.execute(update(HOST).where(HOST.c.name == name).values(**change))
