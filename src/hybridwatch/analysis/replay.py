"""Holding a stored report against the one that the same records give today; on what it depends.

Bit for bit: two numbers are the same only if every bit is. What a later hybridwatch says in
addition is no deviation; what it no longer says is one. The rules, the libraries and the arithmetic
are stored with every verdict, so that one which cannot be had again can say what changed.
"""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from itertools import zip_longest
from typing import Any, Final

import numpy as np

from hybridwatch.analysis import power, rank, signed_rank
from hybridwatch.analysis.run_noise import Noise
from hybridwatch.analysis.verdict import Design
from hybridwatch.errors import ComparisonError

ABSENT: Final = "(nothing)"
"""Stands where one of the two has no such field or item."""

_SHOWN: Final = 32
"""Characters of a version that distinguish it from others."""

RULES: Final = "rules"
_CODE: Final = "analysis"
_CODE_SHOWN: Final = 12
"""Of a digest."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A place, such as ``comparisons[3].p_value``, at which two reports say different things."""

    path: str
    stored: Any
    again: Any


@dataclass(frozen=True, slots=True)
class VerdictReplay:
    """How a stored verdict compares with the one that its records give today.

    ``alterations`` says what became of the verdict's file and the records since, ``changes`` what
    else is another than then, such as ``scipy: 1.17.1 -> 1.18.0``; one line each.
    """

    deviations: tuple[Deviation, ...]
    alterations: tuple[str, ...]
    changes: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether all it says was had again, bit for bit, from the very records it was made of."""
        return not self.deviations and not self.alterations


def list_parameters(level: float, noise: Noise, *, across_testbeds: bool = False) -> dict[str, Any]:
    """Name every number that a report hangs on besides its records, as plain JSON.

    ``noise`` comes from other records, so it has to be kept.
    """
    return {
        "level": level,
        "noise": {" ".join(of): spread for of, spread in sorted(noise.items())},
        "equivalence_level": power.LEVEL,
        "power": power.POWER,
        "confidence": rank.CONFIDENCE,
        "bootstrap": {
            Design.PAIRED.value: {"draws": signed_rank.RESAMPLES, "seed": signed_rank.SEED},
            Design.UNPAIRED.value: {"draws": rank.RESAMPLES, "seed": rank.SEED},
        },
        **({"across_testbeds": True} if across_testbeds else {}),
    }


def noise_in(parameters: Mapping[str, Any]) -> Noise:
    """Take the learned noise out of parameters as ``list_parameters`` gives them."""
    try:
        names = ((name.split(" "), spread) for name, spread in parameters["noise"].items())
        return {(metric, statistic): float(spread) for (metric, statistic), spread in names}
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        expected = "parameters.noise: expected numbers by metric and statistic"
        raise ComparisonError(expected) from error


def deviations_between(stored: Any, again: Any) -> tuple[Deviation, ...]:
    """List every place at which a recomputed report says else than the stored one, in order."""
    return tuple(_deviations("", stored, again))


def changes_between(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """List the tools that are others than when a verdict was stored, one line each.

    A verdict from before rules had a version names the digest of its code instead.
    """
    then = dict(then)
    if RULES in now and RULES not in then and _CODE in then:
        then[RULES] = f"unnumbered (code {then.pop(_CODE)[:_CODE_SHOWN]})"
    return tuple(
        f"{name}: {then.get(name, ABSENT)[:_SHOWN]} -> {now.get(name, ABSENT)[:_SHOWN]}"
        for name in dict.fromkeys((*then, *now))
        if then.get(name) != now.get(name)
    )


def _deviations(path: str, stored: Any, again: Any) -> Iterator[Deviation]:
    if isinstance(stored, dict) and isinstance(again, dict):
        for key, value in stored.items():
            yield from _deviations(f"{path}.{key}".lstrip("."), value, again.get(key, ABSENT))
    elif isinstance(stored, list) and isinstance(again, list):
        for at, (old, new) in enumerate(zip_longest(stored, again, fillvalue=ABSENT)):
            yield from _deviations(f"{path}[{at}]", old, new)
    # Python writes a float with as many digits as it takes to have every bit again.
    elif type(stored) is not type(again) or repr(stored) != repr(again):
        yield Deviation(path, stored, again)


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
