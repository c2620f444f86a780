"""Which functions grew: a planted one is named first, of equal engines none beyond chance."""

import pytest

from hybridwatch.analysis.growth import find_growth, growth_lines
from tests.stacks import BUSY, SHARES, made_passes


def named(grown) -> set[str]:
    return {one.frame.partition(" ")[0] for one in grown}


def test_the_function_that_takes_more_is_named_first_and_alone() -> None:
    (first,) = find_growth(*BUSY)
    assert (first.frame, first.caller) == ("busy (model.py:10)", "step (core.py)")
    assert 0.06 < first.share < 0.12
    (line,) = growth_lines((first,), lambda name: f"`{name}`")
    points = f"+{100 * first.share:.1f} %"
    assert line == f"{points} of engine time in `busy (model.py:10)`, called by `step (core.py)`"


def test_of_several_that_with_the_most_comes_first() -> None:
    more = {**SHARES, "part_3": 0.05, "part_7": 0.08}
    grown = find_growth(made_passes(SHARES, 3), made_passes(more, 4))
    assert [one.frame.partition(" ")[0] for one in grown] == ["part_7", "part_3"]


def test_a_function_that_moved_to_another_line_has_not_grown() -> None:
    moved = [
        {(*stack[:-1], stack[-1].replace(":1", ":7")): samples for stack, samples in one.items()}
        for one in made_passes(SHARES, 5)
    ]
    assert find_growth(made_passes(SHARES, 6), moved) == ()


def test_less_time_is_no_growth_of_the_function() -> None:
    assert "busy" not in named(find_growth(BUSY[1], BUSY[0]))


def test_equal_engines_name_a_function_in_at_most_one_of_twenty_profiles() -> None:
    pairs = ((made_passes(SHARES, 2 * at), made_passes(SHARES, 2 * at + 1)) for at in range(60))
    assert sum(bool(find_growth(*pair)) for pair in pairs) <= 3
    assert growth_lines(()) == ["no function takes more of the engine's time than chance explains"]


@pytest.mark.parametrize("passes", [0, 1, 4])
def test_too_few_passes_name_nothing(passes: int) -> None:
    sides = [made_passes({**SHARES, "busy": more}, 7, passes=passes) for more in (0.01, 0.5)]
    assert find_growth(*sides) == ()


def test_a_root_has_no_caller() -> None:
    (grown,) = find_growth(
        [{("wait (a.py:1)",): 90, ("work (a.py:2)",): 10 + at} for at in range(8)],
        [{("wait (a.py:1)",): 50, ("work (a.py:2)",): 50 + at} for at in range(8)],
    )
    assert growth_lines((grown,))[0].endswith("work (a.py:2)")
