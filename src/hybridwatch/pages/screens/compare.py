"""Any two sides: every delta against its margin, why, which answers changed, what else differs."""

from collections.abc import Iterator
from typing import Final

from hybridwatch.analysis.difference import Fact, facts_between
from hybridwatch.analysis.verdict import Report, find_line_verdict, worst_first
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.labels import name_of, plural
from hybridwatch.history.judge import JudgedReport
from hybridwatch.history.runs import runs_by_id
from hybridwatch.pages.document import (
    Block,
    Chart,
    Column,
    Document,
    Filters,
    Folded,
    Paragraph,
    Section,
    Table,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.curve import tradeoff_section
from hybridwatch.pages.screens.empty import broken_in, empty_store
from hybridwatch.pages.screens.pair import (
    Obstacle,
    PairView,
    choose,
    chosen_blocks,
    judged,
    render_lead,
    repeat_section,
)
from hybridwatch.pages.screens.run import changed_answers, comparisons_table
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.records.run import Run
from hybridwatch.reports.figures.forest import build_rows, compute_reach, figure_forest
from hybridwatch.reports.run_notes import render_notes
from hybridwatch.reports.sentence import headline, reason

_TITLE: Final = "Compare"
_FOREST: Final = "Change of each metric against its margin"
_DIFFERENCES: Final = "What differs between the two sides"
"""As ``render_notes`` calls it; here it is a table."""


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """Compare the two sides that are asked for, else those of the newest run that has two."""
    pair = choose(runs_by_id(source.index), query)
    if pair is None:
        return Document(_TITLE, empty_store(source))
    found = judged(source, pair)
    if isinstance(found, Obstacle):
        return Document(_TITLE, (Filters(found.choices), *found.blocks), lead=render_lead(pair))
    blocks = (*broken_in(source), *chosen_blocks(pair, found), *_comparison_blocks(pair, found))
    return Document(_TITLE, blocks, lead=render_lead(pair))


def _comparison_blocks(pair: PairView, found: JudgedReport) -> Iterator[Block]:
    report = found.report
    yield Paragraph((find_line_verdict(report), "  ", headline(report)))
    if report.attribution is not None:
        yield Paragraph(reason(report.attribution))
    yield from _forest(report)
    yield comparisons_table(report)
    if report.tradeoff is not None:
        yield tradeoff_section(report.tradeoff)
    yield from changed_answers(report)
    for title, lines in render_notes(report):
        if title != _DIFFERENCES:
            yield Folded(f"{title} ({len(lines)})", tuple(Paragraph(n, quiet=True) for n in lines))
    yield _surroundings(found)
    yield repeat_section(pair, found)


def _forest(report: Report) -> Iterator[Block]:
    rows = build_rows(worst_first(report.comparisons))
    if not rows:
        return
    known = [row for row in rows if row.low < row.high]
    inside = sum(max(abs(row.low), abs(row.high)) <= row.band for row in known)
    cut = sum(row.reach > compute_reach(rows) for row in rows)
    text = (
        "Lines are intervals, marks effects; grey is the band within which a change counts as "
        f"none, and right is better. {inside} of {plural(len(known), 'interval')} within the band."
    )
    if len(known) < len(rows):
        text += " A mark without a line has too few trials for an interval."
    if cut:
        text += f" An arrow goes on beyond the edge ({cut})."
    found = [row.comparison for row in rows]
    intervals = [comparison.interval for comparison in found]
    yield Chart(
        _FOREST,
        figure_forest(_FOREST, rows),
        text,
        {
            "metric": [name_of(comparison) for comparison in found],
            "verdict": [comparison.verdict.value for comparison in found],
            "change": [comparison.effect for comparison in found],
            "low": [interval.low if interval else None for interval in intervals],
            "high": [interval.high if interval else None for interval in intervals],
            "band": [row.band / 100 for row in rows],
            "p adjusted": [comparison.p_adjusted for comparison in found],
            "n": [numbers.n(comparison) for comparison in found],
        },
    )


def _surroundings(found: JudgedReport) -> Section:
    facts = list(_facts(found))
    differing = [fact for fact in facts if fact.differs]
    same = len(facts) - len(differing)
    if not differing:
        return Section(_DIFFERENCES, (Paragraph(f"Nothing: all {same} facts are the same."),))
    columns = (Column("what"), Column("baseline"), Column("contender"))
    rows = tuple((fact.what, fact.old, fact.new) for fact in differing)
    alike = tuple((fact.what, fact.old) for fact in facts if not fact.differs)
    return Section(
        _DIFFERENCES,
        (
            Table(_DIFFERENCES, columns, rows),
            Folded(
                f"{plural(same, 'fact')} that both sides share",
                (Table("What both sides share", (Column("what"), Column("value")), alike),),
            ),
        ),
    )


def _facts(found: JudgedReport) -> Iterator[Fact]:
    left, right = found.baseline, found.contender
    yield Fact("build", left.one_side.build.label, right.one_side.build.label)
    yield from facts_between(left.one_side, right.one_side)
    for what, old, new in zip(
        ("run", "started", "scenario version", "scenario digest", "harness", "harness commit"),
        _of_run(left.run),
        _of_run(right.run),
        strict=True,
    ):
        yield Fact(what, old, new)


def _of_run(run: Run) -> tuple[str, ...]:
    return (
        run.id,
        f"{run.started_at:%Y-%m-%d %H:%M} UTC",
        str(run.scenario.version),
        run.scenario.digest[:12],
        run.harness.version,
        (run.harness.revision or "-")[:13],
    )
