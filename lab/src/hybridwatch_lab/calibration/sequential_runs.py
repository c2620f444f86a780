"""Runs that add trials until they are decided: do repeated looks keep their word?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis.power import is_decided, level_of, schedule
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.records.run import InterimAnalyses
from hybridwatch_lab.calibration import figure
from hybridwatch_lab.calibration.comparisons import found as beyond_noise
from hybridwatch_lab.calibration.figure import Figure, at_most, percent
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection
from hybridwatch_lab.calibration.reports import report_on

Level = Callable[[InterimAnalyses], float]
"""From the looks made so far to the level of the last."""

_FIRST: Final = 10
"""Timed trials a side in our scenarios."""
_CHANGE: Final = 0.05


@dataclass(frozen=True, slots=True)
class SequentialOutcome:
    """How one run ended."""

    red: bool
    found: bool
    decided: bool
    pairs: int


@dataclass(frozen=True, slots=True)
class SequentialSetting:
    """What is simulated; ``change``: of every rate, negative is worse."""

    name: str
    metrics: int
    cv: float
    change: float = 0.0


_EQUAL: Final = (
    SequentialSetting("one_3", 1, 0.03),
    SequentialSetting("one_8", 1, 0.08),
    SequentialSetting("nine_5", 9, 0.05),
)
_WORSE: Final = (
    SequentialSetting("worse_3", 1, 0.03, -_CHANGE),
    SequentialSetting("worse_8", 1, 0.08, -_CHANGE),
)


def of_repeated_looks(lab: Laboratory, level_at: Level = level_of) -> LabSection:
    """False alarms over all looks together, and what the looks save."""
    figures: list[Figure] = []
    for setting in (*_EQUAL, *_WORSE):
        times = lab.times(800, 20) if setting.metrics == 1 else lab.times(400, 4)
        lab.on_progress(f"until decided: {_title(setting)}")
        rng = lab.rng(f"sequential {setting.name}")
        outcomes = [follow(setting, rng, level_at) for _ in range(times)]
        figures += _figures(setting, outcomes)
    text = (
        f"`hybridwatch run --until-decided`, without limit of time: looks after "
        f"{', '.join(map(str, schedule(_FIRST)))} trials a side, until every rate is decided. "
        "*Found* is a change beyond noise at any look, relevant or not."
    )
    return LabSection("Until decided", text, tuple(figures))


def follow(
    setting: SequentialSetting, rng: Generator, level_at: Level = level_of
) -> SequentialOutcome:
    """Simulate one run to its end."""
    planned = schedule(_FIRST)
    size = (setting.metrics, planned[-1])
    sides = [
        level * np.exp(setting.cv * rng.standard_normal(size))
        for level in (1.0, 1.0 + setting.change)
    ]
    found = red = decided = False
    pairs = 0
    for number, pairs in enumerate(planned, start=1):
        level = level_at(InterimAnalyses(planned, planned[:number]))
        report = report_on([side[:, :pairs] for side in sides], level)
        found = found or any(map(beyond_noise, report.comparisons))
        red = any(one.verdict is Verdict.REGRESSION for one in report.comparisons)
        decided = is_decided(report)
        if decided:
            break
    return SequentialOutcome(red, found, decided, pairs)


def _figures(setting: SequentialSetting, outcomes: Sequence[SequentialOutcome]) -> list[Figure]:
    what, stem = _title(setting), f"sequential.{setting.name}"
    promise = None if setting.change else at_most(0.05)
    reds = [one.red for one in outcomes]
    finds = [one.found for one in outcomes]
    return [
        figure.share(f"{stem}.red", f"runs with any red, {what}", reds, promise),
        figure.share(f"{stem}.found", f"runs with anything found, {what}", finds),
        figure.share(f"{stem}.decided", f"decided, {what}", [one.decided for one in outcomes]),
        figure.mean(f"{stem}.pairs", f"trials a side, {what}", [one.pairs for one in outcomes]),
    ]


def _title(setting: SequentialSetting) -> str:
    change = f"{100 * setting.change:+g} %" if setting.change else "no change"
    rates = "one rate" if setting.metrics == 1 else f"{setting.metrics} rates"
    return f"{rates}, CV {percent(setting.cv)}, {change}"
