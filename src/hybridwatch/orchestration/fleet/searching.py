"""A search (``hybridwatch bisect``) whose measurements are jobs: planned here, measured anywhere.

The search waits for each job as for a measurement of its own. It may die: its jobs go on, the queue
keeps what they gave, and the next call takes what no earlier one has read.
"""

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
from hybridwatch.orchestration.bisect.candidate import Rung
from hybridwatch.orchestration.bisect.meter import Meter
from hybridwatch.orchestration.bisect.rungs import Workshop
from hybridwatch.orchestration.fleet.confirming import left_today
from hybridwatch.orchestration.fleet.job import OPEN, Job, Purpose, State, Testbed, Wish, key_of
from hybridwatch.orchestration.fleet.ledger import Ledger
from hybridwatch.orchestration.fleet.lookup import find_story
from hybridwatch.orchestration.fleet.overview import read_overview
from hybridwatch.records.run import Phase, Run
from hybridwatch.records.store import read_run
from hybridwatch.records.store.layout import run_id_of
from hybridwatch.scenarios.digest import digest
from hybridwatch.system.stopping import require_wanted

FEWEST_TRIALS: Final = 7
"""``hybridwatch run`` makes no fewer timed trials a side."""
_AT_ONCE: Final = 3
"""The middle, and the two that may be the next one."""
_FIRST: Final = 1000
"""Somebody waits for a probe; what is only likely to be wanted comes after it."""
_MINUTES: Final = 60.0
_LOOK_S: Final = 1.0


def _pause() -> None:
    time.sleep(_LOOK_S)


@dataclass(slots=True)
class Errand:
    """What a search wants of a fleet.

    Attributes:
        ledger: The queue.
        results: The results folder.
        testbed: The kind of host.
        per_day: How many jobs a day alerts and searches may ask for.
        night: Names the search.
        until: No probe of this call begins later.
        read: Ids of runs that the search has read.
        say: Gets a line.
        pause: Lets some time pass.
        clone: Folder of a clone of vLLM, on every host.
        base: The build that commits are laid over there.
        commits: Builds of commits, by name.
    """

    ledger: Ledger
    results: Path
    testbed: Testbed
    per_day: int
    night: str
    until: datetime
    read: set[str]
    say: Callable[[str], None]
    pause: Callable[[], None] = _pause
    clone: str = ""
    base: str = ""
    commits: dict[str, str] = field(default_factory=dict)
    ahead: set[str] = field(default_factory=set)
    """Keys of jobs that were asked for because they may be wanted."""

    def measured(self, job: Job) -> Run:
        """Wait for a job that was planned, and read its record.

        Raises:
            BuildError: It was tried as often as it may be, and gave nothing.
            LostProbeError: It will give nothing.
        """
        self.say(f"  waiting for job {job.key}: {job.title}")
        while True:
            require_wanted()
            story = find_story(self.ledger, job.key)
            assert story is not None  # noqa: S101 - jobs stay in the queue
            if story.state is State.DONE:
                run = read_run(self.results / story.record)
                self.read.add(run.id)
                self.ahead.discard(job.key)
                return run
            if story.state in (State.FAILED, State.POISONED):
                raise BuildError(f"job {job.key} {story.state.value}: {story.reason}")
            if story.state not in OPEN:
                raise LostProbeError(_lost(job, story.state.value, story.reason))
            if self._is_late(job, story.state):
                self.ledger.cancel([job.key])
                why = story.reason or "no driver brought it home (hybridwatch fleet run)"
                raise LostProbeError(_lost(job, f"is still {story.state.value}", why))
            self.pause()

    def planned(self, jobs: Sequence[Job]) -> int:
        """Put jobs into the queue, as far as the day allows; how many of them are there."""
        left = left_today(self.ledger, self.per_day)
        for number, job in enumerate(jobs):
            if find_story(self.ledger, job.key) is not None:
                continue
            if not left:
                return number
            left -= self.ledger.plan([job], [self.testbed])
        return len(jobs)

    def drop(self, wanted: Collection[str] = ()) -> None:
        """Cancel what was asked for ahead, but for some."""
        self.ledger.cancel(sorted(self.ahead.difference(wanted)))
        self.ahead.intersection_update(wanted)

    def is_usable(self, key: str) -> bool:
        """Whether a job is still to be planned, will have a record, or has one that is unread."""
        story = find_story(self.ledger, key)
        if story is None:
            return True
        if story.state is State.WAITING and self.ledger.clock() > story.job.until:
            self.ledger.cancel([key])  # of an earlier call; no driver has seen that it is late
            return False
        is_unread = story.state is State.DONE and run_id_of(Path(story.record)) not in self.read
        return story.state in OPEN or is_unread

    def machines(self) -> int:
        """How many machines could measure now."""
        there = (host.name for host in read_overview(self.ledger).hosts if host.is_there)
        fleet = self.ledger.queue(there).fleet
        able = (
            host.machine
            for host in fleet.hosts.values()
            if fleet.usable(host.name) and self.testbed.has(host.labels, host.gpus)
        )
        return len(set(able))

    def places(self) -> set[str]:
        """Name the testbeds on which this search has timed something."""
        timed = JOB.c.night == self.night, JOB.c.series != "", JOB.c.record != ""
        with self.ledger.database.reading() as connection:
            records = connection.scalars(select(JOB.c.record).where(*timed)).all()
        return {Path(one).parent.name for one in records}

    def _is_late(self, job: Job, state: State) -> bool:
        until = max(job.until, self.until) if state is State.RUNNING else job.until
        grace = timedelta(minutes=job.wish.minutes) if state is State.RUNNING else timedelta()
        return self.ledger.clock() > until + grace


