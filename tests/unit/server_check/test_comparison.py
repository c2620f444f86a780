"""Two answers: the same, apart by rounding, or different; and the margin that a server shows."""

import pytest

from hybridwatch.server_check.answer import Answer
from hybridwatch.server_check.comparison import Likeness, Rule, is_half, learn_margin

RULE = Rule(0.01)


def answer(tokens: str, gap: float = 1.0, first: float = -0.5, other: str = "?") -> Answer:
    """Each token has one other behind it, at a gap."""
    top = tuple({token: first, other: first - gap} for token in tokens)
    return Answer(tokens, tuple(tokens), (), (first,) * len(tokens), top)


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        (answer("abc"), answer("abc"), Likeness.SAME),
        (answer("abc"), answer("abc", first=-0.54), Likeness.SAME),
        (answer("abc"), answer("abc", first=-0.56), Likeness.DIFFERENT),
        (answer("abc", 0.009, other="x"), answer("abx", 0.009, other="c"), Likeness.ROUNDING),
        (answer("abc", 0.009, other="x"), answer("abx", 0.011, other="c"), Likeness.DIFFERENT),
        (answer("abc", 0.5, other="y"), answer("abx", 0.009, other="c"), Likeness.DIFFERENT),
        (answer("abc", 0.009), answer("ab", 0.009), Likeness.ROUNDING),
        (answer("abc"), answer("ab"), Likeness.DIFFERENT),
        (Answer("abc"), Answer("abd"), Likeness.UNKNOWN),
        (Answer("abc", tuple("abc")), Answer("abd", tuple("abd")), Likeness.UNKNOWN),
        (answer("abc"), Answer("", is_nan=True), Likeness.DIFFERENT),
    ],
)
def test_what_two_answers_are_to_each_other(one, other, likeness):
    assert RULE.compare(one, other).likeness is likeness
    assert RULE.compare(other, one).likeness is likeness


@pytest.mark.parametrize(
    "other", [answer("abc", first=-0.50001), answer("abx", 0.001, other="c"), Answer("abd")]
)
def test_strictly_nothing_is_rounding(other):
    one = Answer("abc") if not other.tokens else answer("abc", 0.001, other="x")
    assert Rule(0.01, strict=True).compare(one, other).likeness is Likeness.DIFFERENT


def test_the_margin_is_learned_and_a_few_damaged_answers_do_not_widen_it():
    still, moved = answer("abc", gap=0.7123), answer("abc", gap=0.7123, first=-0.52)
    damaged = answer("abc", gap=0.7123, first=-3.0)
    assert learn_margin([(still, still)] * 20) == 0.001
    assert learn_margin([(still, moved)] * 20) == pytest.approx(0.08)
    assert learn_margin([(still, still)] * 16 + [(still, damaged)] * 4) == 0.001
    assert learn_margin([(still, damaged)] * 20) == 0.5


def test_half_precision_shows_by_its_grid():
    assert is_half([answer("a" * 30, gap=0.125)])
    assert not is_half([answer("a" * 30, gap=0.1237)])
    assert learn_margin([(answer("a" * 30, gap=0.125),) * 2] * 2) == 0.25
