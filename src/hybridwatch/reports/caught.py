"""The sentence about known-bad controls, the same in terminal, comment and dashboard."""

from collections.abc import Collection, Sequence
from typing import Final, Protocol

from hybridwatch.analysis.detection import Detection, KnownBad
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.analysis.wording.labels import format_centers, name_of, plural
from hybridwatch.metrics import Kind

_NAMED: Final = 2
"""As many readings or scenarios as are named before they are only counted."""


class CaughtControl(Protocol):
    """A known-bad control, from a report or from the index."""

    @property
    def scenario(self) -> str:
        """Id of its scenario."""

    @property
    def detection(self) -> Detection | None:
        """What it showed."""

    @property
    def baseline_violations(self) -> tuple[str, ...]:
        """What the healthy engine was not clean of."""


def bugs_caught(controls: Collection[CaughtControl]) -> str:
    """Say how many bugs were caught, and whether the healthy engine was clean next to them."""
    caught = sum(control.detection is Detection.CAUGHT for control in controls)
    unclean = [
        f"{control.scenario} {metric}"
        for control in controls
        for metric in control.baseline_violations
    ]
    line = caught_sentence(caught, len(controls), unclean)
    for detection in (Detection.MISSED, Detection.NOT_ASKED):
        if rest := [control.scenario for control in controls if control.detection is detection]:
            line += f"; {detection.value}: {_some(rest)}"
    return line


def caught_sentence(caught: int, of: int, unclean: Sequence[str]) -> str:
    """Say how many bugs were caught, and of what the healthy engine was not clean.

    ``unclean`` names where the healthy engine broke a rule or differed from itself.
    """
    healthy = f"NOT clean: {_some(unclean)}" if unclean else "clean"
    return f"{caught} of {plural(of, 'bug')} caught, the healthy engine {healthy}"


def seen_by(control: KnownBad) -> str:
    """Name the clearest sign of an engine without its fix, and count the others; empty if none."""
    # One task and one contract first: what a user would have seen, and what broke inside.
    firsts = {found.metric.kind: found for found in reversed(control.by)}.values()
    first = sorted(firsts, key=lambda found: found.metric.kind is not Kind.PROPORTION)
    rest = [found for found in control.by if found not in first]
    return list_readings([*first, *rest], most=1)


def list_readings(comparisons: Sequence[Comparison], most: int = _NAMED) -> str:
    """Name the first comparisons with both sides' numbers, and count the others."""
    return _some([_reading(comparison) for comparison in comparisons], most)


def _reading(comparison: Comparison) -> str:
    name = name_of(comparison).partition(".")[2] or name_of(comparison)
    if comparison.verdict is Verdict.FAILED:
        return f"{name} failed"
    old, new = format_centers(comparison)
    return f"{name} {old} \u2192 {new}"


def _some(items: Sequence[str], most: int = _NAMED) -> str:
    more = len(items) - most
    return ", ".join([*items[:most], *([f"{more} more"] if more > 0 else [])])
