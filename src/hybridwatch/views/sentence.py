"""The words that every view shares: headline, marks, notes, next step."""

import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Final

from hybridwatch.analysis.gate import UNKNOWN_RUNS, is_between_unknown_runs, stands
from hybridwatch.analysis.sequential import level_of
from hybridwatch.analysis.verdict import Attribution, Comparison, Design, Factor, Report, Verdict
from hybridwatch.metric import Kind
from hybridwatch.record.run import Looks
from hybridwatch.views import numbers

MARKS: Final = {
    Verdict.REGRESSION: "\u2716",
    Verdict.FAILED: "!",
    Verdict.MISSING: "\u2205",
    Verdict.IMPROVEMENT: "\u25b2",
    Verdict.EQUIVALENT: "\u2714",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NOT_COMPARABLE: "\u2260",
}
"""Colour is never the only carrier of a verdict."""

_NAMED: Final = 4
"""As many comparisons a headline names before it only counts."""

_FACTORS: Final[Mapping[str, tuple[str, str, str]]] = {
    "engine_step_rate": ("steps per second", "fewer steps per second", "more steps per second"),
    "acceptance_length": (
        "acceptance length over all steps",
        "fewer accepted drafts",
        "more accepted drafts",
    ),
    "batch_occupancy": ("batch occupancy", "fewer requests per step", "more requests per step"),
}
"""A factor's name in prose, and what it means that it fell or rose."""

_PRACTICAL_TRIALS: Final = 1000
"""The most that one run makes."""

_MOST_TRIALS: Final = 30
"""A suggestion beyond this would take hours; the open questions tell the true number."""


def headline(report: Report) -> str:
    """Say the verdict of a whole report in one sentence, the worst first."""
    comparisons = report.comparisons
    if not comparisons:
        return "Nothing to compare: the runs hold no measurement."
    if report.bad_news:
        return f"Bad news: {_named(report.bad_news)}; {_counts(report)}."
    verdicts = {comparison.verdict for comparison in comparisons}
    if verdicts == {Verdict.NOT_COMPARABLE}:
        return (
            f"Not comparable: {' '.join(notes(report)) or 'the sides measured different things.'}"
        )
    if verdicts == {Verdict.EQUIVALENT}:
        counted = plural(len(comparisons), "comparison")
        return f"Equivalent: {counted}, all within the margins."
    improved = [c for c in comparisons if c.verdict is Verdict.IMPROVEMENT]
    if improved:
        return f"Improved, nothing regressed: {_named(improved)}; {_counts(report)}."
    return f"No regression shown, but not all settled: {_counts(report)}."


def reason(found: Attribution) -> str:
    """Say in one sentence why a metric changed, and in which of its factors."""
    told = ", ".join(
        f"{_FACTORS[factor.name][0]} {numbers.relative(factor.effect)}" for factor in found.factors
    )
    why = " and ".join(map(_moved, found.movers)) or "the cause cannot be told from these trials"
    against = " and ".join(_moved(f) for f in found.factors if f.moved and f not in found.movers)
    if against:
        why += f"; against it {against}"
    way = "rose" if found.effect > 0 else "fell"
    return f"{found.metric} {way} by {100 * abs(found.effect):.1f} %: {why} ({told})."


def _moved(factor: Factor) -> str:
    _, fell, rose = _FACTORS[factor.name]
    return rose if factor.effect > 0 else fell


def name_of(comparison: Comparison) -> str:
    """Name a comparison: the metric, and the statistic where a metric has more than one."""
    plain = comparison.metric.kind is not Kind.TIME
    return comparison.metric.id if plain else f"{comparison.metric.id} {comparison.statistic}"


def change_of(comparison: Comparison) -> str:
    """Write the change with its interval: ``+20.1 % (+15.0 to +25.3)``."""
    change = numbers.change(comparison)
    interval = numbers.interval(comparison)
    return f"{change} ({interval})" if interval else change


