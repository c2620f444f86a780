"""What ended an engine, for a reader of a report: the root of it, out of its log."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hybridwatch.analysis.cause import Area, Cause, causes_in
from hybridwatch.analysis.subject import find_phase
from hybridwatch.analysis.verdict import FailedTrial, Report
from hybridwatch.records.run import Phase
from hybridwatch.system.engine_log import find_root

LONGEST: Final = 160
"""Characters of a reason: a message about memory goes on with advice for several lines."""

_SAYS_NOTHING: Final = frozenset({"AcceleratorError", "Exception", "RuntimeError"})
"""Types that add nothing to their message."""
_HUNG: Final = re.compile(r"time(?:d )?out|\bhung\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Death:
    """Why trials of a report failed.

    Attributes:
        trial: The failed trial that tells most.
        reason: The root of it, one line of at most ``LONGEST`` characters.
        sides: ``baseline``, ``contender`` or both.
        hung: Whether the engine was there and did not answer in time.
    """

    trial: FailedTrial
    reason: str
    sides: tuple[str, ...]
    trials: int
    hung: bool

    @property
    def ended(self) -> bool:
        """Whether the engine ended, or never came up."""
        return self.trial.engine_died and not self.hung


def find_death(report: Report, cause: Cause) -> Death | None:
    """Find why the trials behind a cause failed.

    ``None`` for a cause that is no failure, and where nothing is known of the trials.
    """
    if cause.area is not Area.ENGINE:
        return None
    where = _where(cause)
    failed = [one for one in report.failed_trials if not where or (one.side, one.phase) in where]
    if not failed:
        return None
    # The first that says why; a later engine only dies of the same again.
    worst = min(failed, key=lambda one: (not one.engine_died, find_root(one.log_tail) is None))
    root = find_root(worst.log_tail)
    return Death(
        trial=worst,
        reason=bounded(plain(root)) if root else bounded(worst.reason),
        sides=tuple(dict.fromkeys(one.side for one in failed)),
        trials=len(failed),
        hung=root is None and _HUNG.search(worst.reason) is not None,
    )


def deaths_in(report: Report) -> Iterator[Death]:
    """Find the failures of a report that left a log; it has one cause of this kind at most."""
    for cause in causes_in(report):
        death = find_death(report, cause)
        if death is not None and death.trial.log_tail.strip():
            yield death


def plain(root: str) -> str:
    """Write an error without its module, and without a type that says nothing."""
    name, colon, text = root.partition(": ")
    short = name.rpartition(".")[2]
    return text if colon and short in _SAYS_NOTHING else f"{short}{colon}{text}"


def bounded(reason: str) -> str:
    """Put a reason on one line and cut it where it becomes too long."""
    line = " ".join(reason.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}\u2026"


def _where(cause: Cause) -> frozenset[tuple[str, Phase]]:
    """On which side and in which phase values are lacking; nothing without comparisons."""
    compared = [part.comparison for part in cause.parts if part.comparison is not None]
    return frozenset(
        (name, find_phase(comparison.metric))
        for comparison in compared
        for name, side in (("baseline", comparison.baseline), ("contender", comparison.contender))
        if side is None
    )
