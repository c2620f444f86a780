"""Two sides of a scenario, or two builds in every one: the verdict, a picture, and every change.

Laid out to be sent to a reviewer, as https://perf.rust-lang.org/compare.html is: one sentence, the
mean and range of what changed, what changed by its size; what did not change is folded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from hybridwatch.analysis.cause import Area, causes_in
from hybridwatch.analysis.difference import Fact, facts_between
from hybridwatch.analysis.verdict import ORDER, Comparison, Report, Verdict, find_line_verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.cause_text import cause_text
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.history.judge import JudgedReport
from hybridwatch.history.runs import runs_by_id
from hybridwatch.metrics import Kind
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    Column,
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
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.pair import (
    EVERY_SCENARIO,
    Obstacle,
    PairView,
    choose,
    choose_builds,
    chosen_blocks,
    is_of_builds,
    judged,
    render_lead,
    repeat_section,
)
from hybridwatch.pages.screens.run import changed_answers, comparisons_table, tradeoff_section
from hybridwatch.pages.screens.screen import ScreenSource, broken_in, empty_store
from hybridwatch.records.run import Run
from hybridwatch.reports.figures.forest import build_rows, compute_reach, figure_forest
from hybridwatch.reports.sentence import PROMINENT, headline, notes, reason, render_notes, summary

_TITLE: Final = "Compare"
_DRAWN: Final = 12
"""Rows of a picture of many scenarios: the largest changes; the table has all."""
_DIFFERENCES: Final = "What differs between the two sides"
"""As ``render_notes`` calls it; here it is a table."""
_CHANGED: Final = "What changed"
_ON_PHONE: Final = 5
"""Changes that a phone lists at first."""
_SEVERITY: Final = {area: place for place, area in enumerate(Area)}
_SAME: Final = "What did not change"


@dataclass(frozen=True, slots=True)
class _Found:
    """A comparison, and which sides of which scenario it is of."""

    comparison: Comparison
    pair: PairView

    @property
    def order(self) -> tuple[bool, bool, float]:
        """Worse before better, then what has no size, such as a broken contract, then by size."""
        effect = self.comparison.effect
        sized = effect is not None and self.comparison.metric.kind is not Kind.EXACT
        is_better = self.comparison.verdict is Verdict.IMPROVEMENT
        return is_better, sized, -abs(effect or 0)

    @property
    def is_changed(self) -> bool:
        """Whether it says more than that nothing is known to have changed."""
        return self.comparison.verdict in PROMINENT

    @property
    def place(self) -> Cell:
        """The scenario with its testbed, leading to the comparison of its sides."""
        row, sides = self.pair.contender.row, (self.pair.contender, self.pair.baseline)
        named = dict(zip(("contender", "baseline"), (side.named for side in sides), strict=True))
        view = address("compare", scenario=row.scenario, **named)
        return Cell(Link(row.scenario, view), row.testbed)


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """Compare the two sides of the address, else those of the newest run that has two."""
    if is_of_builds(query):
        return _show_builds(source, query)
    pair = choose(runs_by_id(source.index), query, EVERY_SCENARIO)
    if pair is None:
        return Document(_TITLE, empty_store(source))
    found = judged(source, pair)
    if isinstance(found, Obstacle):
        return Document(_TITLE, (Filters(found.choices), *found.blocks), lead=render_lead(pair))
    blocks = (*broken_in(source), *_comparison_blocks(pair, found))
    return Document(_TITLE, blocks, lead=render_lead(pair))


def _comparison_blocks(pair: PairView, found: JudgedReport) -> Iterator[Block]:
    report = found.report
    every = [_Found(comparison, pair) for comparison in report.comparisons]
    yield Paragraph((find_line_verdict(report), "  ", headline(report)))
    if report.attribution is not None:
        yield Paragraph(reason(report.attribution))
    yield _counts(every)
    yield from chosen_blocks(pair, found)
    if report.tradeoff is not None:
        yield tradeoff_section(report.tradeoff)
    yield from _changes(every)
    yield from changed_answers(report)
    for title, lines in render_notes(report):
        if title != _DIFFERENCES:
            yield Folded(f"{title} ({len(lines)})", tuple(Paragraph(n, quiet=True) for n in lines))
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
    every = [_Found(one, pair) for pair, report in reports for one in report.comparisons]
    refused = [_refusal(pair, one) for pair, one in answers if isinstance(one, Obstacle)]
    title = f"{plural(len(refused), 'scenario')} cannot be compared"
    blocks = (
        *broken_in(source),
        Paragraph(_verdict_line(reports)),
        *([_counts(every)] if every else []),
        Filters(choices),
        *_changes(every, are_many=True),
        *([Notice(title, tuple(refused), quiet=True)] if refused else []),
    )
    return Document(_TITLE, blocks, lead=lead)


def _refusal(pair: PairView, found: Obstacle) -> str:
    notices = [block for block in found.blocks if isinstance(block, Notice)]
    row = pair.contender.row
    return f"{row.scenario} on {row.testbed}: {'; '.join(map(_notice_text, notices))}"


def _notice_text(notice: Notice) -> str:
    return " ".join(str(line) for line in notice.lines) or notice.title


def _verdict_line(reports: Sequence[tuple[PairView, Report]]) -> Line:
    """Say in one sentence what two builds differ in over all scenarios."""
    if not reports:
        return "No scenario measured both builds on one testbed."
    verdicts = [find_line_verdict(report) for _, report in reports]
    causes = [
        (cause.is_better, _SEVERITY[cause.area], -abs(cause.lead.effect or 0), nth, cause)
        for nth, (_, report) in enumerate(reports)
        for cause in causes_in(report)
    ]
    worst = min(verdicts, key=ORDER.index)
    several = len({pair.contender.row.testbed for pair, _ in reports}) > 1
    of = plural(len(reports), "scenario-testbed pair" if several else "scenario")
    if not causes:
        doubts = dict.fromkeys(note for _, report in reports for note in notes(report))
        return (worst, "  ", summary((), verdicts, " ".join(doubts)))
    is_better, _, _, nth, cause = min(causes, key=lambda each: each[:3])
    row, report = reports[nth][0].contender.row, reports[nth][1]
    text = cause_text(cause, report).sentence(f" in {row.scenario} on {row.testbed}")
    bad = sum(verdict.is_bad_news or verdict is Verdict.WORSE_WITHIN for verdict in verdicts)
    start = f"Nothing got worse in {of}" if is_better else f"Worse in {bad} of {of}"
    return (worst, "  ", f"{start}. Most of all: {text}.")


def _counts(found: Sequence[_Found]) -> Facts:
    """Count what changed, with mean and range, and what did not."""
    same = [one for one in found if one.comparison.verdict is Verdict.EQUIVALENT]
    better = [one for one in found if one.comparison.verdict is Verdict.IMPROVEMENT]
    worse = [one for one in found if one.is_changed and one not in better]
    undecided = len(found) - len(same) - len(better) - len(worse)
    rows = {"Got worse": _extent(worse), "Got better": _extent(better)}
    rest = f"{len(same)} within their margins, {undecided} undecided"
    return Facts((*rows.items(), (f"Of {plural(len(found), 'metric')}, the others", rest)))


def _extent(found: Sequence[_Found]) -> str:
    """Say how many changed, and by how much those with a relative change."""
    relative = [one.comparison for one in found if one.comparison.metric.kind.has_noise]
    sizes = [100 * abs(one.effect) for one in relative if one.effect is not None]
    if not sizes:
        return str(len(found) or "none")
    span = f" ({min(sizes):.1f} to {max(sizes):.1f} %)" if len(sizes) > 1 else ""
    return f"{len(found)}, by {fmean(sizes):.1f} %{' in the mean' if span else ''}{span}"


def _changes(found: Sequence[_Found], *, are_many: bool = False) -> Iterator[Block]:
    """Draw and list what changed by its size, and fold the rest."""
    ordered = sorted(found, key=lambda one: one.order)
    changed = [one for one in ordered if one.is_changed]
    rest = sorted(
        (one for one in ordered if not one.is_changed),
        key=lambda one: ORDER.index(one.comparison.verdict),
    )
    for some, title in ((changed, _CHANGED), (rest, _SAME)):
        if not some:
            continue
        places = [one.place for one in some] if are_many else []
        table = comparisons_table([one.comparison for one in some], title, places)
        blocks: tuple[Block, ...] = (*_forest(some, title, are_many=are_many), table)
        is_open = some is changed or not changed
        if not is_open:
            blocks = (Folded(f"{title} ({len(some)})", blocks),)
        elif len(some) > _ON_PHONE:
            kept = replace(table, first=_ON_PHONE)
            blocks = (*blocks[:-1], kept, Folded(f"All {len(some)} rows", (), on_phone=True))
        yield from blocks


def _forest(found: Sequence[_Found], title: str, *, are_many: bool) -> Iterator[Block]:
    rows = build_rows([one.comparison for one in found])
    if not rows:
        return
    if are_many:
        names = {id(one.comparison): one.pair.contender.row for one in found}
        wheres = (names[id(row.comparison)] for row in rows)
        named = (f"{at.scenario} {at.testbed}: " for at in wheres)
        rows = [replace(row, name=at + row.name) for row, at in zip(rows, named, strict=True)]
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
    columns = (Column("what"), Column("baseline"), Column("contender"))
    rows = tuple((fact.what, fact.old, fact.new) for fact in differing)
    alike = tuple((fact.what, fact.old) for fact in facts if not fact.differs)
    shared = Table("What both sides share", (Column("what"), Column("value")), alike)
    rest = Folded(f"{plural(same, 'fact')} that both sides share", (shared,))
    return Section(_DIFFERENCES, (Table(_DIFFERENCES, columns, rows), rest))


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
