"""The causes of a change as the few rows that a reader of a pull request meets first.

What has two numbers is a row of a table; what has none (a dead engine, a metric that is missing, a
scenario without a record) is a sentence, so that no cell is empty of meaning.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hybridwatch.analysis.cause import Area, Cause
from hybridwatch.analysis.change_review import ChangeReview, Found
from hybridwatch.analysis.difference import find_commits
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Comparison, Report
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.cause_text import (
    Death,
    cause_text,
    count_others,
    deaths_in,
    find_death,
    name_of_part,
)
from hybridwatch.analysis.wording.labels import describe_change, format_centers, plural
from hybridwatch.reports.escape import as_code, as_item, escape, fenced_lines, in_html
from hybridwatch.reports.sentence import MARKS, headline

SHOWN: Final = 5
"""Rows before the fold: as many as a tired reader takes in."""
LOG_LINES: Final = 20
"""Of the end of an engine's log."""

_LONGEST_NAME: Final = 100
_NAMED: Final = 5
_SENTENCES: Final = frozenset({Area.ENGINE, Area.MEASUREMENT})
_STOPS, _WARNS, _LEFT_OUT, _BETTER = range(4)
_ACTIONS: Final = {Action.BLOCK: "stops", Action.WARN: "warns", Action.WATCH: ""}


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One line of what a change review says.

    Attributes:
        sentence: Plain text; empty for a row of the table.
    """

    sentence: str
    found: Found | None = None

    @property
    def is_better(self) -> bool:
        """Whether it is good news."""
        return self.found is not None and self.found.cause.is_better


def grouped(findings: ChangeReview) -> tuple[tuple[Found, ...], ...]:
    """Put causes of one kind together, whatever the scenario.

    What got worse comes before what got better, the most severe kind first; within a group what the
    gate stops before what it warns of, then the larger change.
    """
    places = {area: place for place, area in enumerate(Area)}
    groups: defaultdict[tuple[bool, int, str], list[Found]] = defaultdict(list)
    for found in findings.causes:
        cause = found.cause
        # In words, since "it died" and "it hung", or "slower" and "fewer drafts", are two things.
        what = cause_text(cause, found.report).what
        groups[cause.is_better, places[cause.area], what].append(found)
    return tuple(tuple(sorted(groups[key], key=_weight)) for key in sorted(groups))


def build_rows(findings: ChangeReview) -> tuple[CauseRow, ...]:
    """List everything there is to tell: what stops, what warns, what was left out, what is better.

    Of each group comes the first before any second, so that no group hides another.
    """
    many = len(findings.reports) + len(findings.absent) > 1
    groups = [
        [CauseRow(f"{one.place}: not judged: {one.reason}") for one in findings.absent],
        *([_row(found, many=many) for found in group] for group in grouped(findings)),
        [
            CauseRow(f"{findings.name_of(report)}: {headline(report)}")
            for report in findings.incomparable
        ],
    ]
    numbered = [
        (_urgency(row), at, place, row)
        for place, rows in enumerate(groups)
        for at, row in enumerate(rows)
    ]
    numbered += [
        (_LEFT_OUT, at, 0, CauseRow(f"{one.place}: left out: {one.reason}"))
        for at, one in enumerate(findings.left_out)
    ]
    return tuple(row for *_, row in sorted(numbered, key=lambda item: item[:3]))


def _urgency(row: CauseRow) -> int:
    if row.found is None:
        return _STOPS
    if row.is_better:
        return _BETTER
    return _STOPS if row.found.cause.action is Action.BLOCK else _WARNS


def render_rows(findings: ChangeReview) -> str:
    """Write the first rows as Markdown: sentences, then a table, then how many more there are."""
    rows = build_rows(findings)
    shown = rows[:SHOWN]
    many = len(findings.reports) + len(findings.absent) > 1
    sentences = "\n".join(as_item(row.sentence) for row in shown if row.sentence)
    table = _table([row.found for row in shown if row.found and not row.sentence], many=many)
    left = len(rows) - len(shown)
    more = f"and {left} more, in the reports below" if left else ""
    return "\n\n".join(filter(None, (sentences, table, more)))


def first_death(findings: ChangeReview) -> tuple[Report, Death] | None:
    """Find the first failure of an engine that left a log."""
    found = ((report, death) for report in findings.reports for death in deaths_in(report))
    return next(found, None)


def render_log(death: Death, place: str = "") -> str:
    """Write the end of an engine's log as Markdown, folded."""
    where = in_html(f"{place}, {death.trial.place}" if place else death.trial.place)
    summary = f"<summary>The end of the engine's log ({where})</summary>"
    return f"<details>{summary}\n\n{fenced_lines(death.trial.log_tail, LOG_LINES)}\n\n</details>"


