"""Jobs, each one measurement for a fleet, and the choice of which starts on which host.

A series waits for the host that first measured it, or its batch's end; only a stand-in host, where
allowed, measures it too, as a series of its own.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter

from hybridwatch.records.run import Phase
from hybridwatch.scenarios.validation import Part

KEY_DIGITS: Final = 16
KindName = Annotated[
    str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$", max_length=64, description="a name")
]
PlainText = Annotated[str, Field(pattern=r"\S", description="a text")]


class Purpose(Enum):
    """What a job is for."""

    MEASURE = "measure"
    A_A = "a-a"
    """Shows that a host gives one build the same numbers twice; goes before what else it does."""
    CONFIRM = "confirm"
    """Measures again what seemed to have changed."""
    PROBE = "probe"
    """Measures a candidate of a search, which waits for it."""


class JobState(Enum):
    """Where a job stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    """Its record is in the store."""
    FAILED = "failed"
    """It was tried as often as it may be."""
    POISONED = "poisoned"
    """It ended the process that ran it, again and again: nothing runs it any more."""
    CANCELLED = "cancelled"
    MISSING = "missing"
    """Its batch expired before a host that may measure it was there."""


OPEN: Final = (JobState.WAITING, JobState.RUNNING)


class AttemptEnd(Enum):
    """How an attempt at a job ended."""

    STORED = "stored"
    """Its record is in the store."""
    FAILED = "failed"
    """It left no record, or none in time."""
    DIED = "died"
    """It took the process that ran it with it."""
    LOST = "lost"
    """Its host or its driver went away: no fault of the job."""
    STOPPED = "stopped"
    """A person cancelled the job."""


class Steady(Part):
    """With what a host shows that it is steady."""

    scenario: PlainText
    build: PlainText


class HostKind(Part):
    """A kind of host, as ``[[testbed]]`` declares it, with facts and an A/A that it must show."""

    name: KindName
    labels: dict[str, str] = Field(default_factory=dict)
    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    expect: dict[str, str] = Field(default_factory=dict)
    a_a: Steady | None = None

    def has(self, labels: Mapping[str, str], gpus: int) -> bool:
        """Whether a host with these labels and GPUs is of the kind."""
        return gpus >= self.gpus and self.labels.items() <= labels.items()


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How a job is to be measured.

    Attributes:
        minutes: Time after which it is given up; preparing its builds is not counted.
        stand_in: Whether another host may measure it while its own cannot, as another series.
        trials: Timed trials a side; ``None`` as the scenario counts.
        host: The one host that may measure it; empty for any.
        phases: Every one when there is none.
        commits: Builds that the host makes of its clone over ``base``: by name, the commit.
        line: The line of builds of the last one; empty where none is stated.
    """

    minutes: float
    stand_in: bool = False
    trials: int | None = None
    host: str = ""
    phases: tuple[str, ...] = ()
    commits: Mapping[str, str] = field(default_factory=dict)
    clone: str = ""
    base: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One measurement.

    ``key`` is equal for jobs that would measure the same in the same round (``batch_id``); a higher
    ``priority`` goes first; after ``until`` it is not begun.
    """

    key: str
    batch_id: str
    purpose: Purpose
    scenario: str
    builds: tuple[str, ...]
    testbed: str
    options: JobOptions
    priority: int
    planned_at: datetime
    until: datetime

    @property
    def series(self) -> str:
        """What has to be measured on one host: a scenario on a testbed; an A/A is about its host.

        Empty of contracts alone: what breaks one breaks it on every host of a kind.
        """
        if tuple(self.options.phases) == (Phase.CONTRACT.value,):
            return ""
        words = (self.testbed, self.scenario, self.options.host)
        return " ".join(filter(None, words))

    @property
    def words(self) -> list[str]:
        """The options of ``hybridwatch run`` that name its builds, and how often each is timed."""
        trials = self.options.trials
        builds = [word for label in self.builds for word in ("--build", label)]
        return builds if trials is None else [*builds, "--trials", str(trials)]

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.scenario} {' against '.join(self.builds)} on {self.testbed}"


_JOB: Final = TypeAdapter(Job)


def compute_job_key(digest: str, builds: Sequence[str], place: str, batch_id: str) -> str:
    """Name a job by the digest of its scenario, its builds, its testbed or host, and its batch."""
    facts = json.dumps([digest, list(builds), place, batch_id])
    return hashlib.sha256(facts.encode()).hexdigest()[:KEY_DIGITS]


def build_job_row(job: Job) -> dict[str, Any]:
    """Give the columns that never change."""
    return {
        "key": job.key,
        "night": job.batch_id,
        "purpose": job.purpose.value,
        "scenario": job.scenario,
        "builds": json.dumps(job.builds),
        "testbed": job.testbed,
        "series": job.series,
        "wish": json.dumps(asdict(job.options), sort_keys=True),
        "priority": job.priority,
        "planned_at": job.planned_at,
        "until": job.until,
    }


def parse_job_row(row: Any) -> Job:
    """Read a row back."""
    written = {"builds": json.loads(row.builds), "options": json.loads(row.wish)}
    return _JOB.validate_python({**row._asdict(), **written, "batch_id": row.night})


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
    """A host; those of one ``machine`` measure in turn; ``job`` is empty while it is idle."""

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

    ``hosts`` are all that were ever seen, by name, ``present`` those that are there. ``keepers``
    are by series the hosts that measured it, the first one first; of the ``unproven`` hosts and
    batches the A/A is still to come.
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

    def kinds(self, host: Host) -> list[HostKind]:
        """Give the kinds that a host is of."""
        return [one for one in self.testbeds.values() if one.has(host.labels, host.gpus)]

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

    def urgency(job: Job) -> tuple[int, bool, float, float, str]:
        new = not fleet.keeper(job.series)
        return -job.priority, new, job.planned_at.timestamp(), -job.options.minutes, job.key

    for job in sorted(jobs, key=urgency):
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
    candidates = [keeper]
    if not keeper or job.options.stand_in:
        candidates = sorted(
            name
            for name, host in fleet.hosts.items()
            if host.standing is not HostStatus.RETIRED and fleet.fits(host, job)
        )
    if any(fleet.usable(name) for name in candidates):
        return ""
    if not candidates:
        return f"no host is of the testbed {job.testbed}"
    whose = "its host" if keeper else "the only host" if len(candidates) == 1 else "every host"
    return f"{whose} {', '.join(candidates)} {_trouble(candidates[0], fleet)}"


def _host_for(
    job: Job, keeper: str, fleet: Fleet, idle: Mapping[str, Host], load: Mapping[str, int]
) -> Host | None:
    if keeper and (fleet.usable(keeper) or not job.options.stand_in):
        host = idle.get(keeper)
        return host if host is not None and fleet.may(host, job) else None
    keepers = [name for name in fleet.keepers.get(job.series, ()) if fleet.usable(name)]
    choice = [idle[name] for name in keepers if name in idle]
    if not keepers:  # those that keep the fewest series first
        choice = sorted(idle.values(), key=lambda host: (load.get(host.name, 0), host.name))
    return next((host for host in choice if fleet.may(host, job)), None)


def _trouble(name: str, fleet: Fleet) -> str:
    host = fleet.hosts.get(name)
    if host is None or name not in fleet.present:
        return "is absent"
    if host.standing is HostStatus.QUARANTINED:
        return f"is in quarantine: {host.reason}"
    return "has not passed its health check yet"
