"""A report as a pull request comment, and the causes of a change as the few rows met first.

What has two numbers is a row of a table, what has none a sentence. Every text that comes from a
record passes through ``escape``.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from hybridwatch.analysis.cause import Area, Cause
from hybridwatch.analysis.change_review import ChangeReview, Found
from hybridwatch.analysis.difference import find_commits
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Comparison, Flip, Report
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.cause_text import (
    Death,
    cause_text,
    count_others,
    deaths_in,
    find_death,
    name_of_part,
)
from hybridwatch.analysis.wording.numbers import describe_change, format_centers, name_of, plural
from hybridwatch.records.identity import side_names
from hybridwatch.reports import sentence
from hybridwatch.reports.escape import as_code, as_item, escape, fenced, fenced_lines, in_html
from hybridwatch.reports.reason_text import tradeoff_lines
from hybridwatch.reports.sentence import MARKS, PROMINENT, headline

_SHOWN_FLIPS: Final = 5
_SHOWN_LINES: Final = 20
"""Hosts cut a comment at 65,536 characters; a list beyond this says how much it leaves out."""
_HEADING: Final = (
    "| | metric | baseline | contender | change (95 % interval) | p adj. | n | verdict |\n"
    "|-|-|-:|-:|-:|-:|-:|-|"
)
SHOWN: Final = 5
"""Rows before the fold: as many as a tired reader takes in."""
LOG_LINES: Final = 20
"""Of the end of an engine's log."""
_LONGEST_NAME: Final = 100
_NAMED: Final = 5
_SENTENCES: Final = frozenset({Area.ENGINE, Area.MEASUREMENT})
_STOPS, _WARNS, _LEFT_OUT, _BETTER = range(4)
_ACTIONS: Final = {Action.BLOCK: "stops", Action.WARN: "warns", Action.WATCH: ""}


def render_comment(report: Report, *, with_log: bool = True) -> str:
    """Write the comment as Markdown; ``with_log``, with the end of a dead engine's log."""
    return "\n\n".join(part for part in _parts(report, with_log=with_log) if part) + "\n"


def _parts(report: Report, *, with_log: bool) -> Iterator[str]:
    yield f"**{escape(sentence.headline(report), 1000)}**"
    yield escape(sentence.unsure(report), 1000)
    if report.attribution is not None:
        yield escape(sentence.reason(report.attribution))
    if report.tradeoff is not None:
        yield from map(escape, tradeoff_lines(report.tradeoff))
    labels = [side.build.label for side in (report.baseline, report.contender)]
    baseline, contender = side_names(labels)  # in full in the command below
    yield (
        f"{as_code(report.scenario.id)}: {as_code(baseline)} (baseline) against "
        f"{as_code(contender)} (contender)"
    )
    if with_log:
        yield from map(render_log, deaths_in(report))
    yield folded(f"Failed trials ({len(report.failures)})", _bullets(report.failures))
    prominent = [c for c in report.comparisons if c.verdict in PROMINENT]
    rest = [c for c in report.comparisons if c.verdict not in PROMINENT]
    yield _table(prominent)
    which = "Other" if prominent else "All"
    yield folded(f"{which} comparisons ({len(rest)})", _table(rest))
    yield from _flips(report)
    yield folded("Not settled", _bullets(sentence.open_questions(report)))
    yield folded("How it was judged", _bullets(sentence.rules(report)))
    for title, items in (
        ("Doubts", _bullets(_doubts(report))),
        ("Differences between the sides", _listed(render_differences(report))),
    ):
        yield f"**{title}**\n\n{items}" if items else ""
    yield f"**Next:** measure both again{sentence.place_to_repeat([report])}, interleaved:"
    yield fenced(sentence.repeat_command(report))
    yield _footer(report)


def _table(comparisons: list[Comparison]) -> str:
    return "\n".join([_HEADING, *map(_row, comparisons)]) if comparisons else ""


