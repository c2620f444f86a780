"""A comparison's figure: each metric's interval over the band of sameness; right is better."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import plotly.graph_objects as go

from hybridwatch.analysis.compare import find_band
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import describe_change, name_of
from hybridwatch.metrics import Direction, Kind
from hybridwatch.reports.figures.base import (
    UPRIGHT_UNSEEN,
    axis_title,
    base_figure,
    escaped,
    row_text,
)

_MARKS: Final = {
    Verdict.REGRESSION: ("#d4483b", "x"),
    Verdict.BROKEN: ("#d4483b", "x-open"),
    Verdict.IMPROVEMENT: ("#3b7ddd", "triangle-up"),
    Verdict.EQUIVALENT: ("#14917d", "circle"),
    Verdict.WORSE_WITHIN: ("#b5529b", "triangle-down"),
}
_OTHER: Final = ("#b07a10", "diamond")
"""Colours, 3:1 on white and on near-black, all of them, and symbols."""
_ROW: Final = 44
"""Pixels; the name stands over its line, so that a narrow page has its whole width."""
_SHORT: Final = 24
"""Characters of a name."""
_EDGES: Final = 92
_BANDS_SEEN: Final = 6.0
_INTERVALS_SEEN: Final = 1.5
_PER_CENT: Final = 100.0
_WAYS: Final = "worse \u2190 change in % or points \u2192 better"


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A comparison as drawn, in per cent or points; right is better.

    ``name`` stands over it; ``low`` and ``high`` are the ends of its interval, or as ``at``;
    ``band`` is half of the width within which it counts as the same.
    """

    comparison: Comparison
    name: str
    at: float
    low: float
    high: float
    band: float

    @property
    def reach(self) -> float:
        """How far it goes from zero."""
        return max(abs(self.low), abs(self.high), abs(self.at))


def build_rows(comparisons: Sequence[Comparison]) -> list[ForestRow]:
    """Lay out what has a relative change or one in points; counts without noise have none."""
    return [
        _row(comparison, comparison.effect)
        for comparison in comparisons
        if comparison.metric.kind is not Kind.EXACT
        and comparison.effect is not None
        and math.isfinite(comparison.effect)
        and comparison.verdict is not Verdict.NOT_COMPARABLE
    ]


def compute_reach(rows: Sequence[ForestRow]) -> float:
    """Give how far the axis goes; one wild interval must not squeeze all others."""
    reaches = [row.reach for row in rows]
    wanted = max(_BANDS_SEEN * max(row.band for row in rows), _INTERVALS_SEEN * median(reaches))
    return 1.08 * min(wanted, max(*reaches, *(2 * row.band for row in rows)))


def figure_forest(title: str, rows: Sequence[ForestRow]) -> go.Figure:
    """Draw each row's interval over its band, with escaped texts."""
    reach, placed = compute_reach(rows), list(enumerate(rows))
    return base_figure(
        [draw(row, place, reach) for place, row in placed for draw in (_line, _mark)],
        shapes=[_band(row, place) for place, row in placed],
        annotations=[
            row_text(text, place - 0.42, x, anchor)
            for place, row in placed
            for text, x, anchor in ((row.name, 0, "left"), (_describe(row), 1, "right"))
        ],
        title=title,
        height=_ROW * len(rows) + _EDGES,
        margin={"l": 8, "r": 8, "t": 36, "b": 48},
        xaxis={
            "range": [-1.03 * reach, 1.03 * reach],
            "zerolinewidth": 1.5,
            "tickformat": "~g",
            "nticks": 7,
            "title": axis_title(_WAYS),
        },
        yaxis={"range": [len(rows) - 0.55, -0.75], **UPRIGHT_UNSEEN},
    )


def _describe(row: ForestRow) -> str:
    """Write the change; behind a long name a phone has no room for the interval, which is drawn."""
    has_room = len(row.name) <= _SHORT
    return describe_change(row.comparison) if has_room else numbers.change(row.comparison)


def _band(row: ForestRow, place: int) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": -row.band,
        "x1": row.band,
        "y0": place - 0.21,
        "y1": place + 0.21,
        "fillcolor": "rgba(128,128,128,0.28)",
        "line": {"width": 0},
        "layer": "below",
    }


def _row(comparison: Comparison, effect: float) -> ForestRow:
    sign = _PER_CENT if comparison.metric.better is Direction.HIGHER else -_PER_CENT
    found = comparison.interval
    ends = (effect, effect)
    if found is not None and math.isfinite(found.low) and math.isfinite(found.high):
        ends = (found.low, found.high)
    low, high = sorted(sign * end for end in ends)
    band = _PER_CENT * find_band(comparison)
    return ForestRow(comparison, name_of(comparison), sign * effect, low, high, band)


def _line(row: ForestRow, place: int, reach: float) -> dict[str, Any]:
    ends = [_within(end, reach) for end in (row.low, row.high)]
    cut = [abs(end) > reach for end in (row.low, row.high)]
    arrows = zip(("arrow-left", "arrow-right"), cut, strict=True)
    symbols = [arrow if is_cut else "line-ns" for arrow, is_cut in arrows]
    colour, _ = _MARKS.get(row.comparison.verdict, _OTHER)
    return {
        "type": "scatter",
        "x": ends,
        "y": [place, place],
        "mode": "lines+markers",
        "line": {"color": colour, "width": 2},
        "marker": {
            "symbol": symbols,
            "size": [9 if is_cut else 10 for is_cut in cut],
            "color": colour,
            "opacity": 1,
            "line": {"color": colour, "width": 2},
        },
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _mark(row: ForestRow, place: int, reach: float) -> dict[str, Any]:
    comparison = row.comparison
    verdict = comparison.verdict
    colour, symbol = _MARKS.get(verdict, _OTHER)
    hover = (
        f"<b>{escaped(row.name)}</b><br>{verdict.value}<br>"
        f"{escaped(describe_change(comparison))}<br>"
        f"same within {numbers.size(comparison, row.band / _PER_CENT)}<br>"
        f"p adjusted {escaped(numbers.p_value(comparison.p_adjusted))}, n {numbers.n(comparison)}"
        "<extra></extra>"
    )
    return {
        "type": "scatter",
        "x": [_within(row.at, reach)],
        "y": [place],
        "mode": "markers",
        "marker": {"symbol": symbol, "size": 11, "color": colour, "opacity": 1},
        "hovertemplate": hover,
        "showlegend": False,
    }


def _within(value: float, reach: float) -> float:
    return max(-reach, min(reach, value))
