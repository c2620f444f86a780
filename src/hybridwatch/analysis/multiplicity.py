"""The controls over all tests of a report: one for its verdicts, a stricter one for a gate.

Without control a report of twenty tests cries wolf about every second time even when nothing
changed. Benjamini-Hochberg (1995) keeps the share of false discoveries small; it holds for
independent tests and for the positive dependence that latencies of the same requests have
(Benjamini and Yekutieli 2001). Holm (1979) keeps even one false discovery unlikely, whatever the
dependence: a gate that stops people's work asks for that.

Which tests of a report are adjusted together.

Every test that is looked at along with others costs these some of their power. So only those stand
together that answer one question for one reader: whether answers were lost, whether what the gate
stops became slower, and apart from both what it merely warns of or only watches.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Comparison, Family
from hybridwatch.metrics import Kind, Metric

_LENIENT: Final = {Action.BLOCK: "", Action.WARN: " (only warned of)", Action.WATCH: " (watched)"}
FALSE_DISCOVERY_RATE: Final = 0.05


def find_family(metric: Metric, action: Action = Action.BLOCK) -> str:
    """Name the family of a metric's tests."""
    return ("accuracy" if metric.kind is Kind.PROPORTION else "speed") + _LENIENT[action]


def build_families(comparisons: Iterable[Comparison]) -> tuple[Family, ...]:
    """Count the tests of each family, in order of appearance."""
    found = Counter(one.family for one in comparisons if one.family)
    return tuple(Family(name, tests) for name, tests in found.items())


def controlled(p_values: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Adjust each p-value by both controls: for the verdict (``adjust``), for a gate (``holm``)."""
    return tuple(zip(adjust(p_values), holm(p_values), strict=True))


def adjust(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values, in their order, so that those below the rate can be called discoveries."""
    order = np.argsort(p_values, kind="stable")
    shares = len(p_values) / np.arange(1, len(p_values) + 1)
    stepped = np.asarray(p_values, dtype=float)[order] * shares
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(stepped[::-1])[::-1])
    return tuple(float(p) for p in adjusted)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values by Holm's step-down method, in their order.

    None is below its Benjamini-Hochberg counterpart.
    """
    order = np.argsort(p_values, kind="stable")
    remaining = np.arange(len(p_values), 0, -1)
    stepped = np.asarray(p_values, dtype=float)[order] * remaining
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(stepped))
    return tuple(float(p) for p in adjusted)
