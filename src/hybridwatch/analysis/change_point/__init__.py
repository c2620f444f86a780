"""The history of one metric: where did its level change, and by how much?

``change_points`` and ``examine`` are the way in. A series is scored robustly (``noise``), searched
for the split, the excursion or the jump beside a slope that stands out most (``scan``, ``slope``),
cut there, and searched again (``segmentation``). Nothing is tuned by the caller: what counts as a
change is fixed by ``scan.needed`` and measured by ``python -m hybridwatch.calibration``.
"""

from hybridwatch.analysis.change_point.examine import (
    LARGEST,
    MOST_POINTS,
    change_points,
    examine,
)
from hybridwatch.analysis.change_point.history import ChangePoint, History, State

__all__ = [
    "LARGEST",
    "MOST_POINTS",
    "ChangePoint",
    "History",
    "State",
    "change_points",
    "examine",
]
