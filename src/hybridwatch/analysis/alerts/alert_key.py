"""What verdicts and alerts are about.

A verdict answers a question about one metric. An alert is about a subject: everything in one area
that is bad for the same reason, so that an engine that died is one alert and not one for each
metric that it took along.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from hybridwatch.analysis.cause import Area, find_area
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.records.identity import compares_releases

CONTROL: Final = "known-bad control"
"""Stands where a metric stands in what a control says that was, or was not, caught."""
_KEY: Final = 32
"""Hexadecimal digits of a key."""


@dataclass(frozen=True, slots=True, order=True)
class AlertQuestion:
    """The same things compared, whichever runs measured them.

    Attributes:
        metric: Its id, or ``CONTROL``.
        statistic: What each trial was reduced to.
        baseline: A line of builds.
        contender: The line that is held against it.
        digest: Of the scenario's definition: one load may be bad and another be good.
    """

    scenario: str
    metric: str
    statistic: str
    baseline: str
    contender: str
    testbed: str
    digest: str = ""

    @property
    def key(self) -> str:
        """The key of the alert that this had when every metric had one of its own."""
        facts = asdict(self)
        del facts["digest"]
        return _key(_json(facts))


@dataclass(frozen=True, slots=True)
class AlertSubject:
    """What an alert is about; ``baseline`` and ``contender`` are lines of builds."""

    scenario: str
    area: Area
    baseline: str
    contender: str
    testbed: str

    @property
    def key(self) -> str:
        """A name for addresses and tables; equal for equal subjects, on every machine."""
        return _key(_json(self.facts()))

    @property
    def compares_releases(self) -> bool:
        """Whether it is about two releases."""
        return compares_releases(self.baseline, self.contender)

    def facts(self) -> dict[str, str]:
        """Give each part by its name, as texts."""
        return {**asdict(self), "area": self.area.value}


@dataclass(frozen=True, slots=True)
class JudgedMetric:
    """One verdict on a question.

    Attributes:
        effect: Relative change, or the difference; ``None`` when there is none.
        run_id: The contender's run.
        started_at: When that run started, with a time zone.
        sure: Whether it stands under Holm's control (``gate.stands``).
        lasts: Whether it is more than chance gives from run to run (``start_luck``).
    """

    question: AlertQuestion
    verdict: Verdict
    effect: float | None
    run_id: str
    started_at: datetime
    sure: bool = True
    lasts: bool = True

    @property
    def area(self) -> Area:
        """What the verdict is about."""
        return area_for(self.question.metric, self.verdict)


def area_for(metric: str, verdict: Verdict) -> Area:
    """Say what a verdict is about, as ``find_area``; a failed control is no engine that failed."""
    return Area.OTHER if metric == CONTROL else find_area(metric, verdict)


def _json(facts: Mapping[str, str]) -> str:
    """Write facts in plain ASCII, whatever is in them, so that none can be taken for another."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY]
