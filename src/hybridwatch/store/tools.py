"""What computes verdicts here: the code, the libraries, and the arithmetic of the processor.

Stored with every verdict, so that one which cannot be had again bit for bit can say what changed.
"""

import hashlib
import platform
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final

import numpy as np

_JUDGING: Final = ("analysis", "metric", "record")
"""The packages that lie between a record and a report."""


def present_tools() -> dict[str, str]:
    """Name everything besides the records that a verdict's digits hang on.

    Returns:
        ``hybridwatch``, ``python``, ``numpy`` and ``scipy``: versions. ``analysis``: SHA-256 of
        the judging code. ``arithmetic``: the processor's family and the instructions by which
        NumPy takes logarithms there; others may give another last bit.
    """
    return {
        "hybridwatch": version("hybridwatch"),
        "analysis": _code_digest(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "arithmetic": _arithmetic(),
    }


def _code_digest() -> str:
    total = hashlib.sha256()
    for package in _JUDGING:
        folder = files("hybridwatch") / package
        sources = (entry for entry in folder.iterdir() if entry.name.endswith(".py"))
        for source in sorted(sources, key=lambda entry: entry.name):
            content = hashlib.sha256(source.read_bytes()).hexdigest()
            total.update(f"{package}/{source.name} {content}\n".encode())
    return total.hexdigest()


def _arithmetic() -> str:
    dispatched: dict[str, Any] = np.lib.introspect.opt_func_info(
        func_name="^log$", signature="float64"
    )
    chosen = {target["current"] for by_type in dispatched.values() for target in by_type.values()}
    return " ".join([platform.machine(), *sorted(chosen)])
