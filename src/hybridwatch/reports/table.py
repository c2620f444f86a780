"""A report on a terminal of 80 to 120 columns, or as plain text: table, footnotes, one sentence."""

from collections.abc import Iterator
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hybridwatch.analysis.pair import summarize
from hybridwatch.analysis.subject import OneSide, Subject, list_subjects
from hybridwatch.analysis.verdict import Comparison, Report, Summary, Verdict, find_line_verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.cause_text import deaths_in
from hybridwatch.analysis.wording.numbers import (
    describe_basis,
    describe_change,
    format_centers,
    name_of,
    plural,
)
from hybridwatch.records.identity import side_names
from hybridwatch.records.run import Run
from hybridwatch.reports import sentence
from hybridwatch.reports.escape import last_lines, one_line
from hybridwatch.reports.reason_text import tradeoff_lines
from hybridwatch.reports.stacked import StackedTable

STYLES: Final = {
    Verdict.REGRESSION: "bold red",
    Verdict.BROKEN: "bold red",
    Verdict.FAILED: "bold red",
    Verdict.MISSING: "bold red",
    Verdict.IMPROVEMENT: "bold green",
    Verdict.EQUIVALENT: "green",
    Verdict.WORSE_WITHIN: "bold yellow",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NOT_COMPARABLE: "magenta",
}
_CONTRACT: Final = "contract."
_NAME_WIDTH: Final = 22
"""Longer names are broken at their dot or space, to leave room for the numbers at 80 columns."""
_LOG_LINES: Final = 8
"""Of the log of an engine that died."""
_FAILURES: Final = 5
"""Failed trials that are listed: an engine that died fails them all."""
_VALUES: Final = 3
"""Of a run of one build, as many are named in a line."""
_WIDE: Final = 120
"""From this many columns on the two sides stand side by side, below it one over the other."""


def print_table(report: Report, console: Console) -> None:
    """Print a report; lines may be wrapped to the console's width, never cut."""
    console.print(Group(*_parts(report, wide=console.width >= _WIDE)))


def print_values(run: Run, console: Console) -> None:
    """Print what a run of one build measured; there is nothing yet to compare it with."""
    side = OneSide(run, 0)
    (name,) = side_names([side.build.label])
    table = StackedTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("metric", overflow="fold")
    for heading in (name, "lowest", "highest", "n"):
        table.add_column(Text(one_line(heading)), justify="right", no_wrap=True)
    for subject, summary in _summaries(side):
        shown = (summary.center, min(summary.values), max(summary.values))
        cells = (numbers.value(number, subject.metric) for number in shown)
        table.add_row(f"{subject.metric.id} {subject.statistic}", *cells, str(summary.n))
    console.print(table)


def values_line(run: Run) -> str:
    """Name the first values of a run of one build; contracts that hold are counted, as the rest."""
    found = list(_summaries(OneSide(run, 0)))
    shown = [
        f"{subject.metric.id} {numbers.value(summary.center, subject.metric)}"
        for subject, summary in found
        if summary.center or not subject.metric.id.startswith(_CONTRACT)
    ]
    holding, more = len(found) - len(shown), len(shown) - _VALUES
    counted = [f"{more} more"] if more > 0 else []
    held = [plural(holding, "contract") + (" holds" if holding == 1 else " hold")]
    return ", ".join([*shown[:_VALUES], *counted, *(held if holding else [])])


def _summaries(side: OneSide) -> Iterator[tuple[Subject, Summary]]:
    for subject in list_subjects(side, side):
        summary = summarize(subject, side)
        if summary is not None:
            yield subject, summary


def heading(report: Report) -> RenderableType:
    """Say what was run and who stands on either side."""
    title = f"{one_line(report.scenario.id)}, version {report.scenario.version}"
    parts: list[RenderableType] = [Text(title, style="bold")]
    sides = (report.baseline, report.contender)
    names = side_names([side.build.label for side in sides])
    places = [f"run {side.run_id} on {side.testbed.id}" for side in sides]
    one_place = places[0] == places[1]
    lines = [places[0]] if one_place else []
    lines += (
        f"{what}: {name}" if one_place else f"{what}: {name} ({place})"
        for what, name, place in zip(("baseline", "contender"), names, places, strict=True)
    )
    return Group(*parts, *(indented(line, "") for line in lines), Text(""))


