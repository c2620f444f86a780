"""What Hypothesis draws does not hang on what was imported before."""

import subprocess
import sys

import pytest

from tests.order import ROOT

DRAWN = """
import sys
from hypothesis import given, settings, strategies
from tests.draws import draw_alike_in_every_order

if "alike" in sys.argv:
    draw_alike_in_every_order()
if "more" in sys.argv:
    import hybridwatch.records.codec

@settings(derandomize=True, database=None, max_examples=200)
@given(strategies.text() | strategies.integers())
def draw(value):
    print(repr(value))

draw()
"""


def drawn(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", DRAWN, *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(("words", "alike"), [((), False), (("alike",), True)])
def test_draws_are_alike_in_every_order(words: tuple[str, ...], *, alike: bool) -> None:
    """Without the help they are not, which is why it is there."""
    assert (drawn(*words) == drawn(*words, "more")) == alike
