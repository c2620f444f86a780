"""Who takes part: hosts with what they proved, and the drivers that drain the queue."""

import json
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, insert, select, update

from hybridwatch.database.connection import Database
from hybridwatch.database.schema import ATTEMPT, DRIVER, HOST, PROOF
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.placing import Host, Standing
from hybridwatch.orchestration.fleet.proof import REMEMBERED, Judged, Shown
from hybridwatch.orchestration.fleet.rights import is_free

PROOF_HOLDS: Final = timedelta(hours=6)
"""How long a host measures before it has to prove itself again."""
ABSENT: Final = timedelta(minutes=5)
"""A host that was away for longer may be another one."""
_PROVING: Final = "proof for "
"""Stands in the place of a job while a host proves itself, with the driver that asked for it."""
DEAD_AFTER: Final = timedelta(seconds=60)
"""A driver that has not shown itself for so long is taken for dead."""


@dataclass(frozen=True, slots=True)
class Node:
    """A host as a cluster sees it.

    Attributes:
        name: What it is called.
        labels: What it says of itself; ``machine`` names the machine that several hosts share.
        gpus: How many it has.
    """

    name: str
    labels: Mapping[str, str]
    gpus: int = 0

    @property
    def machine(self) -> str:
        """Hosts of one machine measure in turn."""
        return self.labels.get("machine") or self.name


class Roll:
    """Hosts and drivers of one results folder.

    Args:
        database: Where they are kept.
        clock: Gives the time.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def see(self, nodes: Iterable[Node]) -> None:
        """Note which hosts are there; one that nobody knows has to prove itself."""
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
                    _see_again(connection, node.name, about, now)
                else:
                    new = {"name": node.name, "state": Standing.NEW.value, "since": now}
                    row = {**new, "reason": "", "job": "", **about}
                    connection.execute(insert(HOST), [row])

    def hosts(self) -> dict[str, Host]:
        """Give every host that was ever seen."""
        with self._database.reading() as connection:
            return read_hosts(connection)

    def past(self, host: Host) -> tuple[list[float], list[float]]:
        """Give the kernel seconds of a host's own proofs that passed, and of others like it.

        Own ones of before a quarantine count too: it has to be as it was. Of the others only each
        one's last.
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

    def ask(self, name: str, driver: str) -> bool:
        """Take a host to have it prove itself, if it has to and nothing is done on its machine."""
        with self._database.changing() as connection:
            if is_free(connection, name, Standing.READY) and self._is_proven(connection, name):
                return False
            if not is_free(connection, name, Standing.NEW, Standing.READY):
                return False
            _set_host(connection, name, job=_PROVING + driver, state=Standing.NEW.value)
        return True

    def unask(self, name: str) -> None:
        """Let a host go that could not prove itself."""
        with self._database.changing() as connection:
            _set_host(connection, name, job="")

    def _is_proven(self, connection: Connection, name: str) -> bool:
        fresh = PROOF.c.host == name, PROOF.c.passed, PROOF.c.at > self._clock() - PROOF_HOLDS
        return connection.scalar(select(PROOF.c.at).where(*fresh).limit(1)) is not None

    def prove(self, name: str, shown: Shown, judged: Judged) -> None:
        """Note what a host showed, and let it measure or not."""
        now = self._clock()
        row = {
            "host": name,
            "at": now,
            "facts": json.dumps(dict(shown.facts), sort_keys=True),
            "kernel_s": shown.kernel_s,
            "a_a": shown.a_a,
            "passed": judged.passed,
            "reason": judged.reason,
        }
        with self._database.changing() as connection:
            connection.execute(insert(PROOF), [row])
            _set_host(connection, name, job="")
            if judged.passed:
                _set_standing(connection, name, Standing.READY, "", now)
            elif not judged.again:
                _set_standing(connection, name, Standing.QUARANTINED, judged.reason, now)

    def set_standing(self, name: str, standing: Standing, reason: str) -> None:
        """Let a host measure or not, whatever it showed.

        Raises:
            FleetError: There is no such host.
        """
        with self._database.changing() as connection:
            if name not in (known := read_hosts(connection)):
                names = ", ".join(sorted(known)) or "none"
                raise FleetError(f"host {name!r}: expected one of {names}")
            _set_standing(connection, name, standing, reason, self._clock())

    def join(self, driver: str) -> None:
        """Note that somebody drains the queue.

        Raises:
            FleetError: The database is a SQLite file, and somebody else does.
        """
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

    def beat(self, driver: str) -> bool:
        """Show that a driver lives; whether it was not taken for dead in the meantime."""
        alive = DRIVER.c.name == driver, ~DRIVER.c.ended
        with self._database.changing() as connection:
            done = connection.execute(update(DRIVER).where(*alive).values(beat_at=self._clock()))
        return done.rowcount == 1

    def leave(self, driver: str) -> None:
        """Note that a driver is done."""
        with self._database.changing() as connection:
            connection.execute(update(DRIVER).where(DRIVER.c.name == driver).values(ended=True))

    def bury(self) -> list[str]:
        """Take drivers for dead that have not shown themselves, and free the hosts they asked.

        Returns:
            Names of drivers that are gone, and whose attempts nobody has ended.
        """
        latest = self._clock() - DEAD_AFTER
        left = ATTEMPT.c.end == "", DRIVER.c.ended
        with self._database.changing() as connection:
            silent = DRIVER.c.beat_at <= latest, ~DRIVER.c.ended
            connection.execute(update(DRIVER).where(*silent).values(ended=True))
            gone = select(DRIVER.c.name).join(ATTEMPT, ATTEMPT.c.driver == DRIVER.c.name)
            names = list(connection.scalars(gone.where(*left).distinct()))
            self._free_asked(connection)
        return names

    def _free_asked(self, connection: Connection) -> None:
        asked = {_PROVING + row.name for row in _drivers(connection)}
        for host in read_hosts(connection).values():
            if host.job.startswith(_PROVING) and host.job not in asked:
                _set_host(connection, host.name, job="")


def read_hosts(connection: Connection) -> dict[str, Host]:
    """Give every host, by name."""
    rows = connection.execute(select(HOST).order_by(HOST.c.name))
    return {row.name: _host(row) for row in rows}


def _host(row: Any) -> Host:
    return Host(
        name=row.name,
        machine=row.machine,
        labels=json.loads(row.labels),
        gpus=row.gpus,
        standing=Standing(row.state),
        reason=row.reason,
        job=row.job,
    )


def _kind(host: Host) -> tuple[frozenset[tuple[str, str]], int]:
    """What hosts have in common that should be as fast: all labels but the machine's."""
    return frozenset(item for item in host.labels.items() if item[0] != "machine"), host.gpus


def _drivers(connection: Connection) -> list[Any]:
    return list(connection.execute(select(DRIVER).where(~DRIVER.c.ended)).fetchall())


def _see_again(connection: Connection, name: str, about: Mapping[str, Any], now: datetime) -> None:
    was_away = HOST.c.name == name, HOST.c.seen_at < now - ABSENT
    again = HOST.c.state == Standing.READY.value
    connection.execute(update(HOST).where(*was_away, again).values(state=Standing.NEW.value))
    _set_host(connection, name, **about)


def _set_standing(
    connection: Connection, name: str, standing: Standing, reason: str, now: datetime
) -> None:
    _set_host(connection, name, state=standing.value, reason=reason, since=now)


def _set_host(connection: Connection, name: str, **change: Any) -> None:
    connection.execute(update(HOST).where(HOST.c.name == name).values(**change))
