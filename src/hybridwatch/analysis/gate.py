"""From a report to pass or fail.

Strict on purpose: what was not measured or compared, and what is broken, is never green. Careful on
purpose, too, since a gate stops people's work: what is bad news and not sure only warns. A policy
is lenient about the size of a change, and about what is broken where it names why (``known``).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hybridwatch.analysis import doubt
from hybridwatch.analysis.policy import STRICT, Action, Policy, Rule
from hybridwatch.analysis.run_noise import FEWEST_RUNS
from hybridwatch.analysis.verdict import Comparison, Report, Verdict

UNKNOWN_RUNS: Final = (
    "two runs, and too few earlier runs to know how much runs differ; measure interleaved, both "
    f"builds in one run, or keep {FEWEST_RUNS} runs of one of them"
)

LUCK: Final = "no more than chance gives from run to run"

NOISY_MACHINE: Final = (
    "measured on a noisy machine, and the engine's processor time does not say so"
)


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate says: whether the contender may go on, and why not, one line each.

    ``warnings`` is bad news not sure enough to stop it, or that the policy lets pass, a line each.
    """

    passed: bool
    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def gate(report: Report, policy: Policy = STRICT) -> GateResult:
    """Let a report pass unless it brings bad news for sure or compares nothing."""
    found = [(consequence(c, report, policy), c) for c in report.comparisons]
    reasons = [_reason(c) for action, c in found if action is Action.BLOCK]
    warnings = [_warning(c, report, policy) for action, c in found if action is Action.WARN]
    if all(c.verdict is Verdict.NOT_COMPARABLE for c in report.comparisons):
        doubts = dict.fromkeys(doubt for c in report.comparisons for doubt in c.doubts)
        reasons.append(" ".join(["Nothing could be compared.", *doubts]))
    return GateResult(not reasons, tuple(reasons), tuple(warnings))


def gate_all(
    reports: Sequence[Report],
    policy: Policy = STRICT,
    absent: Iterable[str] = (),
    left_out: Iterable[str] = (),
    *,
    names: Sequence[str] | None = None,
) -> GateResult:
    """Let several scenarios pass together, called by ``names``.

    ``absent`` has what should have been judged and was not, one line each: never green.
    ``left_out`` has what was not judged and stops nothing, one line each: a warning.
    """
    called = list_names(reports) if names is None else names
    results = [(name, gate(one, policy)) for name, one in zip(called, reports, strict=True)]
    reasons = [f"{name}: {line}" for name, result in results for line in result.reasons]
    warnings = [f"{name}: {line}" for name, result in results for line in result.warnings]
    reasons += absent
    warnings += left_out
    if not results and not reasons:
        reasons.append("Nothing was judged.")
    return GateResult(not reasons, tuple(reasons), tuple(warnings))


def consequence(comparison: Comparison, report: Report, policy: Policy = STRICT) -> Action:
    """Say what a gate does about one comparison; ``WATCH`` where it does nothing."""
    rule = policy.rule_for(report.scenario.id, comparison.metric.id)
    if (
        comparison.verdict is Verdict.WORSE_WITHIN
        or is_worse_between_unknown_runs(comparison, report)
        or is_worse_and_held_back(comparison, report)
    ):
        return Action.WATCH if rule.action is Action.WATCH else Action.WARN
    return outcome(comparison.verdict, rule, sure=stands(comparison, report))


def outcome(verdict: Verdict, rule: Rule, *, sure: bool) -> Action:
    """Say what becomes of a verdict; only a ``sure`` one (``stands``) stops anything."""
    if not verdict.is_bad_news:
        return Action.WATCH
    wanted = rule.action
    if verdict is Verdict.BROKEN:
        return Action.BLOCK if wanted is Action.BLOCK and not rule.known else Action.WARN
    if verdict is not Verdict.REGRESSION:
        # Missing or failed: no size to be lenient about.
        return Action.WARN if wanted is Action.WATCH else Action.BLOCK
    if wanted is Action.BLOCK and not sure:
        return Action.WARN
    return wanted


