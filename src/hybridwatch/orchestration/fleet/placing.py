"""Which job starts where: pure functions of the queue, the hosts, and where series were before.

A history is worth something only while it stays on one machine. So the first host that measures a
series keeps it. While that host is away or in quarantine its series wait, and go missing with
their batch; where the matrix allows a stand-in, another host measures them as series of its own.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from hybridwatch.orchestration.fleet.job import HostKind, Job, Purpose


class HostStatus(Enum):
    """What a host may do."""

    NEW = "new"
    """It has to pass a health check before it measures."""
    READY = "ready"
    QUARANTINED = "quarantined"
    """It failed its health check: a person has to lift that."""
    RETIRED = "retired"
    """It is gone for good: its series begin again elsewhere."""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine of the fleet.

    Attributes:
        machine: Hosts of one machine measure in turn.
        labels: What it says of itself.
        reason: Why it stands so.
        job: What it measures now; empty when nothing.
    """

    name: str
    machine: str
    labels: Mapping[str, str]
    gpus: int
    standing: HostStatus
    reason: str = ""
    job: str = ""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Everything that placing depends on besides the jobs.

    Attributes:
        hosts: Every host that was ever seen, by name.
        present: Names of those that are there now.
        keepers: By series, the hosts that measured it, the first one first.
        testbeds: By name.
        unproven: Hosts and batches whose A/A is still to come.
    """

    hosts: Mapping[str, Host]
    present: frozenset[str]
    keepers: Mapping[str, Sequence[str]]
    testbeds: Mapping[str, HostKind]
    unproven: frozenset[tuple[str, str]] = frozenset()

    def usable(self, name: str) -> bool:
        """Whether a host may measure now, be it busy or not."""
        host = self.hosts.get(name)
        return host is not None and name in self.present and host.standing is HostStatus.READY

    def fits(self, host: Host, job: Job) -> bool:
        """Whether a job is for this kind of host."""
        testbed = self.testbeds.get(job.testbed)
        if job.options.host:
            return host.name == job.options.host
        return testbed is not None and testbed.has(host.labels, host.gpus)

    def keeper(self, series: str) -> str:
        """Name the host that keeps a series; empty while there is none."""
        for name in self.keepers.get(series, ()):
            host = self.hosts.get(name)
            if host is None or host.standing is not HostStatus.RETIRED:
                return name
        return ""

    def may(self, host: Host, job: Job) -> bool:
        """Whether a host may begin a job of this batch, if it is idle."""
        if job.purpose is not Purpose.A_A and (host.name, job.batch_id) in self.unproven:
            return False
        return self.usable(host.name) and self.fits(host, job)


@dataclass(frozen=True, slots=True)
class Start:
    """A job and the host that is to measure it now."""

    job: Job
    host: str


def place(jobs: Sequence[Job], fleet: Fleet) -> list[Start]:
    """Give an idle host each job that may start now.

    There is at most one job for each machine. What is more urgent comes first; then series that are
    kept somewhere; then what was wanted first; then what takes longest.
    """
    busy = {host.machine for host in fleet.hosts.values() if host.job}
    idle = {
        name: host
        for name, host in fleet.hosts.items()
        if fleet.usable(name) and host.machine not in busy
    }
    load = Counter(fleet.keeper(series) for series in fleet.keepers)
    taken: dict[str, str] = {}
    starts: list[Start] = []
    for job in sorted(jobs, key=_urgency(fleet)):
        if not idle:
            break
        keeper = fleet.keeper(job.series) or taken.get(job.series, "")
        host = _host_for(job, keeper, fleet, idle, load)
        if host is None:
            continue
        starts.append(Start(job, host.name))
        if job.series:
            taken.setdefault(job.series, host.name)
        load[host.name] += 1
        idle = {name: one for name, one in idle.items() if one.machine != host.machine}
    return starts


def why_waiting(job: Job, fleet: Fleet) -> str:
    """Say in a few words why a job waits; empty when it is only not its turn."""
    keeper = fleet.keeper(job.series) or job.options.host
    candidates = [keeper] if keeper and not job.options.stand_in else _fitting(job, fleet)
    if any(fleet.usable(name) for name in candidates):
        return ""
    if not candidates:
        return f"no host is of the testbed {job.testbed}"
    whose = "its host" if keeper else "the only host" if len(candidates) == 1 else "every host"
    return f"{whose} {', '.join(candidates)} {_trouble(candidates[0], fleet)}"


def _urgency(fleet: Fleet) -> Callable[[Job], tuple[int, bool, float, float, str]]:
    def urgency(job: Job) -> tuple[int, bool, float, float, str]:
        new = not fleet.keeper(job.series)
        planned = job.planned_at.timestamp()
        return -job.priority, new, planned, -job.options.minutes, job.key

    return urgency


def _host_for(
    job: Job, keeper: str, fleet: Fleet, idle: Mapping[str, Host], load: Mapping[str, int]
) -> Host | None:
    if keeper and (fleet.usable(keeper) or not job.options.stand_in):
        host = idle.get(keeper)
        return host if host is not None and fleet.may(host, job) else None
    stood_in = [name for name in fleet.keepers.get(job.series, ()) if fleet.usable(name)]
    choice = [idle[name] for name in stood_in if name in idle]
    if not stood_in:  # those that keep the fewest series first
        choice = sorted(idle.values(), key=lambda host: (load.get(host.name, 0), host.name))
    return next((host for host in choice if fleet.may(host, job)), None)


def _fitting(job: Job, fleet: Fleet) -> list[str]:
    return sorted(
        name
        for name, host in fleet.hosts.items()
        if host.standing is not HostStatus.RETIRED and fleet.fits(host, job)
    )


def _trouble(name: str, fleet: Fleet) -> str:
    host = fleet.hosts.get(name)
    if host is None or name not in fleet.present:
        return "is absent"
    if host.standing is HostStatus.QUARANTINED:
        return f"is in quarantine: {host.reason}"
    return "has not passed its health check yet"
