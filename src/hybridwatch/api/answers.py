"""The schemas that the description promises; tests hold the verbs' ``--json`` against these."""

from datetime import datetime

from pydantic import Field

from hybridwatch.analysis.wording.report_json import Shape
from hybridwatch.metrics import Direction, Kind
from hybridwatch.reports.jsonform import AlertItem


class Problem(Shape):
    """What is wrong; ``field``, ``expected`` and ``found`` where one part of a request is."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str = ""
    expected: str = ""
    found: str = ""


class RunItem(Shape):
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


class RunPage(Shape):
    """Runs, the newest first."""

    items: list[RunItem]
    next: str | None


class SeriesItem(Shape):
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


class SeriesPage(Shape):
    """Series, in order of scenario, version, digest, testbed, metric and statistic."""

    items: list[SeriesItem]
    next: str | None


class LevelItem(Shape):
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


class LevelPage(Shape):
    """A series and its points, oldest first."""

    series: SeriesItem
    items: list[LevelItem]
    next: str | None


class AlertPage(Shape):
    """Alerts, the most urgent first."""

    items: list[AlertItem]
    next: str | None
