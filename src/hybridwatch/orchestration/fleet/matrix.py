"""``fleet.toml``: builds and scenarios to measure, on which kinds of hosts, with or without Ray."""

import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final, Self, cast

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.fitting import misfit
from hybridwatch.errors import BuildError, FleetError, ScenarioError
from hybridwatch.orchestration.fleet.job import (
    HostKind,
    Job,
    JobOptions,
    KindName,
    PlainText,
    Purpose,
    compute_job_key,
)
from hybridwatch.records.identity import checked_line
from hybridwatch.scenarios.load import digest, find
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.scenarios.validation import Part, closest, quoted, refuse, refusing_toml

MATRIX_FILE: Final = "fleet.toml"
"""In the home, when no other one is named."""
FIRST: Final = 1_000_000
"""Priority of what a host has to show before it measures anything."""
_Priority = Annotated[int, Field(ge=-1000, le=1000)]
_Minutes = Annotated[float, Field(gt=0, le=1440)]


def github_matrix(jobs: Sequence[Job], testbeds: Mapping[str, HostKind]) -> dict[str, Any]:
    """Give what ``strategy.matrix`` of a job takes by ``fromJSON``."""
    return {"include": [_entry(job, testbeds[job.testbed]) for job in jobs]}


def buildkite_steps(jobs: Sequence[Job], testbeds: Mapping[str, HostKind]) -> dict[str, Any]:
    """Give a pipeline, as ``buildkite-agent pipeline upload`` takes it."""
    return {"steps": [_step(job, testbeds[job.testbed]) for job in jobs]}


def render_command(job: Job) -> str:
    """Give the words that measure a job."""
    return shlex.join(["hybridwatch", "run", job.scenario, *job.words])


def _entry(job: Job, testbed: HostKind) -> dict[str, Any]:
    # GitHub's labels are words without values.
    words = [f"{key}-{value}" for key, value in testbed.labels.items()] or [testbed.name]
    return {
        "name": job.title,
        "testbed": testbed.name,
        "runs-on": ["self-hosted", *words],
        "timeout-minutes": _minutes(job),
        "command": render_command(job),
    }


def _step(job: Job, testbed: HostKind) -> dict[str, Any]:
    return {
        "label": job.title,
        "command": render_command(job),
        "agents": dict(testbed.labels) or {"queue": testbed.name},
        "timeout_in_minutes": _minutes(job),
        # One measurement at a time of a series, wherever: its numbers are compared.
        "concurrency": 1,
        "concurrency_group": f"hybridwatch/{job.testbed}/{job.scenario}",
        "priority": job.priority,
        "artifact_paths": ["results/records/**/*"],
    }


def _minutes(job: Job) -> int:
    return max(1, round(job.options.minutes))


class _Measure(Part):
    scenarios: Annotated[list[PlainText], Field(min_length=1)]
    builds: Annotated[
        list[Annotated[list[PlainText], Field(min_length=1, max_length=2)]], Field(min_length=1)
    ]
    testbeds: Annotated[list[KindName], Field(min_length=1)]
    priority: _Priority = 0
    minutes: _Minutes = 60.0
    trials: Annotated[int, Field(ge=7, le=1000)] | None = None
    stand_in: bool = False
    line: Annotated[str, AfterValidator(checked_line)] | None = None

    @property
    def options(self) -> JobOptions:
        return JobOptions(self.minutes, self.stand_in, self.trials, line=self.line or "")


class Confirm(Part):
    """``[confirm]``: how many jobs a day alerts may ask for, and in which order builds came."""

    per_day: Annotated[int, Field(ge=0, le=1000)]
    order: list[PlainText] = Field(default_factory=list)


class CommentJobs(Part):
    """``[ask]``: the testbed for commands in comments on pull requests."""

    testbed: KindName
    minutes: _Minutes = 60.0
    priority: _Priority = 10


