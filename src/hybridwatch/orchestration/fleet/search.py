"""A search (``hybridwatch bisect``) whose measurements are jobs, planned here, made anywhere."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import ClassVar, Final

from sqlalchemy import select

from hybridwatch.database.schema import JOB
from hybridwatch.engines.builds import BuildSpec
from hybridwatch.errors import BuildError, LostProbeError
from hybridwatch.orchestration.bisect.candidates import BuildFactory, CandidateList
from hybridwatch.orchestration.bisect.measurer import Measurer
from hybridwatch.orchestration.fleet.job import (
    OPEN,
    HostKind,
    Job,
    JobOptions,
    JobState,
    Purpose,
    compute_job_key,
)
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.orchestration.fleet.lookup import find_job_history, left_today
from hybridwatch.orchestration.fleet.overview import read_overview
from hybridwatch.records.run import Phase, Run
from hybridwatch.records.store import read_run
from hybridwatch.records.store.layout import read_run_id
from hybridwatch.scenarios.load import digest
from hybridwatch.system.stopping import require_wanted

FEWEST_TRIALS: Final = 7
"""``hybridwatch run`` makes no fewer timed trials a side."""
_AT_ONCE: Final = 3
"""The middle, and the two that may be the next one."""
_FIRST: Final = 1000
"""A search waits for a probe; what is only likely to be wanted comes after it."""
_MINUTES: Final = 60.0
_LOOK_S: Final = 1.0


@dataclass(slots=True)
class FleetSearch:
    """What a search wants of a fleet.

    Attributes:
        per_day: How many jobs a day alerts and searches may add.
        until: No probe of this call begins later.
        read: Ids of runs that the search has read.
        clone: Folder of a clone of vLLM, on every host; ``commits`` by name are laid over ``base``.
    """

    job_queue: JobQueue
    results: Path
    testbed: HostKind
    per_day: int
    batch_id: str
    until: datetime
    read: set[str]
    say: Callable[[str], None]
    pause: Callable[[], None] = lambda: time.sleep(_LOOK_S)
    clone: str = ""
    base: str = ""
    commits: dict[str, str] = field(default_factory=dict)
    ahead: set[str] = field(default_factory=set)
    """Keys of jobs that were added in advance."""

    def measured(self, job: Job) -> Run:
        """Wait for a job that was planned, and read its record."""
        self.say(f"  waiting for job {job.key}: {job.title}")
        while True:
            require_wanted()
            history = find_job_history(self.job_queue, job.key)
            assert history is not None  # noqa: S101 - jobs stay in the queue
            if history.state is JobState.DONE:
                run = read_run(self.results / history.record)
                self.read.add(run.id)
                self.ahead.discard(job.key)
                return run
            if history.state in (JobState.FAILED, JobState.POISONED):
                raise BuildError(f"job {job.key} {history.state.value}: {history.reason}")
            if history.state not in OPEN:
                raise LostProbeError(_lost(job, history.state.value, history.reason))
            if self._is_late(job, history.state):
                self.job_queue.cancel([job.key])
                why = history.reason or "no driver has run it (hybridwatch fleet run)"
                raise LostProbeError(_lost(job, f"is still {history.state.value}", why))
            self.pause()

    def planned(self, jobs: Sequence[Job]) -> int:
        """Put jobs into the queue, as far as the day allows; how many of them are there."""
        left = left_today(self.job_queue, self.per_day)
        for number, job in enumerate(jobs):
            if find_job_history(self.job_queue, job.key) is not None:
                continue
            if not left:
                return number
            left -= self.job_queue.plan([job], [self.testbed])
        return len(jobs)

    def drop(self, wanted: Collection[str] = ()) -> None:
        """Cancel jobs that were added in advance, except some."""
        self.job_queue.cancel(sorted(self.ahead.difference(wanted)))
        self.ahead.intersection_update(wanted)

    def is_usable(self, key: str) -> bool:
        """Whether a job is still to be planned, will have a record, or has one that is unread."""
        history = find_job_history(self.job_queue, key)
        if history is None:
            return True
        if history.state is JobState.WAITING and self.job_queue.clock() > history.job.until:
            self.job_queue.cancel([key])  # of an earlier call; no driver has seen that it is late
            return False
        is_unread = (
            history.state is JobState.DONE and read_run_id(Path(history.record)) not in self.read
        )
        return history.state in OPEN or is_unread

    def machines(self) -> int:
        """How many machines could measure now."""
        there = (host.name for host in read_overview(self.job_queue).hosts if host.is_there)
        fleet = self.job_queue.snapshot(there).fleet
        able = (
            host.machine
            for host in fleet.hosts.values()
            if fleet.usable(host.name) and self.testbed.has(host.labels, host.gpus)
        )
        return len(set(able))

    def places(self) -> set[str]:
        """Name the testbeds on which this search has timed something."""
        timed = JOB.c.night == self.batch_id, JOB.c.series != "", JOB.c.record != ""
        with self.job_queue.database.reading() as connection:
            records = connection.scalars(select(JOB.c.record).where(*timed)).all()
        return {Path(one).parent.name for one in records}

    def _is_late(self, job: Job, state: JobState) -> bool:
        until = max(job.until, self.until) if state is JobState.RUNNING else job.until
        grace = timedelta(minutes=job.options.minutes) if state is JobState.RUNNING else timedelta()
        return self.job_queue.clock() > until + grace


@dataclass(frozen=True, slots=True)
class FleetMeasurer(Measurer):
    """Measures on a fleet: times on the host that keeps the series, contracts on any host."""

    search: FleetSearch

    @property
    def at_once(self) -> int:
        """How many candidates' contracts can be measured at a time."""
        return max(1, min(_AT_ONCE, self.search.machines()))

    def expect(self, makers: Sequence[Callable[[], str]]) -> None:
        """Add jobs for contracts that will or may be needed next; cancel those no longer needed."""
        jobs: list[Job] = []
        for make in makers:
            with suppress(BuildError):  # the call that asks for it fails, and says so
                phases = {Phase.CONTRACT}
                jobs.append(self._job((make(),), phases, 0, _FIRST - len(jobs)))
        self.search.drop({job.key for job in jobs})
        there = jobs[: self.search.planned(jobs)]
        self.search.ahead.update(job.key for job in there)

    def session(self, labels: Collection[str], phases: Collection[Phase], blocks: int = 0) -> Run:
        """Have builds measured, and wait for it."""
        search = self.search
        job = self._job(labels, phases, blocks, _FIRST)
        if not search.planned([job]):
            raise LostProbeError(
                f"{job.title}: the {search.per_day} jobs of a day ([confirm] per_day) are spent; "
                "the same command goes on tomorrow"
            )
        run = search.measured(job)
        if job.series and len(places := search.places()) > 1:
            raise LostProbeError(
                f"{job.title}: expected all times of a search from one host, found testbeds "
                f"{', '.join(sorted(places))}; --anew starts it over on the new one"
            )
        return run

    def _job(
        self, labels: Collection[str], phases: Collection[Phase], blocks: int, priority: int
    ) -> Job:
        """Give the job of a measurement: one that is open or unread, else a new one."""
        builds = tuple(labels)
        names = tuple(phase.value for phase in Phase if phase in phases)
        key = next(filter(self.search.is_usable, self._keys(builds, [*names, str(blocks)])))
        search = self.search
        options = JobOptions(
            _MINUTES,
            trials=max(blocks, FEWEST_TRIALS) if blocks else None,
            phases=names,
            commits={name: search.commits[name] for name in builds if name in search.commits},
            clone=search.clone,
            base=search.base,
        )
        return Job(
            key=key,
            batch_id=search.batch_id,
            purpose=Purpose.PROBE,
            scenario=self.scenario.id,
            builds=builds,
            testbed=search.testbed.name,
            options=options,
            priority=priority,
            planned_at=search.job_queue.clock(),
            until=search.until,
        )

    def _keys(self, builds: Sequence[str], how: Sequence[str]) -> Iterator[str]:
        for number in count():
            batch_id = " ".join((self.search.batch_id, *how, str(number)))
            yield compute_job_key(digest(self.scenario), builds, self.search.testbed.name, batch_id)


@dataclass(slots=True)
class FleetBuildFactory(BuildFactory):
    """Names builds that hosts make for themselves; ``commits`` gets the commit of each."""

    has_code: ClassVar[bool] = False
    commits: dict[str, str] = field(default_factory=dict)

    def require(self, candidates: CandidateList) -> None:
        """Leave it to each host what it has."""

    def release(self, spec: BuildSpec) -> str:
        """Name a release, which each host installs."""
        return spec.name

    def commit(self, sha: str, good: str) -> str:
        """Name the build of a commit, which each host makes of its clone."""
        name = self.named(sha, good)
        self.commits[name] = sha
        return name


def _lost(job: Job, what: str, why: str) -> str:
    return f"job {job.key} ({job.title}) {what}: {why or 'no reason was given'}"