def plural(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 test``, ``2 tests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def centers_of(comparison: Comparison) -> tuple[str, str]:
    """Write the centers of both sides with their unit, ``-`` where a side has none."""
    sides = (comparison.baseline, comparison.contender)
    left, right = (
        numbers.value(side.center if side else None, comparison.metric) for side in sides
    )
    return left, right


def line_of(comparison: Comparison) -> str:
    """Tell a comparison in one line."""
    old, new = centers_of(comparison)
    said = f"{name_of(comparison)}: {comparison.verdict.value}, {old} -> {new}"
    return said if comparison.effect is None else f"{said}, {change_of(comparison)}"


def notes(report: Report) -> tuple[str, ...]:
    """List every doubt of a report once, in order of appearance; footnote 1 is the first."""
    return tuple(dict.fromkeys(doubt for c in report.comparisons for doubt in c.doubts))


def open_questions(report: Report) -> tuple[str, ...]:
    """Say of each inconclusive comparison what it could have seen and what would settle it."""
    return tuple(
        _open_question(comparison)
        for comparison in report.comparisons
        if comparison.verdict is Verdict.INCONCLUSIVE
    )


def rules(report: Report) -> tuple[str, ...]:
    """Say by which rules a report was judged: the control over all tests, then each rule once."""
    by_rule: dict[tuple[str, str], int] = {}
    for comparison in report.comparisons:
        if comparison.design is not Design.NONE:
            words = dict.fromkeys((comparison.test, comparison.design.value))
            rule = ", ".join(words), comparison.assumption
            by_rule[rule] = by_rule.get(rule, 0) + 1
    told = [
        f"{name} ({plural(count, 'comparison')}): {assumption}"
        for (name, assumption), count in by_rule.items()
    ]
    if report.tests:
        told.insert(0, _control(report))
    if report.looks is not None:
        told.insert(0, _repeated_looks(report.looks))
    return tuple(told)


def _control(report: Report) -> str:
    tests, level = plural(report.tests, "test"), f"{report.false_discovery_rate:.3g}"
    if len(report.families) < 2:
        return f"{tests}, p adjusted together (Benjamini-Hochberg) and held against {level}."
    each = ", ".join(f"{family.tests} of {family.name}" for family in report.families)
    return (
        f"{tests}, p adjusted within each family (Benjamini-Hochberg) and held against {level}: "
        f"{each}."
    )


def _repeated_looks(looks: Looks) -> str:
    trials = ", ".join(map(str, looks.made)) or "no"
    return (
        f"{len(looks.made)} of {plural(len(looks.planned), 'look')}, after {trials} trials a side: "
        f"a time, rate or count is held against {level_of(looks):g} at each, and its p shown as "
        "if that were 0.05."
    )


def unsure(report: Report) -> str:
    """Name the bad news that a gate lets pass with a warning; empty when there is none."""
    alone = [c for c in report.bad_news if is_between_unknown_runs(c, report)]
    doubtful = [c for c in report.bad_news if c not in alone and not stands(c, report)]
    told = []
    if doubtful:
        named = ", ".join(f"{name_of(c)} (p {numbers.p_value(c.p_holm)})" for c in doubtful)
        told.append(f"By Holm's control a gate only warns of {named}.")
    if alone:
        named = ", ".join(map(name_of, alone))
        told.append(f"A gate only warns of {named}: {UNKNOWN_RUNS}.")
    return " ".join(told)


def repeat_command(report: Report) -> str:
    """Give the command line that measures both builds again, interleaved."""
    needed = [
        comparison.trials_needed
        for comparison in report.comparisons
        if comparison.trials_needed and comparison.metric.kind is not Kind.PROPORTION
    ]
    words = ["hybridwatch", "run", report.scenario.id]
    for side in (report.baseline, report.contender):
        words += ["--build", side.build.label]
    if needed:
        words += ["--trials", str(min(max(needed), _MOST_TRIALS))]
    return shlex.join(" ".join(word.split()) for word in words)


def _open_question(comparison: Comparison) -> str:
    parts = []
    if comparison.minimum_detectable_effect is not None:
        seen = numbers.size(comparison, comparison.minimum_detectable_effect)
        parts.append(f"a change of {seen} would have been found 8 times in 10")
    if comparison.trials_needed is not None:
        parts.append(_what_it_takes(comparison.trials_needed, comparison.metric.kind))
    return f"{name_of(comparison)}: {'; '.join(parts) or 'cannot be settled from these values'}."


def _what_it_takes(needed: int, kind: Kind) -> str:
    if kind is Kind.PROPORTION:
        return f"about {needed} documents would settle it"
    if needed > _PRACTICAL_TRIALS:
        return "too noisy here for any practical number of trials: quieten the machine first"
    return f"about {needed} trials a side would settle it"


def _named(comparisons: list[Comparison] | tuple[Comparison, ...]) -> str:
    said = [
        f"{name_of(c)} {c.verdict.value}" + (f" {_change(c)}" if c.effect else "")
        for c in comparisons[:_NAMED]
    ]
    rest = len(comparisons) - _NAMED
    return ", ".join(said) + (f" and {rest} more" if rest > 0 else "")


def _change(comparison: Comparison) -> str:
    return f"({numbers.change(comparison)})"


def _counts(report: Report) -> str:
    found = Counter(comparison.verdict for comparison in report.comparisons)
    counted = ", ".join(_count(found[verdict], verdict) for verdict in Verdict if found[verdict])
    return f"{counted} of {plural(len(report.comparisons), 'comparison')}"


def _count(number: int, verdict: Verdict) -> str:
    if verdict in {Verdict.REGRESSION, Verdict.IMPROVEMENT}:
        return plural(number, verdict.value)
    return f"{number} {verdict.value}"
