"""What is told becomes a case, and what makes no difference does not."""

import pytest

from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.load import find, load_scenario
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch_lab.fuzz.case import (
    CaseBuilder,
    CaseRequest,
    FuzzCase,
    FuzzPhase,
    build_waves,
    compute_space,
    planned,
    render,
    tidied,
)
from tests.unit.fuzz.targets import RuledTarget, search


def test_requests_come_at_the_step_that_was_reached():
    builder = CaseBuilder()
    builder.add_request(5, 2, 0)
    builder.make_steps(3)
    builder.add_request(80, 1, 0)
    (phase,) = builder.case().acts
    assert phase.requests == (CaseRequest(0, 5, 2), CaseRequest(3, 80, 1))


def test_a_prompt_has_at_least_one_token_of_its_own():
    builder = CaseBuilder()
    builder.add_request(80, 1, 320)
    assert builder.case().requests[0].shared_prefix_tokens == 79


def test_an_abort_counts_from_the_newest_request_and_happens_once():
    builder = CaseBuilder()
    builder.add_request(5, 2, 0)
    builder.add_request(6, 2, 0)
    builder.make_steps(2)
    builder.abort(1)
    builder.make_steps(1)
    builder.abort(1)
    builder.abort(7)
    assert [one.abort_step for one in builder.case().requests] == [2, None]


def test_a_rest_ends_the_act_and_the_next_one_has_its_budget():
    builder = CaseBuilder(dummy_batches=3)
    builder.add_request(5, 2, 0)
    builder.rest(16)
    builder.make_steps(8)
    builder.add_request(6, 2, 0)
    case = builder.case()
    assert [phase.token_budget for phase in case.acts] == [None, 16]
    assert [request.at_step for request in case.requests] == [0, 0]
    assert case.dummy_batches == 3


def test_acts_without_requests_and_steps_before_the_first_request_are_left_out():
    late = FuzzPhase((CaseRequest(4, 5, 2, abort_step=6), CaseRequest(5, 1, 1)))
    assert tidied(FuzzCase((FuzzPhase(()), late))) == FuzzCase(
        (FuzzPhase((CaseRequest(0, 5, 2, abort_step=2), CaseRequest(1, 1, 1))),)
    )
    assert tidied(FuzzCase((FuzzPhase(()),), dummy_batches=3)) == FuzzCase()


def test_what_was_asked_is_known_the_newest_first():
    builder = CaseBuilder()
    builder.add_request(5, 2, 0)
    builder.rest(None)
    builder.add_request(6, 2, 0)
    assert [one.input_tokens for one in builder.sent] == [6, 5]


def test_where_a_hit_may_end_within_a_block_texts_part_there_too():
    (scenario,) = find(home() / "scenarios", ["fuzz/fine-prefix-hits"])
    by_unit = compute_space(scenario)
    whole = compute_space(
        scenario.model_copy(
            update={"engine": scenario.engine.model_copy(update={"prefix_match_unit": None})}
        )
    )
    assert set(by_unit.shares) - set(whole.shares) == {16, 112, 144, 241}
    assert {17, 113, 145, 242} <= set(by_unit.inputs)


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
    sent = expand(read.workload.waves, read.workload.seed)
    assert sent == planned(CASE, scenario.workload.seed)
    first, second = sent
    assert first.requests[0].prompt[:80] == first.requests[1].prompt[:80]
    assert first.requests[1].abort_at_step == 3
    assert [request.at_step for request in second.requests] == [0, 5]
    assert second.token_budget == 16


def test_every_story_that_is_reported_can_be_written(scenario, tmp_path):
    target = RuledTarget(lambda _story: False)
    made = search(target, cases=40)
    made.space = compute_space(scenario)
    made.run(5)
    for case in target.told:
        assert written(scenario, case, tmp_path).workload.waves == build_waves(case)


def test_what_an_engine_said_cannot_break_out_of_the_text(scenario, tmp_path):
    nasty = 'status 400: """\\n[engine]\x1b[31m'
    assert "status 400" in written(scenario, CASE, tmp_path, nasty).why
