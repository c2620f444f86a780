"""The comparison of two sides' tokens: ``contract.changed_tokens``."""

from collections.abc import Iterator
from typing import Final

from hybridwatch.analysis import doubt
from hybridwatch.analysis.changed_tokens import Tokens
from hybridwatch.analysis.compare import compare_exact
from hybridwatch.analysis.verdict import Comparison, Summary
from hybridwatch.metrics import Metric

_ONE_ARITHMETIC: Final = (
    "The sides round alike but for which requests share a step, so only a choice between tokens "
    "within {bound:g} nats of each other may fall otherwise: one request tells."
)
_TWO_ARITHMETICS: Final = (
    "The sides may round sums otherwise, so a choice between tokens within {bound:g} nats of each "
    "other may fall otherwise; any other change is real."
)


def compare_tokens(metric: Metric, tokens: Tokens) -> Comparison:
    """Give what two sides' contract trials say its verdict.

    The baseline counts 0, since it differs from itself in nothing; the contender counts the
    requests that changed, trial by trial.

    Args:
        metric: ``contract.changed_tokens``.
        tokens: What the trials say.
    """
    left = Summary(0.0, (0.0,) * len(tokens.counts))
    right = Summary(max(tokens.counts), tokens.counts)
    assumption = (_ONE_ARITHMETIC if tokens.one_arithmetic else _TWO_ARITHMETICS).format(
        bound=tokens.bound
    )
    draft = Comparison(
        metric=metric,
        statistic=metric.kind.statistic,
        baseline=left,
        contender=right,
        effect=right.center,
        relevance=metric.bound,
        changes=tokens.changes,
    )
    judged = compare_exact(draft, left, right, assumption)
    return doubt.added(judged, *_doubts(tokens))


def _doubts(tokens: Tokens) -> Iterator[str]:
    ties = tokens.near_ties
    if ties:
        widest = max(max(one.baseline_gap or 0.0, one.contender_gap or 0.0) for one in ties)
        yield (
            f"{len(ties)} of {tokens.requests} requests differ by near ties, which do not count "
            f"(at most {widest:g} nats apart, bound {tokens.bound:g}): the oracle of the scenario, "
            "if it has one, says whether either side is wrong."
        )
    if tokens.wrong_before:
        yield (
            f"{tokens.wrong_before} requests are left out, whose tokens are wrong on the baseline "
            "already: compare with a baseline that has contract.wrong_tokens 0."
        )
