"""Two sides of a scenario, or two builds in every one: the verdict, a picture, and every change.

Laid out to be sent to a reviewer, as https://perf.rust-lang.org/compare.html is: one sentence, the
mean and range of what changed, what changed by its size; what did not change is folded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from hybridwatch.analysis.cause import Area, Cause, causes_in
from hybridwatch.analysis.difference import Fact, facts_between
from hybridwatch.analysis.verdict import ORDER, Comparison, Report, Verdict, find_line_verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.cause_text import cause_text
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.history.judge import JudgedReport
from hybridwatch.history.runs import runs_by_id
from hybridwatch.metrics import Kind
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    Document,
    Facts,
    Filters,
    Folded,
    Line,
    Link,
    Notice,
    Paragraph,
    Section,
    Table,
    plain,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.pair import (
    EVERY_SCENARIO,
    Obstacle,
    PairView,
    choices_of,
    choose,
    choose_builds,
    is_of_builds,
    judged,
    render_lead,
    repeat_section,
)
from hybridwatch.pages.screens.run import (
    changed_answers,
    comparisons_table,
    curve_blocks,
    note_blocks,
    verdict_blocks,
)
from hybridwatch.pages.screens.screen import ScreenSource, broken_in, empty_store
from hybridwatch.records.run import Run
from hybridwatch.reports.figures.forest import build_rows, compute_reach, figure_forest
from hybridwatch.reports.sentence import PROMINENT, notes, summary

_TITLE: Final = "Compare"
_DRAWN: Final = 12
"""Rows of a picture of many scenarios: the largest changes; the table has all."""
_DIFFERENCES: Final = "What differs between the two sides"
"""As ``render_notes`` calls it; here it is a table."""
_CHANGED: Final = "What changed"
_SAME: Final = "What did not change"
_Found = tuple[Comparison, PairView]


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """Compare the two sides of the address, else those of the newest run that has two."""
    if is_of_builds(query):
        return _show_builds(source, query)
    pair = choose(runs_by_id(source.index), query, EVERY_SCENARIO)
    if pair is None:
        return Document(_TITLE, empty_store(source))
    found = judged(source, pair)
    if isinstance(found, Obstacle):
        return Document(_TITLE, (Filters(found.choices), found.notice), lead=render_lead(pair))
    blocks = (*broken_in(source), *_comparison_blocks(pair, found))
    return Document(_TITLE, blocks, lead=render_lead(pair))


def _comparison_blocks(pair: PairView, found: JudgedReport) -> Iterator[Block]:
    report = found.report
    every = [(comparison, pair) for comparison in report.comparisons]
    yield from verdict_blocks(report)
    yield _counts(report.comparisons)
    yield choices_of(pair, found)
    if report.tradeoff is not None:
        yield from curve_blocks(found.contender.run, report.tradeoff)
    yield from _changes(every)
    yield from changed_answers(report)
    yield from note_blocks(report, but=_DIFFERENCES)
    yield _machine_section(found)
    yield repeat_section(pair, found)


def _show_builds(source: ScreenSource, query: ViewQuery) -> Document:
    """Compare two builds in every scenario and on every testbed that measured both."""
    chosen = choose_builds(source.index, query)
    if chosen is None:
        return Document(_TITLE, empty_store(source))
    choices, pairs = chosen
    old, new = choices[1].value, choices[2].value
    lead = f"every scenario \u00b7 {old} \u2192 {new}"
    if old == new:
        same = Notice("Both builds are the same", ("Choose another baseline.",), quiet=True)
        return Document(_TITLE, (Filters(choices), same), lead=lead)
    answers = [(pair, judged(source, pair)) for pair in pairs]
    reports = [(pair, one.report) for pair, one in answers if isinstance(one, JudgedReport)]
    every = [(one, pair) for pair, report in reports for one in report.comparisons]
    refused = tuple(
        f"{pair.place}: {' '.join(map(plain, one.notice.lines))}"
        for pair, one in answers
        if isinstance(one, Obstacle)
    )
    title = f"{plural(len(refused), 'scenario')} cannot be compared"
    blocks = (
        *broken_in(source),
        Paragraph(_sentence(reports)),
        _counts([comparison for comparison, _ in every]),
        Filters(choices),
        *_changes(every, are_many=True),
        *([Notice(title, refused, quiet=True)] if refused else []),
    )
    return Document(_TITLE, blocks, lead=lead)


def _sentence(reports: Sequence[tuple[PairView, Report]]) -> Line:
    """Say in one sentence what two builds differ in over all scenarios."""
    if not reports:
        return "No scenario measured both builds on one testbed."
    verdicts = [find_line_verdict(report) for _, report in reports]
    worst = min(verdicts, key=ORDER.index)
    causes = [(c, report, pair.place) for pair, report in reports for c in causes_in(report)]
    if not causes:
        doubts = dict.fromkeys(note for _, report in reports for note in notes(report))
        return (worst, "  ", summary((), verdicts, " ".join(doubts)))
    cause, report, place = min(causes, key=lambda each: _urgency(each[0]))
    bad = sum(verdict.is_bad_news or verdict is Verdict.WORSE_WITHIN for verdict in verdicts)
    several = len({pair.contender.row.testbed for pair, _ in reports}) > 1
    of = plural(len(reports), "scenario-testbed pair" if several else "scenario")
    start = f"Nothing got worse in {of}" if cause.is_better else f"Worse in {bad} of {of}"
    text = cause_text(cause, report).sentence(f" in {place}")
    return (worst, "  ", f"{start}. Most of all: {text}.")


def _urgency(cause: Cause) -> tuple[bool, int, float]:
    return cause.is_better, list(Area).index(cause.area), -abs(cause.lead.effect or 0)


def _is_changed(comparison: Comparison) -> bool:
    return comparison.verdict in PROMINENT


def _counts(found: Sequence[Comparison]) -> Facts:
    """Count what changed, with mean and range, and what did not."""
    same = sum(one.verdict is Verdict.EQUIVALENT for one in found)
    better = [one for one in found if one.verdict is Verdict.IMPROVEMENT]
    worse = [one for one in found if _is_changed(one) and one.verdict is not Verdict.IMPROVEMENT]
    undecided = len(found) - same - len(better) - len(worse)
    rest = f"{same} within their margins, {undecided} undecided"
    others = f"Of {plural(len(found), 'metric')}, the others", rest
    return Facts((("Got worse", _extent(worse)), ("Got better", _extent(better)), others))


def _extent(found: Sequence[Comparison]) -> str:
    """Say how many changed, and by how much those with a relative change."""
    effects = [one.effect for one in found if one.metric.kind.has_noise]
    sizes = [100 * abs(effect) for effect in effects if effect is not None]
    if not sizes:
        return str(len(found) or "none")
    span = f" in the mean ({min(sizes):.1f} to {max(sizes):.1f} %)" if len(sizes) > 1 else ""
    of_them = f" {len(sizes)} of them" if len(sizes) < len(found) else ""
    return f"{len(found)},{of_them} by {fmean(sizes):.1f} %{span}"


def _order(found: _Found) -> tuple[bool, int, bool, float]:
    """Order changes, worse before better, and the rest by verdict; then by size, none first."""
    comparison, _ = found
    rank = 0 if _is_changed(comparison) else ORDER.index(comparison.verdict)
    sized = comparison.effect is not None and comparison.metric.kind is not Kind.EXACT
    is_better = comparison.verdict is Verdict.IMPROVEMENT
    return is_better, rank, sized, -abs(comparison.effect or 0)


def _changes(found: Sequence[_Found], *, are_many: bool = False) -> Iterator[Block]:
    """Draw and list what changed by its size, and fold the rest."""
    ordered = sorted(found, key=_order)
    changed = [one for one in ordered if _is_changed(one[0])]
    rest = [one for one in ordered if not _is_changed(one[0])]
    for some, title in ((changed, _CHANGED), (rest, _SAME)):
        if not some:
            continue
        wheres = [(pair.contender.row, pair.address) for _, pair in some]
        places = [Cell(Link(at.scenario, to), at.testbed) for at, to in wheres]
        comparisons = [comparison for comparison, _ in some]
        table = comparisons_table(comparisons, title, places if are_many else ())
        forest = _forest(some, title, are_many=are_many)
        if some is rest and changed:
            yield Folded(f"{title} ({len(some)})", (*forest, table))
            continue
        yield from (*forest, table)


def _forest(found: Sequence[_Found], title: str, *, are_many: bool) -> Iterator[Block]:
    rows = [
        replace(row, name=f"{at.scenario} {at.testbed}: {row.name}") if are_many else row
        for comparison, pair in found
        for at in (pair.contender.row,)
        for row in build_rows([comparison])
    ]
    if not rows:
        return
    rest = len(rows[_DRAWN:]) if are_many else 0
    rows = rows[: len(rows) - rest]
    known = [row for row in rows if row.low < row.high]
    inside = sum(max(abs(row.low), abs(row.high)) <= row.band for row in known)
    text = (
        f"{'The largest first. ' if title is _CHANGED else ''}Lines are intervals, marks "
        "effects; grey is the band up to which a change is allowed, and right is better. "
        f"{inside} of {plural(len(known), 'interval')} within the band."
    )
    if worse := sum(row.comparison.verdict is Verdict.WORSE_WITHIN for row in rows):
        text += f" {plural(worse, 'change')} within it known to be for the worse."
    if len(known) < len(rows):
        text += " A mark without a line has too few trials for an interval."
    if cut := sum(row.reach > compute_reach(rows) for row in rows):
        text += f" An arrow goes on beyond the edge ({cut})."
    if rest:
        text += f" {rest} more in the table only."
    comparisons = [row.comparison for row in rows]
    intervals = [comparison.interval for comparison in comparisons]
    heading = f"{title}, against margins"
    yield Chart(
        heading,
        figure_forest(heading, rows),
        text,
        {
            "metric": [row.name for row in rows],
            "verdict": [comparison.verdict.value for comparison in comparisons],
            "change": [comparison.effect for comparison in comparisons],
            "low": [interval.low if interval else None for interval in intervals],
            "high": [interval.high if interval else None for interval in intervals],
            "band": [row.band / 100 for row in rows],
            "p adjusted": [comparison.p_adjusted for comparison in comparisons],
            "n": [numbers.n(comparison) for comparison in comparisons],
        },
    )


def _machine_section(found: JudgedReport) -> Section:
    facts = list(_facts(found))
    differing = [fact for fact in facts if fact.differs]
    same = len(facts) - len(differing)
    if not differing:
        return Section(_DIFFERENCES, (Paragraph(f"Nothing: all {same} facts are the same."),))
    columns = ("what", "baseline", "contender")
    rows = tuple((fact.what, fact.old, fact.new) for fact in differing)
    alike = tuple((fact.what, fact.old) for fact in facts if not fact.differs)
    shared = Table("What both sides share", ("what", "value"), alike)
    rest = Folded(f"{plural(same, 'fact')} that both sides share", (shared,))
    return Section(_DIFFERENCES, (Table(_DIFFERENCES, columns, rows), rest))


def _facts(found: JudgedReport) -> Iterator[Fact]:
    left, right = found.baseline, found.contender
    yield Fact("build", left.one_side.build.label, right.one_side.build.label)
    yield from facts_between(left.one_side, right.one_side)
    names = "run", "started", "scenario version", "scenario digest", "harness", "harness commit"
    yield from map(Fact, names, _of_run(left.run), _of_run(right.run))


def _of_run(run: Run) -> tuple[str, ...]:
    return (
        run.id,
        f"{run.started_at:%Y-%m-%d %H:%M} UTC",
        str(run.scenario.version),
        run.scenario.digest[:12],
        run.harness.version,
        (run.harness.revision or "-")[:13],
    )
