"""Rules for accuracy: the same questions put to both sides.

lm-eval hashes the document, the prompt and the target of every sample; equal hashes mean the same
question. Position alone would pair different questions as soon as a task grows.

Pairing is what gives a few hundred questions their power: only the documents that the two sides
answered differently carry information. The exact McNemar test (McNemar 1947) judges those; the
score interval of Tango (Statistics in Medicine 17, 1998) brackets the difference and gives the
two one-sided tests.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from scipy import special

from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Flip, Interval
from hybridwatch.records.run import Answer, Phase

Key = tuple[str, str, str, str, int]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A fourfold table of ``n`` documents, reduced to those right on one side only."""

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


@dataclass(frozen=True, slots=True)
class Answers:
    """What one side answered to one task; ``versions`` of it are normally one.

    ``by_key`` has one answer per question; over several trials the one given more often in the
    sense of right or wrong, a draw going to the first trial.
    """

    versions: frozenset[str]
    by_key: dict[Key, Answer]

    @property
    def values(self) -> tuple[float, ...]:
        """1.0 or 0.0 per question, in the order of the task."""
        return tuple(float(answer.correct) for answer in self.by_key.values())


def list_answers(side: OneSide, task: str) -> Answers:
    """Collect a side's answers to a task from all its accuracy trials."""
    given: defaultdict[Key, list[Answer]] = defaultdict(list)
    for trial in side.trials(Phase.ACCURACY):
        seen: Counter[tuple[str, str, str, str]] = Counter()
        for answer in sorted((a for a in trial.answers if a.task == task), key=lambda a: a.doc_id):
            key = (answer.task, answer.doc_hash, answer.prompt_hash, answer.target_hash)
            # A task may hold one question twice; the first pairs with the first.
            given[*key, seen[key]].append(answer)
            seen[key] += 1
    versions = frozenset(answer.task_version for some in given.values() for answer in some)
    return Answers(versions, {key: _majority(some) for key, some in given.items()})


def pair(baseline: Answers, contender: Answers) -> tuple[Pairs, tuple[Flip, ...]]:
    """Lay two sides with equal questions next to each other: the table, and what is in it."""
    flips = tuple(
        Flip(answer, contender.by_key[key])
        for key, answer in baseline.by_key.items()
        if answer.correct is not contender.by_key[key].correct
    )
    lost = sum(flip.baseline.correct for flip in flips)
    return Pairs(len(baseline.by_key), lost, len(flips) - lost), flips


def _majority(answers: list[Answer]) -> Answer:
    right = sum(answer.correct for answer in answers)
    if 2 * right == len(answers):
        return answers[0]
    correct = 2 * right > len(answers)
    return next(answer for answer in answers if answer.correct is correct)


_PRECISION: Final = 1e-12


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the one place between two others at which a function crosses zero, to 1e-12."""
    below = function(low) > 0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        if (function(middle) > 0) == below:
            low = middle
        else:
            high = middle
    return (low + high) / 2


_CONFIDENCE: Final = 0.95
_EDGE: Final = 1e-9
"""Differences of exactly -1 and 1 have no variance; the search stops this far from them."""


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
    middle, edge = pairs.difference, 1 - _EDGE
    low = -1.0 if middle <= -1 else root(lambda d: _score(pairs, d) - quantile, -edge, middle)
    high = 1.0 if middle >= 1 else root(lambda d: _score(pairs, d) + quantile, middle, edge)
    return Interval(low, high, _CONFIDENCE)


def equivalence_p(pairs: Pairs, margin: float) -> float:
    """Test whether the difference of shares lies within a margin: two score tests, the larger p."""
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
