"""What computes verdicts here: the rules, the libraries, and the arithmetic of the processor.

Stored with every verdict, so that one which cannot be had again bit for bit can say what changed.
"""

import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from hybridwatch.analysis.rules_version import RULES_VERSION


def present_tools() -> dict[str, str]:
    """Name everything besides the records that a verdict's digits hang on.

    Returns:
        ``hybridwatch``, ``python``, ``numpy`` and ``scipy``: versions. ``rules``: the version of
        the judging code. ``arithmetic``: the processor's family and the instructions by which
        NumPy takes logarithms there; others may give another last bit.
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
