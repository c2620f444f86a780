"""The history of one metric: where did its level change, and by how much?

``change_points`` and ``examine`` are the way in. A series is scored robustly (``noise``), searched
for the split, the excursion or the jump off a slope that stands out most (``scan``, ``slope``),
cut there, and searched again (``segmentation``). Each change gets the range of places that it may
have (``place``), and steps that are one drift are named as such (``ramp``); ``onset`` tells since
when a run is bad that is known to be, ``two_levels`` whether a level is two. Nothing is tuned by
the caller: what counts as a change is fixed by ``scan.needed`` and measured by
``python -m hybridwatch_lab.calibration``.
"""

from hybridwatch.analysis.change_point.examine import (
    LARGEST,
    MOST_POINTS,
    change_points,
    examine,
)
from hybridwatch.analysis.change_point.history import (
    NOT_ONE_COMMIT,
    ChangePoint,
    Drift,
    History,
    HistoryState,
    describe_drifts,
)
from hybridwatch.analysis.change_point.two_levels import two_levels

__all__ = [
    "LARGEST",
    "MOST_POINTS",
    "NOT_ONE_COMMIT",
    "ChangePoint",
    "Drift",
    "History",
    "HistoryState",
    "change_points",
    "describe_drifts",
    "examine",
    "two_levels",
]
