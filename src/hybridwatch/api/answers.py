"""What is answered: the schemas that the description promises.

The answers themselves are made where the verbs' ``--json`` is; tests hold them against these.
Fields of a report are as in ``docs/json.md``.
"""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.metrics import Direction, Kind
from hybridwatch.records.run import Clock


class Answer(BaseModel):
    """What every answer, and every part of one, is made by."""

    model_config = ConfigDict(extra="forbid")


class Problem(Answer):
    """What is wrong; ``field``, ``expected`` and ``found`` where one part of a request is."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str = ""
    expected: str = ""
    found: str = ""


class RunItem(Answer):
    """A run, as in ``hybridwatch records --json``; ``record`` lies below the results folder."""

    run_id: str
    record: str
    started_at: datetime
    scenario: str
    testbed: str
    builds: list[str]
    lines: list[str]
    role: str
    failed_trials: int = Field(ge=0)
    sha256: str | None


class RunPage(Answer):
    """Runs, the newest first."""

    items: list[RunItem]
    next: str | None


class SeriesItem(Answer):
    """A metric and statistic of one definition of a scenario on a testbed."""

    id: str
    scenario: str
    version: int
    digest: str
    testbed: str
    metric: str
    statistic: str
    unit: str
    better: Direction
    kind: Kind
    runs: int = Field(ge=1)
    newest: datetime


class SeriesPage(Answer):
    """Series, in order of scenario, version, digest, testbed, metric and statistic."""

    items: list[SeriesItem]
    next: str | None


class LevelItem(Answer):
    """A side of a run in a series: the median of ``n`` trials, in the series' unit."""

    run_id: str
    record: str
    started_at: datetime
    build: str
    line: str
    release: str
    side: int
    value: float
    n: int = Field(ge=1)


class LevelPage(Answer):
    """A series and its points, oldest first."""

    series: SeriesItem
    items: list[LevelItem]
    next: str | None


class Scenario(Answer):
    """What was measured."""

    id: str
    version: int
    digest: str
    fix: str | None


class Build(Answer):
    """An engine."""

    label: str
    name: str
    release: str
    accelerator: str
    distribution: str
    lock_digest: str | None
    wheel_digest: str | None
    fixes: dict[str, str]
    flags: dict[str, str]
    code_digest: str = ""
    changed_files: list[str] = []
    revision: str = ""
    diff_digest: str = ""
    line: str = ""


class Testbed(Answer):
    """A machine."""

    id: str
    cpu_model: str
    cores: int
    memory_bytes: int
    kernel: str
    gpus: list[str]
    driver: str | None
    cuda: str | None
    gpu_memory_bytes: list[int] = []
    gpu_power_limits_w: list[float] = []


class Side(Answer):
    """One side of a report."""

    run_id: str
    build: Build
    testbed: Testbed
    started_at: datetime | None


class Family(Answer):
    """Tests that were adjusted together."""

    name: str
    tests: int


class Looks(Answer):
    """When a run was judged that went on until it was decided."""

    planned: list[int]
    made: list[int]
    level: float


class Summary(Answer):
    """The values of a side."""

    center: float | None
    n: int
    values: list[float | None]


class Interval(Answer):
    """Where an effect lies."""

    low: float | None
    high: float | None
    confidence: float


class GivenAnswer(Answer):
    """What an engine answered."""

    response: str
    correct: bool


class Flip(Answer):
    """A document that one side alone got right."""

    task: str
    task_version: str
    doc_id: int
    doc_hash: str
    prompt: str
    target: str
    baseline: GivenAnswer
    contender: GivenAnswer


class TokenChange(Answer):
    """A request that two sides answer with different tokens."""

    trial: int
    request: int
    position: int
    baseline: int | None
    contender: int | None
    baseline_logprob: float | None
    contender_logprob: float | None
    baseline_gap: float | None
    contender_gap: float | None


class Comparison(Answer):
    """A metric of both sides, and the verdict."""

    metric: str
    statistic: str
    unit: str
    better: Direction
    kind: Kind
    margin: float
    verdict: Verdict
    bad_news: bool
    test: str
    design: str
    assumption: str
    baseline: Summary | None
    contender: Summary | None
    effect: float | None
    interval: Interval | None
    pairs: int | None
    relevance: float
    noise: float | None
    churn: float | None
    p_value: float | None
    p_adjusted: float | None
    p_holm: float | None
    equivalence_p: float | None
    minimum_detectable_effect: float | None
    trials_needed: int | None
    doubts: list[str]
    flips: list[Flip]
    changes: list[TokenChange] = []
    family: str | None


class Factor(Answer):
    """A part of a change."""

    name: str
    effect: float | None
    interval: Interval | None
    share: float | None
    moved: bool


class Attribution(Answer):
    """Why throughput changed."""

    metric: str
    effect: float | None
    factors: list[Factor]
    movers: list[str]


class Failure(Answer):
    """Why an engine failed."""

    reason: str
    sides: list[str]
    trials: int
    first: dict[str, Any]


class PartItem(Answer):
    """A metric that shows a cause."""

    metric: str
    statistic: str
    verdict: Verdict
    effect: float | None
    action: Action


class Cause(Answer):
    """One thing that changed."""

    area: Area
    better: bool
    action: Action
    sentence: str
    parts: list[PartItem]
    failure: Failure | None


class Spread(Answer):
    """A number of each trial: the median, and the middle four fifths of them."""

    middle: float
    low: float
    high: float


class LoadPoint(Answer):
    """What a side gave under one load."""

    load: float
    interactivity: Spread
    throughput: Spread
    goodput: Spread | None
    joules_per_token: Spread | None


class SideCurve(Answer):
    """The curve of one side of a sweep."""

    build: str
    knob: str
    gpus: int
    slo: dict[str, float]
    trials: int
    points: list[LoadPoint]
    clock: Clock = "wall"


class Stretch(Answer):
    """Interactivities at which one side is better."""

    better: str
    low: float
    high: float


class Tradeoff(Answer):
    """Both curves of a sweep, where one is better, and where they cross."""

    baseline: SideCurve
    contender: SideCurve
    common: tuple[float, float] | None
    stretches: list[Stretch]
    crossings: list[tuple[float, float]]


class ReportAnswer(Answer):
    """Every verdict of a run of two builds, as ``hybridwatch compare RUN --json`` prints it."""

    schema_version: int
    scenario: Scenario
    baseline: Side
    contender: Side
    bad_news: bool
    tests: int
    families: list[Family]
    false_discovery_rate: float
    looks: Looks | None
    comparisons: list[Comparison]
    differences: list[str]
    failures: list[str]
    attribution: Attribution | None
    tradeoff: Tradeoff | None = None
    causes: list[Cause]