def _row(comparison: Comparison) -> str:
    cells = (
        sentence.MARKS[comparison.verdict],
        as_code(name_of(comparison)),
        *map(cell, format_centers(comparison)),
        cell(describe_change(comparison)),
        cell(numbers.p_value(comparison.p_adjusted)),
        numbers.n(comparison),
        comparison.verdict.value,
    )
    return f"| {' | '.join(cells)} |"


def _doubts(report: Report) -> Iterator[str]:
    for note in sentence.notes(report):
        meant = [name_of(c) for c in report.comparisons if note in c.doubts]
        # A doubt about everything needs no list of names.
        words = "" if len(meant) == len(report.comparisons) else f" ({', '.join(meant)})"
        yield note + words


def _flips(report: Report) -> Iterator[str]:
    for comparison in report.comparisons:
        flips = comparison.flips
        if flips:
            shown = "\n".join(map(_flip, flips[:_SHOWN_FLIPS]))
            more = len(flips) - _SHOWN_FLIPS
            left_out = f"\n\n{more} more in the JSON report." if more > 0 else ""
            title = f"Answers that flipped in {in_html(comparison.metric.id)} ({len(flips)})"
            yield folded(title, shown + left_out)


def _flip(flip: Flip) -> str:
    way = "lost" if flip.baseline.correct else "won"
    # The question stands at the end of a prompt; what comes first is often the same everywhere.
    prompt = flip.baseline.prompt
    shown = prompt if len(prompt) <= 200 else "\u2026" + prompt[-200:]
    return (
        f"- document {flip.baseline.doc_id} ({way}): {as_code(shown)}; "
        f"expected {as_code(flip.baseline.target)}, baseline {as_code(flip.baseline.response)}, "
        f"contender {as_code(flip.contender.response)}"
    )


def folded(title: str, body: str) -> str:
    """Write a part that opens on a click, with a title in HTML; nothing without a body."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>" if body else ""


def _bullets(lines: Iterable[str]) -> str:
    return _listed(list(map(as_item, lines)))


def _listed(items: Sequence[str]) -> str:
    return "\n".join(sentence.with_rest(items, _SHOWN_LINES, "- and "))


def _footer(report: Report) -> str:
    sides = (("baseline", report.baseline), ("contender", report.contender))
    texts = {
        name: f"run {side.run_id}, {side.build.distribution} {side.build.release}, "
        f"{side.testbed.id}"
        for name, side in sides
    }
    words = "; ".join(f"{name} {escape(text)}" for name, text in texts.items())
    tests, rate = plural(report.tests, "test"), report.false_discovery_rate
    if len(report.families) > 1:
        tests += f" in {len(report.families)} families, each"
    return (
        f"<sub>hybridwatch {escape(version('hybridwatch'))}; {words}; "
        f"{tests} at a level of {rate:g}</sub>"
    )


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One line of what a change review says: a plain sentence, or empty for a row of the table."""

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


def is_many(findings: ChangeReview) -> bool:
    """Whether it is about several scenarios, so that each has to be named."""
    return len(findings.reports) + len(findings.absent) > 1


def build_rows(findings: ChangeReview) -> tuple[CauseRow, ...]:
    """List everything there is to tell: what stops, what warns, what was left out, what is better.

    Of each group comes the first before any second, so that no group hides another.
    """
    many = is_many(findings)
    groups = [
        [CauseRow(f"{one.place}: not judged: {one.reason}") for one in findings.absent],
        *([_cause_row(found, many=many) for found in group] for group in grouped(findings)),
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
    many = is_many(findings)
    sentences = "\n".join(as_item(row.sentence) for row in shown if row.sentence)
    table = _causes_table([row.found for row in shown if row.found and not row.sentence], many=many)
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
    lines = fenced_lines(death.trial.log_tail, LOG_LINES)
    return folded(f"The end of the engine's log ({where})", lines)


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


def _cause_row(found: Found, *, many: bool) -> CauseRow:
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
        compared = part.comparison
        known = compared and compared.baseline and format_centers(compared)[0]
        named.setdefault(part.metric, f"{part.metric} (was {known})" if known else part.metric)
    yield from sentence.with_rest(list(named.values()), _NAMED, "")


def _causes_table(found: Sequence[Found], *, many: bool) -> str:
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