def render_differences(report: Report) -> list[str]:
    """Write what differs between the sides as items of a list, the range of commits first."""
    commits = find_commits(report.baseline.build, report.contender.build)
    items = list(map(as_item, report.differences))
    if commits is None:
        return items
    name = code(commits.text)
    return [
        f"- commits: {f'[{name}]({commits.url})' if commits.url else name}{commits.size}",
        *items,
    ]


def code(text: str) -> str:
    """Write a name from a record as code."""
    return as_code(text, _LONGEST_NAME)


def _weight(found: Found) -> tuple[int, float]:
    lead, actions = found.cause.lead, tuple(_ACTIONS)
    return actions.index(found.cause.action), -abs(lead.effect or 0.0)


def _row(found: Found, *, many: bool) -> CauseRow:
    cause, compared = found.cause, found.cause.lead.comparison
    if cause.area not in _SENTENCES and compared is not None:
        return CauseRow("", found)
    place = f"{found.place}: " if many else ""
    return CauseRow(f"{place}{_sentence(found, many=many)}", found)


def _sentence(found: Found, *, many: bool) -> str:
    cause, report = found.cause, found.report
    if cause.area is Area.MEASUREMENT:
        return f"Not measured: {', '.join(_lost(cause))}"
    death = find_death(report, cause)
    if death is None or many:
        return cause_text(cause, report).sentence()
    # The first line has said the root of it; here stands what was seen from outside.
    seen = f"{death.trial.place}: {death.trial.reason}"
    more = death.trials - 1
    return f"{seen} (and {plural(more, 'more failed trial')})" if more else seen


def _lost(cause: Cause) -> Iterator[str]:
    """Each metric once, with what it was before."""
    named: dict[str, str] = {}
    for part in cause.parts:
        named.setdefault(part.metric, _before(part.comparison))
    for metric in list(named)[:_NAMED]:
        yield f"{metric}{named[metric]}"
    if len(named) > _NAMED:
        yield f"{len(named) - _NAMED} more"


def _before(comparison: Comparison | None) -> str:
    if comparison is None or comparison.baseline is None:
        return ""
    return f" (was {format_centers(comparison)[0]})"


def _table(found: Sequence[Found], *, many: bool) -> str:
    if not found:
        return ""
    names = ["", "what", "metric", "baseline", "contender", "change (95 % interval)", "n", "gate"]
    lines = ["-", "-", "-", "-:", "-:", "-:", "-:", "-"]
    if many:
        names.insert(1, "scenario")
        lines.insert(1, "-")
    rows = [_cells(one, many=many) for one in found]
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, lines, *rows))


def _cells(found: Found, *, many: bool) -> list[str]:
    cause, lead = found.cause, found.cause.lead
    if lead.comparison is None:
        raise ValueError("a row of the table has a comparison")
    others = count_others(cause)
    return [
        MARKS[lead.verdict],
        *([code(found.place)] if many else []),
        cause_text(cause).what,
        code(name_of_part(lead)) + (f" and {others} more" if others else ""),
        *(map(cell, format_centers(lead.comparison))),
        cell(describe_change(lead.comparison)),
        numbers.n(lead.comparison),
        _ACTIONS[cause.action],
    ]


def cell(text: str) -> str:
    """Write a number into a cell of a table; one that does not exist leaves the cell empty."""
    return "" if text == numbers.ABSENT else escape(text)
