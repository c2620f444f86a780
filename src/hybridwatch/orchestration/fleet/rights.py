"""Whether a host may begin something: asked within the transaction in which it does.

``placing`` says what should start where, from what it read a moment ago; another driver may have
been faster since. What is asked here stays true until the transaction ends.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, func, insert, select

from hybridwatch.database.schema import HOST, PLACEMENT, TESTBED
from hybridwatch.orchestration.fleet.placing import HostStatus, Start


def is_free(connection: Connection, name: str, *standings: HostStatus) -> bool:
    """Whether a host stands so, and nothing is done on its machine; locks what says so."""
    machine = select(HOST.c.machine).where(HOST.c.name == name).scalar_subquery()
    those = select(HOST).where(HOST.c.machine == machine).order_by(HOST.c.name)
    rows = connection.execute(those.with_for_update()).fetchall()
    fits = any(row.name == name and HostStatus(row.state) in standings for row in rows)
    return fits and not any(row.job for row in rows)


def is_kept_there(connection: Connection, start: Start, now: datetime) -> bool:
    """Whether a series may be measured on a host, which becomes its keeper if it has none.

    What belongs to no series may be measured anywhere.
    """
    series = start.job.series
    if not series:
        return True
    keepers = _keepers(connection, series)
    if start.host in keepers:
        return True
    if keepers and not start.job.options.stand_in and not _all_retired(connection, keepers):
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


def _all_retired(connection: Connection, hosts: Sequence[str]) -> bool:
    still = HOST.c.name.in_(hosts), HOST.c.state != HostStatus.RETIRED.value
    return not connection.scalar(select(func.count()).select_from(HOST).where(*still))