def stands(comparison: Comparison, report: Report) -> bool:
    """Say whether a verdict stands: under Holm's control, if a test decided, and beyond luck."""
    if comparison.verdict is Verdict.BROKEN:
        return True
    if comparison.of_luck:
        return False
    return comparison.p_holm is None or comparison.p_holm < report.false_discovery_rate


def is_worse_between_unknown_runs(comparison: Comparison, report: Report) -> bool:
    """Say whether a metric got worse, and is left open since runs differ by an unknown amount."""
    sure = (comparison.p_adjusted or 0.0) < report.false_discovery_rate
    return comparison.of_unknown_runs and sure and _is_worse_and_open(comparison)


def is_worse_and_held_back(comparison: Comparison, report: Report) -> bool:
    """Say whether a time got worse on a noisy machine, and is left open for want of work."""
    sure = comparison.p_value is not None and comparison.p_value < report.false_discovery_rate
    held_back = comparison.restless and doubt.HELD_BACK in comparison.doubts
    return held_back and sure and _is_worse_and_open(comparison)


def _is_worse_and_open(comparison: Comparison) -> bool:
    left, right = comparison.baseline, comparison.contender
    if comparison.verdict is not Verdict.INCONCLUSIVE or left is None or right is None:
        return False
    is_relevant = comparison.effect is None or abs(comparison.effect) > comparison.relevance
    return is_relevant and comparison.metric.better.is_worse(right.center - left.center)


def _reason(comparison: Comparison) -> str:
    reason = comparison.verdict.value
    if comparison.verdict is Verdict.BROKEN:
        reason = f"{comparison.doubts[0][0].lower()}{comparison.doubts[0][1:].rstrip('.')}"
    return f"{comparison.metric.id} {comparison.statistic}: {reason}"


def known_as(comparison: Comparison, report: Report, policy: Policy) -> str:
    """Say as what the policy accepts that an expectation is broken; empty if it does not."""
    if comparison.verdict is not Verdict.BROKEN:
        return ""
    return policy.rule_for(report.scenario.id, comparison.metric.id).known


def _warning(comparison: Comparison, report: Report, policy: Policy) -> str:
    if known := known_as(comparison, report, policy):
        return f"{_reason(comparison)}, known as {known}"
    if comparison.verdict is Verdict.WORSE_WITHIN:
        return f"{comparison.metric.id} {comparison.statistic}: {describe_worse_within(comparison)}"
    if is_worse_between_unknown_runs(comparison, report):
        return f"{_reason(comparison)}, worse between {UNKNOWN_RUNS}"
    if is_worse_and_held_back(comparison, report):
        return f"{_reason(comparison)}, worse, {NOISY_MACHINE}"
    if comparison.of_luck:
        return f"{_reason(comparison)}, but {LUCK}"
    if stands(comparison, report):
        return f"{_reason(comparison)}, and the policy only warns"
    return f"{_reason(comparison)}, but not under Holm's control (p {comparison.p_holm:.3f})"


def describe_worse_within(comparison: Comparison) -> str:
    """Say how much worse, and what is allowed: ``worse by 1.0 points (0.6 to 1.7), within ...``."""
    metric, found = comparison.metric, comparison.interval
    unit, sign = metric.kind.change_unit, 100 * metric.better.worse
    size = f"{sign * (comparison.effect or 0.0):.1f} {unit}"
    if found is not None:
        low, high = sorted((sign * found.low, sign * found.high))
        size += f" ({low:z.1f} to {high:z.1f})"
    return f"worse by {size}, within the margin of {100 * metric.margin:.1f} {unit} that you allow"


def list_names(reports: Sequence[Report], testbeds: Collection[str] = ()) -> tuple[str, ...]:
    """Name reports, in order, by scenario; by testbed and builds too where that does not suffice.

    ``testbeds`` has ids of machines that are named besides those of the reports.
    """
    several = len({*testbeds, *(report.contender.testbed.id for report in reports)}) > 1
    names = [
        f"{report.scenario.id} on {report.contender.testbed.id}" if several else report.scenario.id
        for report in reports
    ]
    often = Counter(names)
    return tuple(
        f"{name} ({report.contender.build.label} against {report.baseline.build.label})"
        if often[name] > 1
        else name
        for name, report in zip(names, reports, strict=True)
    )
