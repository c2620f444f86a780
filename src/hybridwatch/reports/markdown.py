"""A report as a pull request comment: verdict first, the rest folded away.

Every text that comes from a record passes through ``escape``.
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import Final

from hybridwatch.analysis.verdict import Comparison, Flip, Report, Side, Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.cause_text import deaths_in
from hybridwatch.analysis.wording.labels import describe_change, format_centers, name_of, plural
from hybridwatch.records.side_names import side_names
from hybridwatch.reports import sentence
from hybridwatch.reports.cause_rows import cell, render_differences, render_log
from hybridwatch.reports.escape import as_code, as_item, escape, fenced, in_html
from hybridwatch.reports.tradeoff_text import tradeoff_lines

_SHOWN_FLIPS: Final = 5
_SHOWN_LINES: Final = 20
"""Hosts cut a comment at 65,536 characters; a list beyond this says how much it leaves out."""
_PROMINENT: Final = frozenset({Verdict.IMPROVEMENT, *(one for one in Verdict if one.is_bad_news)})
_HEADING: Final = (
    "| | metric | baseline | contender | change (95 % interval) | p adj. | n | verdict |\n"
    "|-|-|-:|-:|-:|-:|-:|-|"
)


def render_comment(report: Report, *, with_log: bool = True) -> str:
    """Write the comment as GitHub-flavoured Markdown that ends in a newline.

    ``with_log`` shows the end of the log of an engine that died.
    """
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
        f"{_code(report.scenario.id)}: {_code(baseline)} (baseline) against "
        f"{_code(contender)} (contender)"
    )
    if with_log:
        yield from map(render_log, deaths_in(report))
    yield _folded(f"Failed trials ({len(report.failures)})", _bullets(report.failures))
    prominent = [c for c in report.comparisons if c.verdict in _PROMINENT]
    rest = [c for c in report.comparisons if c.verdict not in _PROMINENT]
    yield _table(prominent)
    which = "Other" if prominent else "All"
    yield _folded(f"{which} comparisons ({len(rest)})", _table(rest))
    yield from _flips(report)
    yield _folded("Not settled", _bullets(sentence.open_questions(report)))
    yield _folded("How it was judged", _bullets(sentence.rules(report)))
    yield _titled("Doubts", _bullets(_doubts(report)))
    yield _titled("Differences between the sides", _listed(render_differences(report)))
    yield f"**Next:** measure both again{sentence.place_to_repeat([report])}, interleaved:"
    yield fenced(sentence.repeat_command(report))
    yield _footer(report)


def _table(comparisons: list[Comparison]) -> str:
    if not comparisons:
        return ""
    return "\n".join([_HEADING, *map(_row, comparisons)])


def _row(comparison: Comparison) -> str:
    cells = (
        sentence.MARKS[comparison.verdict],
        _code(name_of(comparison)),
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
            yield _folded(title, shown + left_out)


def _flip(flip: Flip) -> str:
    way = "lost" if flip.baseline.correct else "won"
    # The question stands at the end of a prompt; what comes first is often the same everywhere.
    prompt = flip.baseline.prompt
    shown = prompt if len(prompt) <= 200 else "\u2026" + prompt[-200:]
    return (
        f"- document {flip.baseline.doc_id} ({way}): {_code(shown)}; "
        f"expected {_code(flip.baseline.target)}, baseline {_code(flip.baseline.response)}, "
        f"contender {_code(flip.contender.response)}"
    )


def _folded(title: str, body: str) -> str:
    if not body:
        return ""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _titled(title: str, items: str) -> str:
    return f"**{title}**\n\n{items}" if items else ""


def _bullets(lines: Iterable[str]) -> str:
    return _listed(list(map(as_item, lines)))


def _listed(items: Sequence[str]) -> str:
    more = len(items) - _SHOWN_LINES
    return "\n".join([*items[:_SHOWN_LINES], *([f"- and {more} more"] if more > 0 else [])])


def _footer(report: Report) -> str:
    sides = (("baseline", report.baseline), ("contender", report.contender))
    words = "; ".join(f"{name} {_identity(side)}" for name, side in sides)
    tests, rate = plural(report.tests, "test"), report.false_discovery_rate
    if len(report.families) > 1:
        tests += f" in {len(report.families)} families, each"
    return (
        f"<sub>hybridwatch {escape(version('hybridwatch'))}; {words}; "
        f"{tests} at a level of {rate:g}</sub>"
    )


def _identity(side: Side) -> str:
    return escape(
        f"run {side.run_id}, {side.build.distribution} {side.build.release}, {side.testbed.id}"
    )


def _code(text: str) -> str:
    return as_code(text)
