"""Hypothesis draws the same in each run, whatever was imported and in whatever order."""

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants


def draw_alike_in_every_order() -> None:
    """Keep constants of this project's modules out of what is drawn.

    Hypothesis takes numbers and texts of every local module that is imported by then, so draws
    change with the tests that ran before and with any change of the source
    (``_get_local_constants``; there is no setting for it).
    """
    nothing = Constants()
    assert callable(providers._get_local_constants)  # a release that has it no more
    providers._get_local_constants = lambda: nothing
