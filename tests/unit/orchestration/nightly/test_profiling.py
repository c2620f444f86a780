"""Profiles of runs: only what got slower is sampled, once, and a failure costs no verdict."""

from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.analysis.report import build_report
from hybridwatch.errors import BuildError, ComparisonError, ScenarioError
from hybridwatch.orchestration.nightly.profiling import is_slower, profile_run, profile_slower
from tests.broken_engines import dead_contender, healthy, slow_contender
from tests.builders import a_build, a_run, noisy
from tests.stacks import put_profile

SLOW = slow_contender(1.2)
EQUAL = a_run(healthy(), healthy())
FASTER = slow_contender(0.8)


@pytest.mark.parametrize(("run", "slower"), [(SLOW, True), (EQUAL, False), (FASTER, False)])
def test_a_time_that_got_worse_under_load_is_sampled(run, slower) -> None:
    assert is_slower(build_report(run)) is slower


def test_neither_a_death_nor_a_contract_nor_a_start_is(monkeypatch) -> None:
    starts = a_run({"start_time": noisy(20, 8)}, {"start_time": noisy(40, 8)})
    broken = a_run(*({"contract.states_off": (value,)} for value in (0.0, 8.0)))
    assert not any(is_slower(build_report(run)) for run in (dead_contender(), starts, broken))


def test_a_stored_profile_is_read_and_nothing_is_started(tmp_path: Path) -> None:
    path = put_profile(tmp_path, SLOW)
    lines: list[str] = []
    assert profile_run(SLOW, tmp_path, lines.append) == path
    profile_slower(build_report(SLOW), SLOW, tmp_path, lines.append)
    line, again = lines
    assert line == again
    assert "% of engine time in busy (model.py:10), called by step (core.py)" in line


def test_what_is_not_slower_is_left_alone(tmp_path: Path) -> None:
    put_profile(tmp_path, EQUAL)
    lines: list[str] = []
    profile_slower(build_report(EQUAL), EQUAL, tmp_path, lines.append)
    profile_slower(None, EQUAL, tmp_path, lines.append)
    assert not lines


@pytest.mark.parametrize(
    ("run", "error", "says"),
    [
        (a_run(healthy()), ComparisonError, "expected two builds to sample"),
        (
            replace(SLOW, scenario=replace(SLOW.scenario, version=99)),
            ScenarioError,
            "version: expected 99",
        ),
        (
            replace(SLOW, scenario=replace(SLOW.scenario, id="smoke/nothing")),
            ScenarioError,
            "names no scenario",
        ),
    ],
)
def test_what_cannot_be_sampled_says_why(tmp_path: Path, run, error, says) -> None:
    with pytest.raises(error, match=says):
        profile_run(run, tmp_path, print)
    lines: list[str] = []
    profile_slower(build_report(SLOW), run, tmp_path, lines.append)
    assert lines[0].startswith("no profile: ")
    assert says.split(":")[0] in lines[0]


def test_a_build_for_gpus_is_refused_before_anything_starts(tmp_path: Path, monkeypatch) -> None:
    module = "hybridwatch.orchestration.nightly.profiling"
    monkeypatch.setattr(f"{module}.require_installed", lambda _: None)
    gpu = a_build("cuda-0.32.0", accelerator="cuda", release="0.32.0")
    version = 3  # of the scenario as it is shipped
    run = replace(SLOW, builds=(gpu, gpu), scenario=replace(SLOW.scenario, version=version))
    with pytest.raises(BuildError, match=r"cuda-0\.32\.0: expected a build for CPUs"):
        profile_run(run, tmp_path, print)
