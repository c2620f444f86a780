"""What verdicts depend on: the version of the rules, the libraries, and the arithmetic.

Stored with every verdict, so that one which cannot be had again bit for bit can say what changed.
"""

import platform
from importlib.metadata import version
from typing import Any, Final

import numpy as np

RULES_VERSION: Final = 7
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

6: Of asv's times without samples the intervals are compared, and two runs of asv are taken to
differ by 8 % at least. A count that 20 earlier runs repeat is exact between two runs, too, and one
that they do not repeat has no learned noise of 0.

7: The noise between two runs is learned from the largest differences of earlier runs, of all
metrics of a report together, in place of the median step of each.
What is significantly worse, and shown to be so by less than the margin, is *worse within margin*
in place of equivalent (inconclusive between two runs whose noise is unknown). Five answers lost and
more, with none won, are named by a doubt.
A baseline that was measured before a contract was counted is held for whole: 0 stands for it.
"""


def present_tools() -> dict[str, str]:
    """Name everything besides the records that a verdict's digits hang on.

    ``arithmetic`` is the processor's family and the instructions by which NumPy takes logarithms
    there: others may give another last bit.
    """
    return {
        "hybridwatch": version("hybridwatch"),
        "rules": str(RULES_VERSION),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "arithmetic": _arithmetic(),
    }


def _arithmetic() -> str:
    dispatched: dict[str, Any] = np.lib.introspect.opt_func_info(
        func_name="^log$", signature="float64"
    )
    chosen = {target["current"] for by_type in dispatched.values() for target in by_type.values()}
    return " ".join([platform.machine(), *sorted(chosen)])