class Matrix(Part):
    """One file; jobs may begin until ``hours`` after they were planned.

    ``confirm`` and ``ask`` allow jobs of alerts and of comments on pull requests.
    """

    hours: Annotated[float, Field(gt=0, le=168)] = 12.0
    testbeds: Annotated[list[HostKind], Field(min_length=1, alias="testbed")]
    measures: Annotated[list[_Measure], Field(min_length=1, alias="measure")]
    confirm: Confirm | None = None
    ask: CommentJobs | None = None
    _path: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @model_validator(mode="after")
    def _names_are_known(self, info: ValidationInfo) -> Self:
        self._path = cast(Path, info.context)
        names = [one.name for one in self.testbeds]
        twice = sorted({one for one in names if names.count(one) > 1})
        meant = [
            (f"measure[{place}].testbeds", one)
            for place, measure in enumerate(self.measures)
            for one in measure.testbeds
        ]
        meant += [("ask.testbed", self.ask.testbed)] if self.ask else []
        refuse(
            *(("testbed", f"{quoted(one)} stands there twice") for one in twice),
            *(
                (key, f"{quoted(one)} is no testbed; {closest(one, names)}")
                for key, one in meant
                if one not in names
            ),
        )
        return self

    def jobs(self, scenarios: Path, batch_id: str, now: datetime) -> list[Job]:
        """Give every job of a batch once; of two entries for one job the more urgent counts."""
        found: dict[str, Job] = {}
        for place, measure in enumerate(self.measures):
            for job in self._plan_jobs(measure, f"measure[{place}]", scenarios, batch_id, now):
                known = found.get(job.key)
                if known is None or known.priority < job.priority:
                    found[job.key] = job
        return list(found.values())

    def requested_jobs(
        self,
        scenarios: Path,
        wanted: tuple[Sequence[str], Sequence[str], int | None],
        batch_id: str,
        now: datetime,
    ) -> list[Job]:
        """Plan a comment's jobs: ids and groups, one or two builds, timed trials a side or none."""
        if self.ask is None:
            raise FleetError(f"{self.path}: ask: missing; expected a table with testbed")
        named, builds, trials = wanted
        measure = _Measure(
            scenarios=list(named),
            builds=[list(builds)],
            testbeds=[self.ask.testbed],
            priority=self.ask.priority,
            minutes=self.ask.minutes,
            trials=trials,
        )
        return list(self._plan_jobs(measure, "ask", scenarios, batch_id, now))

    def _plan_jobs(
        self, measure: _Measure, key: str, scenarios: Path, batch_id: str, now: datetime
    ) -> Iterator[Job]:
        until = now + timedelta(hours=self.hours)
        wanted = self._found(scenarios, measure.scenarios, f"{key}.scenarios")
        for number, builds in enumerate(measure.builds):
            fitting = self._fitting(wanted, builds, f"{key}.builds[{number}]")
            for scenario, testbed in product(fitting, measure.testbeds):
                yield Job(
                    key=compute_job_key(digest(scenario), builds, testbed, batch_id),
                    batch_id=batch_id,
                    purpose=Purpose.MEASURE,
                    scenario=scenario.id,
                    builds=tuple(builds),
                    testbed=testbed,
                    options=measure.options,
                    priority=measure.priority,
                    planned_at=now,
                    until=until,
                )

    def _found(self, folder: Path, patterns: Sequence[str], key: str) -> list[Scenario]:
        try:
            return find(folder, patterns)
        except ScenarioError as error:
            raise FleetError(f"{self.path}: {key}: {error}") from error

    def _fitting(
        self, scenarios: Sequence[Scenario], builds: Sequence[str], key: str
    ) -> list[Scenario]:
        try:
            sides = [parse_label(label) for label in builds]
        except BuildError as error:
            raise FleetError(f"{self.path}: {key}: {error}") from error
        whys = {one.id: [why for side in sides if (why := misfit(one, side))] for one in scenarios}
        fitting = [one for one in scenarios if not whys[one.id]]
        if not fitting:
            first = scenarios[0].id
            raise FleetError(
                f"{self.path}: {key}: expected builds that can run one of the scenarios, found "
                f"{quoted(list(builds))}: {first} {whys[first][0]}"
            )
        return fitting


def read_matrix(path: Path) -> Matrix:
    """Read a file; ``FleetError`` has a line for each key that is wrong."""
    with refusing_toml(path, Matrix, FleetError):
        return Matrix.model_validate(tomllib.loads(path.read_text(encoding="utf-8")), context=path)


def read_confirm(path: Path) -> tuple[Matrix, Confirm]:
    """Read a matrix that says how much a day has for what is measured again."""
    matrix = read_matrix(path)
    if matrix.confirm is None:
        raise FleetError(f"{matrix.path}: confirm: missing; expected a table with per_day")
    return matrix, matrix.confirm


def a_a_job(testbed: HostKind, host: str, like: Job) -> Job | None:
    """Give what a host has to show in the batch of a job; ``None`` if that is nothing."""
    if testbed.a_a is None:
        return None
    scenario, builds = testbed.a_a.scenario, (testbed.a_a.build, testbed.a_a.build)
    return Job(
        key=compute_job_key(scenario, builds, host, like.batch_id),
        batch_id=like.batch_id,
        purpose=Purpose.A_A,
        scenario=scenario,
        builds=builds,
        testbed=testbed.name,
        options=JobOptions(like.options.minutes, host=host),
        priority=FIRST,
        planned_at=like.planned_at,
        until=like.until,
    )
