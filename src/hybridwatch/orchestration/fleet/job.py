"""A job: one measurement that a fleet is to make once."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final

from pydantic import Field

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
    """A kind of host, as a ``[[testbed]]`` of the matrix declares it.

    Attributes:
        labels: What a host must have to be of the kind.
        gpus: Whole GPUs that a measurement gets.
        expect: Facts that a host must show, such as ``driver``.
        a_a: What each host has to show every night; ``None`` for nothing.
    """

    name: KindName
    labels: dict[str, str] = Field(default_factory=dict)
    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    expect: dict[str, str] = Field(default_factory=dict)
    a_a: Steady | None = None

    def has(self, labels: Mapping[str, str], gpus: int) -> bool:
        """Whether a host with these labels and GPUs is of the kind."""
        return gpus >= self.gpus and self.labels.items() <= labels.items()

    def to_json(self) -> str:
        """Write it; ``model_validate_json`` reads it back."""
        return json.dumps(self.model_dump(), sort_keys=True)


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How a job is to be measured.

    Attributes:
        minutes: Time after which it is given up; preparing its builds is not counted.
        stand_in: Whether another host may measure it while its own cannot, as another series.
        trials: Timed trials a side; ``None`` as the scenario counts.
        host: The one host that may measure it; empty for any.
        phases: Which phases; every one when there is none.
        commits: Builds that the host makes of its clone: by name, the commit.
        base: The build over which it lays them.
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

    Attributes:
        key: Equal for jobs that would measure the same in the same batch.
        batch_id: A date, a commit, or whatever else distinguishes one round of measuring from the
            next.
        priority: Higher goes first.
        planned_at: When it was wanted.
        until: After that it is not begun any more.
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
        """Whatever has to be measured on one host, since people compare it.

        All builds of a scenario are, on one kind of host; an A/A is about its host alone. Empty of
        contracts alone: what breaks one breaks it on every host of a kind.
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


def compute_job_key(digest: str, builds: Sequence[str], place: str, batch_id: str) -> str:
    """Name a job.

    ``digest`` is of the scenario's content; ``place`` is the testbed, or the host where one is
    meant.
    """
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
    options = json.loads(row.wish)
    options["phases"] = tuple(options.get("phases", ()))
    return Job(
        key=row.key,
        batch_id=row.night,
        purpose=Purpose(row.purpose),
        scenario=row.scenario,
        builds=tuple(json.loads(row.builds)),
        testbed=row.testbed,
        options=JobOptions(**options),
        priority=row.priority,
        planned_at=row.planned_at,
        until=row.until,
    )
