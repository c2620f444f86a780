"""One rate, two builds, trials in turn: power, false alarms, honest numbers for planning."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis.judge import FALSE_DISCOVERY_RATE
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.metrics import find_metric
from hybridwatch_lab.calibration import figure
from hybridwatch_lab.calibration.figure import Figure, at_least, at_most, part, percent
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.reports import Judge, report_on
from hybridwatch_lab.calibration.rivals import RATE_RULES, RateRule
from hybridwatch_lab.calibration.simulated import RATE, Array, SimulatedSession, rates_run

_CV: Final = 0.03
_CHANGE: Final = 0.05
_PLAIN: Final = SimulatedSession(20)
_SESSIONS: Final[Mapping[str, SimulatedSession]] = MappingProxyType(
    {
        "20 pairs": _PLAIN,
        "20 pairs, machine 20 % faster by the end": SimulatedSession(20, drift=0.2),
        "20 pairs, one trial in 20 slower by half": SimulatedSession(20, spikes=0.05),
        "10 pairs": SimulatedSession(10),
        "10 pairs, machine 20 % faster by the end": SimulatedSession(10, drift=0.2),
        "7 pairs": SimulatedSession(7),
        "7 pairs, machine 20 % faster by the end": SimulatedSession(7, drift=0.2),
    }
)
_HEADER: Final = (
    "session",
    "change found",
    "change called",
    "no change found",
    "no change called one",
    "no change called equivalent",
)
_PAIRS: Final = (7, 10, 15, 20, 30)
_SPREADS: Final = (0.01, 0.03, 0.05)
_CHANGES: Final = (0.02, 0.03, 0.05, 0.10)
_MOST_TRIALS: Final = 200
"""More is not practical, and would take the simulation too long."""


@dataclass(frozen=True, slots=True)
class ComparisonQuestion:
    """What is simulated.

    Attributes:
        cv: Spread of the trials of a side.
        change: contender / baseline - 1 of the true levels.
    """

    session: SimulatedSession
    cv: float
    change: float = 0.0


def draw(question: ComparisonQuestion, rng: Generator) -> list[Array]:
    """Simulate the trials of both sides, one metric a row."""
    sides = []
    for side, level in enumerate((1.0, 1.0 + question.change)):
        noise = np.exp(question.cv * rng.standard_normal((1, question.session.pairs)))
        sides.append(question.session.disturbed(level * noise, side, rng))
    return sides


def simulate_comparison(
    question: ComparisonQuestion, rng: Generator, judge: Judge = build_report
) -> Comparison:
    """Simulate one measured metric and have it judged."""
    (comparison,) = judge(rates_run(draw(question, rng), question.session)).comparisons
    return comparison


def of_one_metric(lab: Laboratory, judge: Judge = build_report) -> LabSection:
    """The promised power, and what is left of it when the machine is disturbed."""
    figures: tuple[Figure, ...] = ()
    covered: list[bool] = []
    rows = []
    for name, session in _SESSIONS.items():
        lab.on_progress(f"A/B: {name}")
        rng, plain = lab.rng(f"one {name}"), session == _PLAIN
        times = lab.times(2000, 40) if plain else lab.times(200, 5)
        still = [
            simulate_comparison(ComparisonQuestion(session, _CV), rng, judge) for _ in range(times)
        ]
        moved = [
            simulate_comparison(ComparisonQuestion(session, _CV, _CHANGE), rng, judge)
            for _ in range(times)
        ]
        if plain:
            figures = _promised(still, moved)
        covered += [_covers(one, 0.0) for one in still] + [_covers(one, _CHANGE) for one in moved]
        same = [one.verdict is Verdict.EQUIVALENT for one in still]
        outcomes = (map(found, moved), map(called, moved), map(found, still), map(called, still))
        rows.append((name, *(part(list(some)) for some in outcomes), part(same)))
    text = (
        f"One rate, lognormal, CV {percent(_CV)} a side, trials interleaved A B B A, alone in "
        f"its report; a change is +{percent(_CHANGE)}. *Found* is an adjusted p-value below the "
        "level, *called* a verdict of improvement or regression."
    )
    cover = figure.share("ab.coverage", "95 % intervals that hold the true change", covered)
    table = LabTable("By session", _HEADER, tuple(rows))
    return LabSection("Two builds, one rate", text, (*figures, cover), (table,))


def compare_with_field(lab: Laboratory, judge: Judge = build_report) -> LabSection:
    """Ours and rules in use elsewhere on the same trials."""
    rules: dict[str, Callable[[list[Array], SimulatedSession], bool]] = {
        "hybridwatch": lambda sides, session: called(*judge(rates_run(sides, session)).comparisons)
    }
    for name, rule in RATE_RULES.items():
        rules[name] = partial(_by_rule, rule)
    sizes, times = (7, 20), lab.times(200, 5)
    cells: dict[str, list[str]] = {name: [] for name in rules}
    for pairs, drift in product(sizes, (0.0, 0.2)):
        lab.on_progress(f"A/B: the field, {pairs} pairs")
        session = SimulatedSession(pairs, drift=drift)
        for change in (0.0, _CHANGE):
            rng = lab.rng(f"field {pairs} {drift} {change}")
            drawn = [draw(ComparisonQuestion(session, _CV, change), rng) for _ in range(times)]
            for name, decide in rules.items():
                cells[name].append(part([decide(sides, session) for sides in drawn]))
    rows = tuple(
        (name, *(f"{a} / {b}" for a, b in zip(some[::2], some[1::2], strict=True)))
        for name, some in cells.items()
    )
    header = ("rule", *(f"{n} pairs{how}" for n in sizes for how in ("", ", drift 20 %")))
    text = (
        f"Each cell: no change called one / +{percent(_CHANGE)} called a change, in {times} "
        "simulations of each. The other rules have no verdict of equivalence and see one metric "
        "at a time: in a report of 400 metrics they have 400 chances to be wrong."
    )
    return LabSection(
        "Two builds, the field", text, (), (LabTable("One rate, CV 3 %", header, rows),)
    )


def over_the_plane(lab: Laboratory) -> LabSection:
    """Power over pairs, spread and size of change."""
    tables = []
    times = lab.times(200, 2)
    for cv in _SPREADS:
        lab.on_progress(f"A/B: power at CV {percent(cv)}")
        rng = lab.rng(f"plane {cv}")
        rows = []
        for pairs in _PAIRS:
            cells = [f"{pairs}"]
            for change in (0.0, *_CHANGES):
                question = ComparisonQuestion(SimulatedSession(pairs), cv, change)
                reports = (report_on(draw(question, rng)) for _ in range(times))
                cells.append(_called_and_same([one.comparisons[0] for one in reports]))
            rows.append(tuple(cells))
        header = ("pairs", "no change", *(f"+{percent(c)}" for c in _CHANGES))
        caption = f"CV {percent(cv)}: called a change / called equivalent"
        tables.append(LabTable(caption, header, tuple(rows)))
    text = (
        f"As above, {times} simulations a cell. A rate's margin is "
        f"{percent(find_metric(RATE).margin)}: a change of that size or less should not be called "
        "one, a change of more should not be called equivalent."
    )
    return LabSection("Two builds, over pairs, spread and size", text, (), tuple(tables))


def of_promises(lab: Laboratory, judge: Judge = build_report) -> LabSection:
    """Are the minimum detectable effect and the trials needed what they say?"""
    lab.on_progress("A/B: minimum detectable effect and trials needed")
    figures = []
    for pairs in (7, 20):
        rng = lab.rng(f"promise {pairs}")
        outcomes = []
        for _ in range(lab.times(300, 15)):
            first = simulate_comparison(
                ComparisonQuestion(SimulatedSession(pairs), _CV), rng, judge
            )
            size = first.minimum_detectable_effect
            if size is not None:
                outcomes.append(
                    called(
                        simulate_comparison(
                            ComparisonQuestion(SimulatedSession(pairs), _CV, size), rng, judge
                        )
                    )
                )
        what = f"change of the size called detectable, called a change; {pairs} pairs (80 % wanted)"
        figures.append(figure.share(f"ab.detectable_{pairs}", what, outcomes))
    rng = lab.rng("trials needed")
    settled = []
    for _ in range(lab.times(200, 10)):
        first = simulate_comparison(ComparisonQuestion(SimulatedSession(7), 0.06), rng, judge)
        needed = first.trials_needed
        if needed is not None and needed <= _MOST_TRIALS:
            again = simulate_comparison(
                ComparisonQuestion(SimulatedSession(needed), 0.06), rng, judge
            )
            settled.append(again.verdict is Verdict.EQUIVALENT)
    what = "unchanged builds settled by the trials called needed; CV 6 % (80 % wanted)"
    figures.append(figure.share("ab.trials_needed", what, settled))
    text = (
        "Two planning numbers are tested: a first session gives them, and a second session is "
        "simulated accordingly."
    )
    return LabSection("Planning numbers", text, tuple(figures))


def _promised(still: Sequence[Comparison], moved: Sequence[Comparison]) -> tuple[Figure, ...]:
    setting = f"CV {percent(_CV)}, {_PLAIN.pairs} pairs"
    return (
        figure.share(
            "ab.power",
            f"+{percent(_CHANGE)} called a change, {setting}",
            list(map(called, moved)),
            at_least(0.95),
        ),
        figure.share(
            "ab.false", f"no change called one, {setting}", list(map(called, still)), at_most(0.01)
        ),
    )


def _by_rule(rule: RateRule, sides: list[Array], _session: SimulatedSession) -> bool:
    return rule(sides[0][0], sides[1][0])


def found(comparison: Comparison) -> bool:
    """Say whether the difference is beyond noise, after the report's control."""
    return comparison.p_adjusted is not None and comparison.p_adjusted < FALSE_DISCOVERY_RATE


def called(comparison: Comparison) -> bool:
    """Say whether the verdict is that of a change."""
    return comparison.verdict in {Verdict.REGRESSION, Verdict.IMPROVEMENT}


def _called_and_same(answers: Sequence[Comparison]) -> str:
    same = [one.verdict is Verdict.EQUIVALENT for one in answers]
    return f"{part(list(map(called, answers)))} / {part(same)}"


def _covers(comparison: Comparison, change: float) -> bool:
    span = comparison.interval
    return span is not None and span.low <= change <= span.high