@dataclass(frozen=True, slots=True)
class FleetMeter(Meter):
    """Measures builds on the hosts of a fleet.

    Times of a search come from one host, the one that keeps the scenario's series; contracts from
    whichever is free.

    Attributes:
        errand: What for.
    """

    errand: Errand

    @property
    def at_once(self) -> int:
        """How many candidates' contracts can be measured at a time."""
        return max(1, min(_AT_ONCE, self.errand.machines()))

    def expect(self, makers: Sequence[Callable[[], str]]) -> None:
        """Have contracts measured that are asked for next, or may be; cancel what no longer is."""
        jobs: list[Job] = []
        for make in makers:
            with suppress(BuildError):  # whoever asks for it is told
                phases = {Phase.CONTRACT}
                jobs.append(self._job((make(),), phases, 0, _FIRST - len(jobs)))
        self.errand.drop({job.key for job in jobs})
        there = jobs[: self.errand.planned(jobs)]
        self.errand.ahead.update(job.key for job in there)

    def session(self, labels: Collection[str], phases: Collection[Phase], blocks: int = 0) -> Run:
        """Have builds measured, and wait for it.

        Raises:
            BuildError: The job was tried as often as it may be, and gave nothing.
            LostProbeError: It will give nothing, or is of another host than what was timed before.
        """
        errand = self.errand
        job = self._job(labels, phases, blocks, _FIRST)
        if not errand.planned([job]):
            raise LostProbeError(
                f"{job.title}: the {errand.per_day} jobs of a day ([confirm] per_day) are spent; "
                "the same command goes on tomorrow"
            )
        run = errand.measured(job)
        if job.series and len(places := errand.places()) > 1:
            raise LostProbeError(
                f"{job.title}: expected all times of a search from one host, found testbeds "
                f"{', '.join(sorted(places))}; --anew begins it on the new one"
            )
        return run

    def _job(
        self, labels: Collection[str], phases: Collection[Phase], blocks: int, priority: int
    ) -> Job:
        """Give the job of a measurement: one that is open or unread, else a new one."""
        builds = tuple(labels)
        names = tuple(phase.value for phase in Phase if phase in phases)
        key = next(filter(self.errand.is_usable, self._keys(builds, [*names, str(blocks)])))
        errand = self.errand
        wish = Wish(
            _MINUTES,
            trials=max(blocks, FEWEST_TRIALS) if blocks else None,
            phases=names,
            commits={name: errand.commits[name] for name in builds if name in errand.commits},
            clone=errand.clone,
            base=errand.base,
        )
        return Job(
            key=key,
            night=errand.night,
            purpose=Purpose.PROBE,
            scenario=self.scenario.id,
            builds=builds,
            testbed=errand.testbed.name,
            wish=wish,
            priority=priority,
            planned_at=errand.ledger.clock(),
            until=errand.until,
        )

    def _keys(self, builds: Sequence[str], how: Sequence[str]) -> Iterator[str]:
        """Give the keys under which one measurement is made again and again."""
        for number in count():
            night = " ".join((self.errand.night, *how, str(number)))
            yield key_of(digest(self.scenario), builds, self.errand.testbed.name, night)


@dataclass(slots=True)
class FleetWorkshop(Workshop):
    """Names builds that hosts make for themselves.

    Attributes:
        commits: Gets the commit of each build that it names.
    """

    has_code: ClassVar[bool] = False
    commits: dict[str, str] = field(default_factory=dict)

    def require(self, rung: Rung) -> None:
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
    return f"job {job.key} ({job.title}) {what}: {why or 'nobody said why'}"


def night_of(name: str) -> str:
    """Name the night of a search's jobs."""
    return f"bisect {name}"
