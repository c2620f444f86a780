"""The version of the rules: which verdicts the same records give."""

from typing import Final

RULES_VERSION: Final = 5
"""Raise it when records that exist give another report: another verdict, number, doubt or order.

Stored verdicts name it, and an index of other rules is made again. It takes the place of a digest
of the sources, by which a corrected comment judged every store again. A test holds the reports of
all committed records, and of constructed ones, to the version they were reviewed under.

2: Times, rates and counts within blocks are one joint test by flipped signs, one-sided in the
direction seen, in place of Mann-Whitney below ten blocks and signed ranks from ten on. Between two
runs a time, rate or count is red or green only beyond five times the noise of 20 earlier runs.

3: Tokens are compared across sides (``contract.changed_tokens``) where records hold them. On a
machine that the run itself calls noisy, times and rates of one run are red or green only where
the engine's processor time changed the same way.

4: A run of one build is held against what its scenario expects. A contract that both sides break
is inconclusive in place of equivalent, and a regression where the sides are one engine.

5: Where the contender breaks what its scenario expects, a comparison that calls it equivalent,
better or inconclusive says *broken* in place of that.
"""
