"""Profiles of runs whose times got worse: both sides are sampled once all trials are over."""

from collections.abc import Callable
from pathlib import Path

from hybridwatch.analysis.cause import Area, find_area
from hybridwatch.analysis.growth import find_growth, growth_lines
from hybridwatch.analysis.verdict import Report, Verdict
from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.errors import BuildError, ComparisonError, HybridwatchError, ScenarioError
from hybridwatch.measurement.profiling import profile_sides
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.metrics import Kind
from hybridwatch.records.identity import lasting_label
from hybridwatch.records.run import Run
from hybridwatch.records.store.verdicts import find_profile, read_profile, write_profile
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home


def is_slower(report: Report) -> bool:
    """Whether a time or rate under load got worse: where there is a second look, in both looks."""
    return any(
        one.verdict is Verdict.REGRESSION
        and one.metric.kind in {Kind.TIME, Kind.RATE}
        and find_area(one.metric.id, one.verdict) in {Area.SPEED, Area.HOST}
        for one in report.comparisons
    )


def profile_run(run: Run, results: Path, say: Callable[[str], None]) -> Path:
    """Sample both sides of a run again, unless that was done, and say what takes more time.

    Gives the profile's file.
    """
    path = find_profile(results, run.testbed.id, run.id)
    if (sides := read_profile(path)) is None:
        if len(run.builds) != 2:
            raise ComparisonError(f"run {run.id}: expected two builds to sample, found one")
        (scenario,) = find(home() / "scenarios", [run.scenario.id])
        if scenario.version != run.scenario.version:
            raise ScenarioError(
                f"{scenario.id}: version: expected {run.scenario.version}, as in run {run.id}, "
                f"found {scenario.version}"
            )
        requests = [parse_label(lasting_label(build)) for build in run.builds]
        for request in requests:
            require_installed(request.spec)
            if request.spec.accelerator != "cpu":
                raise BuildError(f"{request.label}: expected a build for CPUs to sample")
        make_ready(scenario, requests, home() / "models")
        baseline, contender = profile_sides(scenario, requests, home() / "models", say)
        write_profile(path, results, sides := (baseline, contender))
    for line in growth_lines(find_growth(*sides)):
        say(line)
    return path


def profile_slower(
    report: Report | None, run: Run, results: Path, say: Callable[[str], None]
) -> None:
    """Sample a run that got slower, and say what takes more time, or why it cannot be known."""
    if report is not None and is_slower(report):
        try:
            profile_run(run, results, say)
        except HybridwatchError as error:
            say("no profile: " + str(error).partition("\n")[0])
