"""What the asv suites in ``benchmarks/`` call: one session, reduced to what asv can keep.

asv runs every benchmark in a process of its own and knows no direction but down. So the session
is made once, in ``setup_cache``, and each ``track_*`` hands out a part of it; every rate has a twin
in seconds, and accuracy is told as the share of wrong answers.
"""

import os
import sys
from collections.abc import Mapping
from statistics import fmean
from typing import Any, Final

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.reduction import reduce_side
from hybridwatch.analysis.subject import subjects_of
from hybridwatch.engine.builds import DEFAULT_BUILD, home, parse_label
from hybridwatch.engine.check import require_installed
from hybridwatch.errors import MeasurementError
from hybridwatch.measure.session import Progress, SessionRequest, run_session
from hybridwatch.metric import Kind
from hybridwatch.record.run import Run
from hybridwatch.scenario.load import find

BUILD_VARIABLE: Final = "HYBRIDWATCH_BUILD"

Values = Mapping[str, tuple[float, ...]]
"""``metric statistic`` to one value per trial, or per document for accuracy."""


def measure_scenario(scenario_id: str) -> Values:
    """Measure one build through one scenario; ``HYBRIDWATCH_BUILD`` names the build.

    Raises:
        HybridwatchError: The scenario or the build cannot be used.
        MeasurementError: A trial failed; asv then shows the whole benchmark as failed.
    """
    (scenario,) = find(home() / "scenarios", [scenario_id])
    build = parse_label(os.environ.get(BUILD_VARIABLE, DEFAULT_BUILD))
    require_installed(build.spec)
    run = run_session(SessionRequest(scenario, (build,), home() / "models", _tell))
    for trial in run.failed(0):
        assert trial.failure is not None  # noqa: S101 - what failed() yields
        raise MeasurementError(f"trial {trial.index}: {trial.failure.reason}")
    return _values(run)


def _tell(progress: Progress) -> None:
    sys.stderr.write(f"[{progress.done}/{progress.total}] {progress.text}\n")


def _values(run: Run) -> Values:
    side = OneSide(run, 0)
    return {
        f"{subject.metric.id} {subject.statistic}": reduce_side(side, subject).values
        for subject in subjects_of(side, side)
        if subject.metric.kind is not Kind.PROPORTION
    } | {
        sample.metric: sample.values
        for trial in run.measured(0)
        for sample in trial.samples
        if sample.metric.startswith("accuracy.")
    }


def samples(values: Values, name: str) -> dict[str, Any]:
    """Hand asv one value per trial, so that it can compare by rank and keep the spread."""
    return {"samples": list(values[name]), "number": 1}


def inverse_samples(values: Values, name: str) -> dict[str, Any]:
    """Hand asv a rate as its inverse: seconds per token for tokens per second."""
    return {"samples": [1 / value for value in values[name]], "number": 1}


def worst(values: Values, name: str) -> float:
    """Hand asv the largest value: an exact metric has no spread to speak of."""
    return max(values[name])


def wrong_share(values: Values, task: str) -> float:
    """Hand asv the share of documents answered wrong."""
    return 1 - fmean(values[f"accuracy.{task}"])
