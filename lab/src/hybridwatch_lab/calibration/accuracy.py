"""Accuracy: equal questions to both sides; some answers flip at random, some are lost for good."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis.paired_proportion import Pairs
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch_lab.calibration import figure
from hybridwatch_lab.calibration.comparisons import found
from hybridwatch_lab.calibration.figure import at_least, part, percent
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, LabTable
from hybridwatch_lab.calibration.reports import Judge
from hybridwatch_lab.calibration.rivals import ANSWER_RULES
from hybridwatch_lab.calibration.simulated import answers_run

_SHARE_RIGHT: Final = 0.75
_QUESTIONS: Final = (50, 100, 250, 1319)
_CHURNS: Final = (0.01, 0.06, 0.20)


def two_sides(rng: Generator, n: int, churn: float, drop: float) -> list[Sequence[bool]]:
    """Draw the answers of two sides.

    ``churn``: share of questions that only one side gets right although nothing changed, half of
    them lost and half won. ``drop``: share of questions that are lost on top.
    """
    fate, right = rng.random(n), rng.random(n) < _SHARE_RIGHT
    lost = fate < churn / 2 + drop
    won = ~lost & (fate < churn + drop)
    return [tuple(((right & ~won) | lost).tolist()), tuple(((right & ~lost) | won).tolist())]


def of_answers(lab: Laboratory, judge: Judge = build_report) -> LabSection:
    """The promised power, and false alarms over numbers of questions and churn."""
    lab.on_progress("accuracy: 1319 questions")
    rng = lab.rng("accuracy")
    n, churn, times = 1319, 0.06, lab.times(1000, 40)
    moved = [simulate_accuracy(rng, n, churn, 0.02, judge) for _ in range(times)]
    still = [simulate_accuracy(rng, n, churn, 0.0, judge) for _ in range(times)]
    setting = f"{n} questions, {percent(churn)} churn"
    nulls, rows = _nulls(lab, judge)
    figures = (
        figure.share(
            "accuracy.called",
            f"-2 points called a regression, {setting}",
            red(moved),
            at_least(0.78),
        ),
        figure.share("accuracy.found", f"-2 points found, {setting}", list(map(found, moved))),
        figure.share("accuracy.red", f"no drop called a regression, {setting}", red(still)),
        figure.share("accuracy.null_red", "no drop called a regression, every setting", nulls),
        figure.share(
            "accuracy.same",
            f"no drop called equivalent, {setting}",
            [one.verdict is Verdict.EQUIVALENT for one in still],
        ),
    )
    text = (
        f"The same questions to both sides, {percent(_SHARE_RIGHT)} right. Churn is the share of "
        "questions that one side alone gets right by chance, half of them lost and half won; a "
        "drop is lost on top of it. The first table sets other rules beside ours, the second "
        "holds reports without any drop."
    )
    tables = (
        _compare_with_field(lab, judge),
        LabTable("No drop: called a regression / called equivalent", _HEADER, rows),
    )
    return LabSection("Accuracy", text, figures, tables)


def simulate_accuracy(
    rng: Generator, n: int, churn: float, drop: float, judge: Judge = build_report
) -> Comparison:
    """Simulate one accuracy task and have it judged."""
    (comparison,) = judge(answers_run(two_sides(rng, n, churn, drop))).comparisons
    return comparison


def red(comparisons: Iterable[Comparison]) -> list[bool]:
    """Whether each comparison is a regression."""
    return [one.verdict is Verdict.REGRESSION for one in comparisons]


def _compare_with_field(lab: Laboratory, judge: Judge) -> LabTable:
    cells: dict[str, list[str]] = {name: [] for name in ("hybridwatch", *ANSWER_RULES)}
    settings = ((1319, 0.02), (250, 0.04))
    for n, drop in settings:
        lab.on_progress(f"accuracy: the field, {n} questions")
        for loss in (0.0, drop):
            rng = lab.rng(f"accuracy field {n} {loss}")
            drawn = [two_sides(rng, n, 0.06, loss) for _ in range(lab.times(200, 5))]
            ours = [one for sides in drawn for one in judge(answers_run(sides)).comparisons]
            cells["hybridwatch"].append(part(red(ours)))
            for name, rule in ANSWER_RULES.items():
                answers = [rule(_count_pairs(sides), float(np.mean(sides[0]))) for sides in drawn]
                cells[name].append(part(answers))
    rows = tuple(
        (name, *(f"{a} / {b}" for a, b in zip(some[::2], some[1::2], strict=True)))
        for name, some in cells.items()
    )
    header = ("rule", *(f"{n} questions, -{100 * drop:g} points" for n, drop in settings))
    return LabTable("6 % churn: no drop called a regression / the drop called one", header, rows)


def _count_pairs(sides: Sequence[Sequence[bool]]) -> Pairs:
    left, right = (np.asarray(side) for side in sides)
    return Pairs(len(left), int(np.sum(left & ~right)), int(np.sum(right & ~left)))


def _nulls(lab: Laboratory, judge: Judge) -> tuple[list[bool], tuple[tuple[str, ...], ...]]:
    every: list[bool] = []
    rows = []
    for n in _QUESTIONS:
        lab.on_progress(f"accuracy: {n} questions, no drop")
        rng = lab.rng(f"accuracy {n}")
        cells = [str(n)]
        for churn in _CHURNS:
            answers = [
                simulate_accuracy(rng, n, churn, 0.0, judge) for _ in range(lab.times(200, 5))
            ]
            same = [one.verdict is Verdict.EQUIVALENT for one in answers]
            cells.append(f"{part(red(answers))} / {part(same)}")
            every += red(answers)
        rows.append(tuple(cells))
    return every, tuple(rows)


_HEADER: Final = ("questions", *(f"churn {percent(churn)}" for churn in _CHURNS))
