"""The words that every view shares: headline, marks, notes, controls caught, next step."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from hybridwatch.analysis.cause import causes_in
from hybridwatch.analysis.detection import Detection, KnownBad
from hybridwatch.analysis.gate import (
    LUCK,
    NOISY_MACHINE,
    UNKNOWN_RUNS,
    describe_worse_within,
    is_worse_and_held_back,
    is_worse_between_unknown_runs,
    stands,
)
from hybridwatch.analysis.power import ENOUGH, level_of
from hybridwatch.analysis.subject import find_phase
from hybridwatch.analysis.verdict import (
    Attribution,
    Comparison,
    Design,
    Factor,
    Flip,
    Report,
    Verdict,
)
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.cause_text import cause_sentence
from hybridwatch.analysis.wording.numbers import (
    MOST_TRIALS,
    WORTHWHILE_TRIALS,
    describe_change,
    format_centers,
    name_of,
    plural,
)
from hybridwatch.history.entry import Entry
from hybridwatch.metrics import Kind, Metric
from hybridwatch.records.identity import EngineBuild, lasting_label
from hybridwatch.records.run import InterimAnalyses, Phase

if TYPE_CHECKING:
    from hybridwatch.history.controls import ControlRun  # with pandas, which a gate does without

MARKS: Final = {
    Verdict.REGRESSION: "\u2716",
    Verdict.BROKEN: "\u2717",
    Verdict.FAILED: "!",
    Verdict.MISSING: "\u2205",
    Verdict.IMPROVEMENT: "\u25b2",
    Verdict.EQUIVALENT: "\u2714",
    Verdict.WORSE_WITHIN: "\u25bd",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NOT_COMPARABLE: "\u2260",
}
"""Colour is never the only carrier of a verdict."""
PROMINENT: Final = frozenset(Verdict) - {
    Verdict.EQUIVALENT,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_COMPARABLE,
}
"""What comes before the rest: a change, or that nothing could be measured."""
_NAMED: Final = 4
"""As many causes a headline names before it only counts."""
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
_NAMED_CONTROLS: Final = 2
"""As many readings or scenarios as are named before they are only counted."""


def headline(report: Report) -> str:
    """Say what became of a whole report: what changed and by how much, the worst first."""
    causes = [cause_sentence(cause, report) for cause in causes_in(report)]
    return summary(causes, [one.verdict for one in report.comparisons], " ".join(notes(report)))


def summary(causes: Sequence[str], verdicts: Sequence[Verdict], notes: str) -> str:
    """Say what became of a comparison of two builds, by sentences of its causes, the worst first.

    ``notes`` say why sides cannot be compared.
    """
    if not verdicts:
        return "Nothing to compare: the runs hold no measurement."
    if causes:
        parts = [f"{cause}." for cause in causes[:_NAMED]]
        if (more := len(causes) - _NAMED) > 0:
            parts.append(f"And {more} more.")
        bad_news = any(verdict.is_bad_news for verdict in verdicts)
        return " ".join(parts if bad_news else [*parts, "Nothing regressed."])
    if set(verdicts) == {Verdict.NOT_COMPARABLE}:
        return f"Not comparable: {notes or 'the sides measured different things.'}"
    if set(verdicts) == {Verdict.EQUIVALENT}:
        counted = plural(len(verdicts), "comparison")
        return f"Equivalent: {counted}, all within the margins."
    counted = f"{tally(verdicts)} of {plural(len(verdicts), 'comparison')}"
    return f"No regression shown, but not all settled: {counted}."


def reason(found: Attribution) -> str:
    """Say in one sentence why a metric changed, and in which of its factors."""
    parts = ", ".join(
        f"{_FACTORS[factor.name][0]} {numbers.relative(factor.effect)}" for factor in found.factors
    )
    why = " and ".join(map(_moved, found.movers)) or "these trials do not show the cause"
    against = " and ".join(_moved(f) for f in found.factors if f.moved and f not in found.movers)
    if against:
        why += f"; against it {against}"
    way = "rose" if found.effect > 0 else "fell"
    return f"{found.metric} {way} by {100 * abs(found.effect):.1f} %: {why} ({parts})."


def _moved(factor: Factor) -> str:
    _, fell, rose = _FACTORS[factor.name]
    return rose if factor.effect > 0 else fell


def write_line(comparison: Comparison) -> str:
    """Tell a comparison in one line; a side without a value is left out."""
    old, new = format_centers(comparison)
    start = f"{name_of(comparison)}: {comparison.verdict.value}"
    if comparison.contender is None:
        return start if comparison.baseline is None else f"{start}, was {old}"
    if comparison.baseline is None:
        return f"{start}, the contender has {new}"
    line = f"{start}, {old} -> {new}"
    return line if comparison.effect is None else f"{line}, {describe_change(comparison)}"


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
    parts = [
        f"{name} ({plural(count, 'comparison')}): {assumption}"
        for (name, assumption), count in by_rule.items()
    ]
    if report.tests:
        parts.insert(0, _control(report))
    if report.looks is not None:
        parts.insert(0, _repeated_looks(report.looks))
    return tuple(parts)


def _control(report: Report) -> str:
    tests, level = plural(report.tests, "test"), f"{report.false_discovery_rate:.3g}"
    if len(report.families) < 2:
        return f"{tests}, p adjusted together and held against {level}."
    each = ", ".join(f"{family.tests} of {family.name}" for family in report.families)
    return f"{tests}, p adjusted within each family and held against {level}: {each}."


def _repeated_looks(looks: InterimAnalyses) -> str:
    trials = ", ".join(map(str, looks.made)) or "no"
    return (
        f"{len(looks.made)} of {plural(len(looks.planned), 'look')}, after {trials} trials a side: "
        f"a time, rate or count is held against {level_of(looks):g} at each, and its p shown as "
        "if that were 0.05."
    )


def unsure(report: Report) -> str:
    """Name the bad news that a gate lets pass with a warning; empty when there is none."""
    apart = [c for c in report.comparisons if is_worse_between_unknown_runs(c, report)]
    doubtful = [c for c in report.bad_news if not stands(c, report) and not c.of_luck]
    parts = []
    if doubtful:
        named = ", ".join(f"{name_of(c)} (p {numbers.p_value(c.p_holm)})" for c in doubtful)
        parts.append(f"By Holm's control a gate only warns of {named}.")
    if apart:
        named = ", ".join(map(name_of, apart))
        parts.append(f"A gate only warns of {named}: {UNKNOWN_RUNS}.")
    if held_back := [c for c in report.comparisons if is_worse_and_held_back(c, report)]:
        named = ", ".join(map(name_of, held_back))
        parts.append(f"A gate only warns of {named}: {NOISY_MACHINE}.")
    if of_luck := [c for c in report.bad_news if c.of_luck]:
        parts.append(f"A gate only warns of {', '.join(map(name_of, of_luck))}: {LUCK}.")
    if within := [c for c in report.comparisons if c.verdict is Verdict.WORSE_WITHIN]:
        each = [f"{name_of(c)} ({describe_worse_within(c)})" for c in within]
        parts.append(f"A gate only warns of {', '.join(with_rest(each, _NAMED))}.")
    return " ".join(parts)


def recommend_trials(comparisons: Iterable[Comparison]) -> int:
    """Recommend trials a side for the open comparisons; 0 where nothing is open.

    As many as settle what can be settled in reasonable time; for the rest, which needs a quieter
    machine, the fewest that say anything.
    """
    needed = [c.trials_needed for c in comparisons if c.trials_needed and c.metric.kind.has_noise]
    return max((n if n <= WORTHWHILE_TRIALS else ENOUGH for n in needed), default=0)


def place_to_repeat(reports: Iterable[Report]) -> str:
    """Where to measure again: `` on a quieter machine`` if trials alone take hours, else empty."""
    found = (c for report in reports for c in report.comparisons if c.metric.kind.has_noise)
    hopeless = any((c.trials_needed or 0) > WORTHWHILE_TRIALS for c in found)
    return " on a quieter machine" if hopeless else ""


def repeat_command(report: Report, trials: int = 0) -> str:
    """Give the command that measures both builds again; 0 trials for ``recommend_trials``."""
    trials = trials or recommend_trials(report.comparisons)
    words = _run_words(report.scenario.id, report.baseline.build, report.contender.build)
    if {find_phase(comparison.metric) for comparison in report.comparisons} == {Phase.DUET}:
        words += ["--phases", Phase.DUET.value]
    if trials:
        words += ["--trials", str(trials)]
    return shlex.join(" ".join(word.split()) for word in words)


def bisect_command(
    scenario: str, good: str, bad: str, metric: str = "", *, in_clone: bool = False
) -> str:
    """Give the command that searches for a change between labels, releases or commits.

    An empty ``metric`` is any that changed; ``in_clone`` says that an end is a commit.
    """
    words = ["hybridwatch", "bisect", scenario, "--good", good, "--bad", bad]
    words += ["--metric", metric] if metric else []
    words += ["--repo", "vllm"] if in_clone else []
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
    if needed > MOST_TRIALS:
        return "too noisy here for any practical number of trials: quieten the machine first"
    settles = f"about {needed} trials a side would settle it"
    if needed > WORTHWHILE_TRIALS:
        return f"{settles}, which takes hours: quieten the machine first"
    return settles


def tally(verdicts: Iterable[Verdict]) -> str:
    """Count verdicts of each kind: ``2 regressions, 1 missing``."""
    found = Counter(verdicts)
    return ", ".join(
        plural(found[verdict], verdict.value)
        if verdict in {Verdict.REGRESSION, Verdict.IMPROVEMENT}
        else f"{found[verdict]} {verdict.value}"
        for verdict in Verdict
        if found[verdict]
    )


def with_rest(items: Sequence[str], most: int, lead: str = "and ") -> list[str]:
    """Keep the first, and count the others in a last one: ``and 3 more``."""
    more = len(items) - most
    return [*items[:most], *([f"{lead}{more} more"] if more > 0 else [])]


def render_flips(report: Report) -> Iterator[tuple[Metric, tuple[Flip, ...]]]:
    """Yield each accuracy metric whose answers changed, with the answers, losses first."""
    for comparison in report.comparisons:
        if comparison.flips:
            flips = sorted(comparison.flips, key=lambda flip: flip.contender.correct)
            yield comparison.metric, tuple(flips)


def render_notes(report: Report) -> Iterator[tuple[str, list[str]]]:
    """Yield what to know before believing a report: a heading and its lines, if there are any."""
    doubted: dict[str, list[str]] = defaultdict(list)
    for comparison in report.comparisons:
        for doubt in comparison.doubts:
            doubted[doubt].append(name_of(comparison))
    for title, lines in (
        ("Doubts", [f"{', '.join(names)}: {doubt}" for doubt, names in doubted.items()]),
        ("Not settled", list(open_questions(report))),
        ("Failed trials", list(report.failures)),
        ("What differs between the two sides", list(report.differences)),
    ):
        if lines:
            yield title, lines


def render_repeat_command(entry: Entry) -> str:
    """Give the command that measures the same again, quoted for a shell."""
    if entry.report is not None:
        return repeat_command(entry.report)
    return shlex.join(_run_words(entry.run.scenario.id, *entry.run.builds))


def _run_words(scenario: str, *builds: EngineBuild) -> list[str]:
    named = [word for build in builds for word in ("--build", lasting_label(build))]
    return ["hybridwatch", "run", scenario, *named]


def bugs_caught(controls: Collection["KnownBad | ControlRun"]) -> str:
    """Say how many bugs were caught, and whether the healthy engine was clean next to them."""
    caught = sum(control.detection is Detection.CAUGHT for control in controls)
    unclean = [f"{one.scenario} {metric}" for one in controls for metric in one.baseline_violations]
    line = caught_sentence(caught, len(controls), unclean)
    for detection in (Detection.MISSED, Detection.NOT_ASKED):
        if rest := [control.scenario for control in controls if control.detection is detection]:
            line += f"; {detection.value}: {_some(rest)}"
    return line


def caught_sentence(caught: int, of: int, unclean: Sequence[str]) -> str:
    """Say how many bugs were caught, and where the healthy engine broke a rule or differed."""
    healthy = f"NOT clean: {_some(unclean)}" if unclean else "clean"
    return f"{caught} of {plural(of, 'bug')} caught, the healthy engine {healthy}"


def clearest_sign(control: KnownBad) -> str:
    """Name the clearest sign of an engine without its fix, and count the others; empty if none."""
    # One task and one contract first: what a user would have seen, and what broke inside.
    firsts = {found.metric.kind: found for found in reversed(control.by)}.values()
    first = sorted(firsts, key=lambda found: found.metric.kind is not Kind.PROPORTION)
    rest = [found for found in control.by if found not in first]
    return list_readings([*first, *rest], most=1)


def list_readings(comparisons: Sequence[Comparison], most: int = _NAMED_CONTROLS) -> str:
    """Name the first comparisons with both sides' numbers, and count the others."""
    return _some([_reading(comparison) for comparison in comparisons], most)


def _reading(comparison: Comparison) -> str:
    name = name_of(comparison).partition(".")[2] or name_of(comparison)
    if comparison.verdict is Verdict.FAILED:
        return f"{name} failed"
    old, new = format_centers(comparison)
    return f"{name} {old} \u2192 {new}"


def _some(items: Sequence[str], most: int = _NAMED_CONTROLS) -> str:
    return ", ".join(with_rest(items, most, ""))
