"""Where the time of a slower build went: the functions that take more, and the flame graph."""

from collections.abc import Iterable, Iterator
from typing import Final

from hybridwatch.analysis.growth import find_growth, growth_lines
from hybridwatch.errors import RecordError
from hybridwatch.pages.document import Block, Chart, Paragraph, Section
from hybridwatch.pages.screens.screen import ScreenSource, trouble_notice
from hybridwatch.records.store.verdicts import find_profile, read_profile
from hybridwatch.reports.figures.curve import draw_flames

_SEEN: Final = (
    "Each box is a function of the contender, under its caller and as wide as its share of the "
    "time of the threads that make steps. Red are functions that take more of that time themselves "
    "than on the baseline, blue those that take less; the colour is full at 5 points."
)


def profile_section(testbed: str, runs: Iterable[str], source: ScreenSource) -> Iterator[Block]:
    """Draw the profile of the first of these runs that has one."""
    try:
        found = (read_profile(find_profile(source.results, testbed, run)) for run in runs)
        sides = next((one for one in found if one is not None), None)
    except RecordError as error:
        yield trouble_notice("The profile could not be read", error)
    else:
        if sides is not None:
            figure, data = draw_flames(*sides)
            chart = Chart("The contender's time", figure, _SEEN, data)
            words = map(Paragraph, growth_lines(find_growth(*sides)))
            yield Section("Where the time went", (*words, chart))
