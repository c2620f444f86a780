"""Cases are made of lengths around what an engine counts in."""

from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from hybridwatch_lab.fuzz.case import compute_space


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
