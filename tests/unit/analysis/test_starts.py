"""Blocks that were spread over several starts of the engines: each start counts once."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis.doubt import STARTS_DIFFER
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import BY_START, Comparison, Verdict
from hybridwatch.records.run import Failure, Run
from tests.builders import a_comparison, noisy

LUCKY = (0.10, -0.02, 0.09, -0.03, 0.11, 0.08)
"""By how much the contender of each start is slower, by luck: more often than not, and no more."""
ALIKE = (0.02, -0.02, 0.01, -0.01, 0.02, -0.01)
SLOWER = 0.08


def spread(lucks: Sequence[float], slower: float = 0.0, blocks: int = 2, looks: int = 1) -> Run:
    """So many blocks on each start, a few starts a look, of a contender that is slower or not."""
    starts = [start for start in range(len(lucks)) for _ in range(blocks)]
    left, right = (noisy(1.0, len(starts), 0.003, seed) for seed in (1, 2))
    change = [value * np.exp(lucks[at] + slower) for value, at in zip(right, starts, strict=True)]
    again = 2 * len(starts) // looks if looks > 1 else None
    run = a_comparison({"tpot": left}, {"tpot": change}, second_look=again)
    sides = [iter(starts), iter(starts)]
    trials = tuple(replace(one, start=next(sides[one.side])) for one in run.trials)
    return replace(run, trials=trials)


def without_starts(run: Run) -> Run:
    return replace(run, trials=tuple(replace(one, start=None) for one in run.trials))


def judged(run: Run) -> Comparison:
    return next(c for c in build_report(run).comparisons if c.metric.id == "tpot")


def test_luck_of_starts_is_not_red_though_each_block_says_so():
    run = spread(LUCKY)
    found, by_block = judged(run), judged(without_starts(run))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert by_block.verdict is Verdict.REGRESSION, "the fault: twelve blocks count, and not six"
    assert (found.test, found.pairs, len(found.ratios)) == (BY_START, 12, 6)
    assert "start" in found.assumption
    assert found.p_value == 4 / 64, "with either of the two faster starts, or both, turned over"


def test_what_is_slower_on_every_start_is_red():
    found = judged(spread(ALIKE, SLOWER))
    assert found.verdict is Verdict.REGRESSION
    assert found.p_value == 1 / 64
    assert found.effect == pytest.approx(np.expm1(SLOWER), abs=0.01)


def test_what_starts_differ_by_is_in_the_interval_and_in_the_proof_of_sameness():
    run = spread(tuple(2.4 * luck for luck in ALIKE))
    found, by_block = judged(run), judged(without_starts(run))
    assert found.interval is not None
    assert by_block.interval is not None
    width, narrow = (one.high - one.low for one in (found.interval, by_block.interval))
    assert width > 1.2 * narrow
    assert (found.equivalence_p or 0) > (by_block.equivalence_p or 1)


@pytest.mark.parametrize("starts", [2, 5])
def test_few_starts_cannot_be_tested_and_blocks_are_as_ever(starts):
    run = spread(ALIKE[:starts], SLOWER, blocks=5)
    assert judged(run) == judged(without_starts(run))


def test_starts_of_both_looks_are_tested_together_where_one_look_has_too_few():
    run = spread(LUCKY, blocks=3, looks=2)
    assert judged(without_starts(run)).verdict is Verdict.REGRESSION, "both looks say so"
    found = judged(run)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert STARTS_DIFFER in found.doubts
    assert not [one for one in found.doubts if one.startswith("The first")]
    slower = judged(spread(ALIKE, SLOWER, blocks=3, looks=2))
    assert slower.verdict is Verdict.REGRESSION
    assert STARTS_DIFFER not in slower.doubts


def test_a_start_whose_blocks_failed_is_no_start():
    """Six were begun, and five are left: too few."""
    run = spread(ALIKE, SLOWER)
    trials = tuple(
        replace(one, failure=Failure("it died", ""), samples=()) if one.start == 5 else one
        for one in run.trials
    )
    assert judged(run).test == BY_START
    assert judged(replace(run, trials=trials)).test == "sign-flip"


def test_a_run_without_starts_is_judged_as_ever():
    run = without_starts(spread(LUCKY))
    assert judged(run).test == "sign-flip"
    some = replace(run, trials=(replace(run.trials[0], start=0), *run.trials[1:]))
    assert judged(some).test == "sign-flip", "which start the other blocks were made on is not said"
