"""Which tests of a report are adjusted together.

Every test that is looked at along with others costs these some of their power. So only those stand
together that answer one question for one reader: whether answers were lost, whether what the gate
stops became slower, and apart from both what it merely warns of or only watches.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Comparison, Family
from hybridwatch.metrics import Kind, Metric

_LENIENT: Final = {Action.BLOCK: "", Action.WARN: " (only warned of)", Action.WATCH: " (watched)"}


def family_of(metric: Metric, action: Action = Action.BLOCK) -> str:
    """Name the family of a metric's tests."""
    return ("accuracy" if metric.kind is Kind.PROPORTION else "speed") + _LENIENT[action]


def families_of(comparisons: Iterable[Comparison]) -> tuple[Family, ...]:
    """Count the tests of each family, in order of appearance."""
    found = Counter(one.family for one in comparisons if one.family)
    return tuple(Family(name, tests) for name, tests in found.items())
