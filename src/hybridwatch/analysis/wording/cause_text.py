"""A cause in words: what happened, then by how much and where it shows, and what ended an engine.

Plain text from records; what shows it as Markdown or HTML escapes it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hybridwatch.analysis.cause import TYPICAL, Area, Cause, CausePart, causes_in
from hybridwatch.analysis.detection import kind_of
from hybridwatch.analysis.subject import find_phase
from hybridwatch.analysis.verdict import Comparison, FailedTrial, Report, Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import describe_basis, format_centers, plural
from hybridwatch.metrics import Kind
from hybridwatch.system.engine_log import find_root

LONGEST: Final = 160
"""Characters of a reason: a message about memory goes on with advice for several lines."""

_UNINFORMATIVE: Final = frozenset({"AcceleratorError", "Exception", "RuntimeError"})
"""Types that add nothing to their message."""
_HUNG: Final = re.compile(r"time(?:d )?out|\bhung\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Death:
    """Why trials of a report failed: the most informative one, its root, and if it ``hung``."""

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
    """Find why trials behind a cause failed; ``None`` if it is no failure, or nothing is known."""
    if cause.area is not Area.ENGINE:
        return None
    # On which side and in which phase values are lacking; nothing without comparisons.
    where = {
        (name, find_phase(part.comparison.metric))
        for part in cause.parts
        if part.comparison is not None
        for name in ("baseline", "contender")
        if getattr(part.comparison, name) is None
    }
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
    return text if colon and short in _UNINFORMATIVE else f"{short}{colon}{text}"


def bounded(reason: str) -> str:
    """Put a reason on one line and cut it where it becomes too long."""
    line = " ".join(reason.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}\u2026"


_WHAT: Final = {
    Area.ENGINE: ("The engine failed", "The engine works again"),
    Area.ANSWERS: ("Answers were lost", "Answers were won"),
    Area.CONTRACT: ("A contract broke", "A contract holds again"),
    Area.MEASUREMENT: ("Not measured", "Measured again"),
    Area.SPEED: ("Slower", "Faster"),
    Area.HOST: ("The host waits more", "The host waits less"),
    Area.START: ("The engine starts later", "The engine starts sooner"),
    Area.MEMORY: ("More memory is taken, or less fits", "Less memory is taken, or more fits"),
    Area.OTHER: ("Worse", "Better"),
}
"""Worse, and better."""
_METADATA: Final = "metadata_build_time"
_HOST_WORK: Final = ("The host works longer", "The host works less")
_DRAFTS: Final = ("Fewer drafts are accepted", "More drafts are accepted")
_DRAFT_METRICS: Final = ("acceptance_length", "acceptance_rate")
_ENGINE: Final = "the engine "
_BROKEN: Final = {
    Area.CONTRACT: "A contract is broken on both sides, so not new",
    Area.ANSWERS: "Fewer answers are right than expected",
}
"""What is said of that which is not as expected, though it did not get worse."""
_MORE_BREACHES: Final = "A contract is broken more often"


@dataclass(frozen=True, slots=True)
class CauseText:
    """A cause in words: what happened (``Slower``), and by how much, which may be empty."""

    what: str
    detail: str

    def sentence(self, place: str = "") -> str:
        """Say it in a sentence without full stop; `` in smoke/x`` is a ``place`` that fits."""
        return f"{self.what}{place}: {self.detail}" if self.detail else f"{self.what}{place}"


def cause_sentence(cause: Cause, report: Report | None = None) -> str:
    """Say a cause in one sentence: ``Slower: ttft +5.7 % and 9 more metrics``."""
    return cause_text(cause, report).sentence()


def cause_text(cause: Cause, report: Report | None = None) -> CauseText:
    """Put a cause into words; without ``report`` no reason of a failure is known."""
    if cause.area is Area.ENGINE:
        return _failure(cause, report)
    if cause.area is Area.MEASUREMENT:
        return CauseText(_what(cause), f"{name_of_part(cause.lead)}{_more(cause)}")
    return CauseText(_what(cause), f"{_lead(cause.lead)}{_more(cause)}")


def name_of_part(part: CausePart) -> str:
    """Name a metric, and the statistic only where it is not the typical one."""
    return part.metric if part.statistic in TYPICAL else f"{part.metric} {part.statistic}"


def count_others(cause: Cause) -> int:
    """Count the metrics that show a cause besides the one that leads."""
    return len({part.metric for part in cause.parts}) - 1


def _what(cause: Cause) -> str:
    pair = _WHAT[cause.area]
    if cause.lead.verdict is Verdict.BROKEN:
        return _BROKEN.get(cause.area, "Not as expected")
    if cause.lead.metric == _METADATA:
        pair = _HOST_WORK
    elif cause.area is Area.SPEED and all(
        part.metric.partition(".")[0] in _DRAFT_METRICS for part in cause.parts
    ):
        pair = _DRAFTS
    elif cause.area is Area.CONTRACT and (odd := _odd_contract(cause)):
        return odd
    return pair[cause.is_better] + (", within the margin" if cause.lead.is_within else "")


def _odd_contract(cause: Cause) -> str:
    one = cause.lead.comparison
    if one is None or one.baseline is None or one.contender is None:
        return ""
    return _MORE_BREACHES if one.baseline.center and one.contender.center else ""


def _lead(part: CausePart) -> str:
    name, compared = name_of_part(part), part.comparison
    kind = compared.metric.kind if compared is not None else kind_of(part.metric) or Kind.TIME
    both = _both(compared) if compared is not None else ""
    if kind is Kind.EXACT:
        return f"{name} {both or numbers.effect(part.effect, kind)}".rstrip() + _parting(compared)
    change = numbers.effect(part.effect, kind)
    if change == numbers.ABSENT or part.verdict is Verdict.BROKEN:
        # No relative change exists from a baseline of 0.
        return f"{name} {both}".rstrip()
    if compared is not None and kind is Kind.PROPORTION:
        return f"{name} {change}{_flipped(compared)}"
    if compared is None or not both or kind is not Kind.COUNT:
        return f"{name} {change}"
    return f"{name} {f'{change} {describe_basis(compared)}'.rstrip()} ({both})"


def _parting(compared: Comparison | None) -> str:
    """Say where the first request whose tokens changed goes another way, and how near that was."""
    if compared is None or not compared.changes:
        return ""
    first = compared.changes[0]
    near = "" if first.baseline_gap is None else f", {first.baseline_gap:g} nats from the baseline"
    return f" (first at token {first.position + 1} of request {first.request + 1}{near})"


def _both(comparison: Comparison) -> str:
    if comparison.baseline is None or comparison.contender is None:
        return ""
    old, new = format_centers(comparison)
    return f"{old} -> {new}"


def _flipped(comparison: Comparison) -> str:
    """How many answers: ``(10 lost and 2 won of 200)``, ``(8 lost and none won of 200)``."""
    if comparison.pairs is None:
        return ""
    lost = sum(flip.baseline.correct for flip in comparison.flips)
    won = len(comparison.flips) - lost
    return f" ({lost or 'none'} lost and {won or 'none'} won of {comparison.pairs})"


def _more(cause: Cause) -> str:
    others = count_others(cause)
    return f" and {plural(others, 'more metric')}" if others else ""


def _failure(cause: Cause, report: Report | None) -> CauseText:
    failed = _failed(cause, report)
    death = find_death(report, cause) if report is not None else None
    if death is None:
        return CauseText(_WHAT[Area.ENGINE][0], failed)
    what, reason = _death(death)
    return CauseText(what, "; ".join(filter(None, (reason, failed))))


def _failed(cause: Cause, report: Report | None) -> str:
    metrics = {part.metric for part in cause.parts}
    whole = {c.metric.id for c in report.comparisons} if report is not None else set()
    if len(metrics) > 1 and metrics == whole:
        return f"all {len(metrics)} metrics failed"
    return f"{cause.lead.metric}{_more(cause)} failed"


def _death(death: Death) -> tuple[str, str]:
    both = len(death.sides) > 1
    baseline = death.sides == ("baseline",)
    engine = "The engines" if both else "The baseline's engine" if baseline else "The engine"
    if death.reason.startswith(_ENGINE):
        what, _, why = death.reason.partition(": ")
        return f"{engine} {what.removeprefix(_ENGINE)}", why
    if death.ended or death.hung:
        return f"{engine} {'died' if death.ended else 'hung'}", death.reason
    whose = " of both sides" if both else " of the baseline" if baseline else ""
    return f"Trials{whose} failed", death.reason
