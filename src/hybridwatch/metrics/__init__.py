"""What is measured: metrics with unit, direction, kind and margin.

``metric`` says what a metric is, ``catalogue`` lists the ones we have. Statistics (``p99``) are
derived later and never part of a metric's id.
"""

from hybridwatch.metrics.catalogue import find_metric
from hybridwatch.metrics.metric import Direction, Kind, Metric, Unit

__all__ = ["Direction", "Kind", "Metric", "Unit", "find_metric"]
