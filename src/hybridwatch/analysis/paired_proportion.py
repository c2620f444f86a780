"""Rules for accuracy: the same questions put to both sides.

Pairing is what gives a few hundred questions their power: only the documents that the two sides
answered differently carry information. The exact McNemar test (McNemar 1947) judges those; the
score interval of Tango (Statistics in Medicine 17, 1998) brackets the difference and gives the
two one-sided tests.
"""

import math
from dataclasses import dataclass
from typing import Final

from scipy import special

from hybridwatch.analysis.bisection import root
from hybridwatch.analysis.verdict import Interval

_CONFIDENCE: Final = 0.95
_EDGE: Final = 1e-9
"""Differences of exactly -1 and 1 have no variance; the search stops this far from them."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """A fourfold table, reduced to what matters.

    Attributes:
        n: Documents asked on both sides.
        lost: Right on the baseline only.
        won: Right on the contender only.
    """

    n: int
    lost: int
    won: int

    @property
    def churn(self) -> float:
        """Share of the documents that only one side got right."""
        return (self.lost + self.won) / self.n

    @property
    def difference(self) -> float:
        """Contender's share of right answers minus the baseline's."""
        return (self.won - self.lost) / self.n


def mcnemar_p(pairs: Pairs) -> float:
    """Test, exactly, whether as many answers got lost as won, or won as lost.

    One-sided in the direction that was seen: at a level of 0.05 at most 5 % of equal engines are
    called worse, and at most 5 % better. Half of them would be spared by a two-sided test, at the
    price of a 2-point drop that 1,319 questions then show 7 times in 10 instead of 8.
    """
    discordant = pairs.lost + pairs.won
    if pairs.lost == pairs.won:
        return 1.0
    more = max(pairs.lost, pairs.won)
    # The binomial tail at 1/2 from `more` on; `bdtrc` has fewer right digits.
    return float(special.betainc(more, discordant - more + 1, 0.5))


def difference_interval(pairs: Pairs) -> Interval:
    """Bracket the difference of the shares by Tango's score interval."""
    quantile = float(special.ndtri((1 + _CONFIDENCE) / 2))
    middle = pairs.difference

    def low_root(difference: float) -> float:
        return _score(pairs, difference) - quantile

    def high_root(difference: float) -> float:
        return _score(pairs, difference) + quantile

    low = -1.0 if middle <= -1 else root(low_root, -1 + _EDGE, middle)
    high = 1.0 if middle >= 1 else root(high_root, middle, 1 - _EDGE)
    return Interval(low, high, _CONFIDENCE)


def equivalence_p(pairs: Pairs, margin: float) -> float:
    """Test whether the difference lies within an absolute margin, by two one-sided score tests.

    There is at least one document; ``margin`` is an absolute difference of shares, between 0 and 1.
    Gives the larger of the two p-values.
    """
    not_worse = float(special.ndtr(-_score(pairs, -margin)))
    not_better = float(special.ndtr(_score(pairs, margin)))
    return max(not_worse, not_better)


def _score(pairs: Pairs, difference: float) -> float:
    """Tango's statistic: how far the table is from a supposed difference, in standard errors."""
    n, lost, won = pairs.n, pairs.lost, pairs.won
    distance = won - lost - n * difference
    # The likeliest share of lost answers if the difference were as supposed: the larger root of
    # 2n q^2 - linear q - lost * difference * (1 - difference) = 0.
    linear = lost + won - difference * (2 * n + lost - won)
    root = linear**2 + 8 * n * lost * difference * (1 - difference)
    share = (linear + math.sqrt(max(0.0, root))) / (4 * n)
    variance = n * (2 * share + difference * (1 - difference))
    if variance <= 0:
        return 0.0 if distance == 0 else math.copysign(math.inf, distance)
    return distance / math.sqrt(variance)
