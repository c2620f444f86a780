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
``CHANGELOG.md`` ("Comparability") says what each version judges otherwise.
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
