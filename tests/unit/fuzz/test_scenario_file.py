"""A case is the same as a scenario file that the loader reads."""

import pytest

from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch_lab.fuzz.case import (
    CaseRequest,
    FuzzCase,
    FuzzPhase,
    build_waves,
    compute_space,
    planned,
    render,
)
from tests.unit.fuzz.targets import RuledTarget, search

CASE = FuzzCase(
    (
        FuzzPhase((CaseRequest(0, 81, 2, 80), CaseRequest(0, 160, 8, 80, abort_step=3))),
        FuzzPhase((CaseRequest(0, 1, 1), CaseRequest(5, 3, 8)), token_budget=16),
    ),
    dummy_batches=3,
)


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    root = home() / "scenarios"
    return load_scenario(root / "fuzz" / "tiny-hybrid.toml", root)


def written(scenario: Scenario, case: FuzzCase, folder, *why: str) -> Scenario:
    path = folder / "scenarios" / "found.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(render(scenario, case, why or ("It went wrong.",)), encoding="utf-8")
    return load_scenario(path, path.parent)


def test_the_file_has_the_story_and_the_engine_it_was_told_to(scenario, tmp_path):
    read = written(scenario, CASE, tmp_path)
    assert read.workload.waves == build_waves(CASE)
    assert read.workload.idle_dummy_batches == 3
    assert read.engine == scenario.engine
    assert (read.fix, read.requires) == ("none", scenario.needed_fixes)


def test_the_file_asks_the_story_s_own_requests(scenario, tmp_path):
    read = written(scenario, CASE, tmp_path)
    asked = expand(read.workload.waves, read.workload.seed)
    assert asked == planned(CASE, scenario.workload.seed)
    first, second = asked
    assert first.requests[0].prompt[:80] == first.requests[1].prompt[:80]
    assert first.requests[1].abort_at_step == 3
    assert [request.at_step for request in second.requests] == [0, 5]
    assert second.token_budget == 16


def test_every_story_that_is_told_can_be_written(scenario, tmp_path):
    target = RuledTarget(lambda _story: False)
    made = search(target, cases=40)
    made.space = compute_space(scenario)
    made.run(5)
    for case in target.told:
        assert written(scenario, case, tmp_path).workload.waves == build_waves(case)


def test_what_an_engine_said_cannot_break_out_of_the_text(scenario, tmp_path):
    nasty = 'status 400: """\\n[engine]\x1b[31m'
    assert "status 400" in written(scenario, CASE, tmp_path, nasty).why