def indented(line: str, style: str = "dim") -> Padding:
    """Lay out a text from records on a line of its own below a heading."""
    return Padding(Text(one_line(line), style=style), (0, 0, 0, 2), expand=False)


def _parts(report: Report, *, wide: bool) -> Iterator[RenderableType]:
    yield heading(report)
    if report.comparisons:
        yield _table(report, wide=wide)
        yield Text("")
    yield from _listed("", [f"[{at}] {text}" for at, text in enumerate(sentence.notes(report), 1)])
    yield from _listed("Not settled:", sentence.open_questions(report))
    yield from _listed("Judged by:", sentence.rules(report))
    yield from _listed("Differences between the sides:", report.differences)
    labels = [side.build.label for side in (report.baseline, report.contender)]
    named = zip(side_names(labels), labels, strict=True)
    shortened = [f"{name}: {label}" for name, label in named if name != label]
    yield from _listed("In full:", shortened)
    yield from _listed("Failed trials:", sentence.with_rest(report.failures, _FAILURES))
    for death in deaths_in(report):
        lines = last_lines(death.trial.log_tail, _LOG_LINES)
        yield from _listed(f"The end of the engine's log ({death.trial.place}):", lines)
    yield Text(one_line(sentence.headline(report)), style=_overall_style(report))
    if unsure := sentence.unsure(report):
        yield Text(one_line(unsure), style=STYLES[Verdict.INCONCLUSIVE])
    if report.attribution is not None:
        yield Text(sentence.reason(report.attribution))
    if report.tradeoff is not None:
        yield from map(Text, tradeoff_lines(report.tradeoff))


def _table(report: Report, *, wide: bool) -> StackedTable:
    # Narrow, every column counts: a metric's name must not be broken at 80 of them.
    padding = (0, 1) if wide else (0, 1, 0, 0)
    table = StackedTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=padding)
    table.add_column("metric", overflow="fold")
    headings: tuple[str, ...] = ("baseline", "contender", "change", "p adj.", "n")
    if not wide:
        headings = ("baseline\ncontender", "change\ninterval", "p adj.\nn")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    footnotes = {text: number for number, text in enumerate(sentence.notes(report), 1)}
    for comparison in report.comparisons:
        verdict = comparison.verdict
        word = Text(f"{sentence.MARKS[verdict]} {verdict.value}", style=STYLES[verdict])
        if comparison.doubts:
            marks = "".join(f"[{footnotes[text]}]" for text in dict.fromkeys(comparison.doubts))
            word.append(f"\n  {marks}", style="dim")
        cells = _wide_cells(comparison) if wide else _narrow_cells(comparison)
        table.add_row(_broken_name(comparison), *map(Text, cells), word)
    return table


def _wide_cells(comparison: Comparison) -> Iterator[str]:
    yield from format_centers(comparison)
    yield describe_change(comparison)
    yield numbers.p_value(comparison.p_adjusted)
    yield numbers.n(comparison)


def _narrow_cells(comparison: Comparison) -> Iterator[str]:
    yield "\n".join(format_centers(comparison))
    parts = (numbers.change, describe_basis, numbers.interval)
    yield "\n".join(filter(None, (part(comparison) for part in parts)))
    yield f"{numbers.p_value(comparison.p_adjusted)}\n{numbers.n(comparison)}"


def _broken_name(comparison: Comparison) -> Text:
    name = one_line(name_of(comparison))
    if len(name) <= _NAME_WIDTH:
        return Text(name)
    family, dot, member = name.partition(".")
    return Text(f"{family}.\n  {member}" if dot else name.replace(" ", "\n  "))


def _listed(heading: str, lines: tuple[str, ...] | list[str]) -> Iterator[RenderableType]:
    if not lines:
        return
    if heading:
        yield Text(heading, style="bold")
    yield from map(indented, lines)
    yield Text("")


def _overall_style(report: Report) -> str:
    if report.bad_news:
        return STYLES[Verdict.REGRESSION]
    # Green is earned: something improved, or everything is shown to be the same.
    worst = find_line_verdict(report)
    return STYLES[worst if worst.is_good_news else Verdict.INCONCLUSIVE]
