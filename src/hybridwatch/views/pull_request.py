"""Everything that was found out about a change as one comment on its pull request.

The verdict first, then what failed or is missing, then the gated changes; each scenario's own
report (``markdown``) is folded away below. As there, text from records passes through ``escape``.

The last line is a hidden marker. By it the comment is found again, and it says what kind of news
the comment told, so that its successor can say whether that is over.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from importlib.metadata import version
from typing import Final

from hybridwatch.analysis.findings import Absent, Findings, Told
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Report, Side, Verdict
from hybridwatch.views import numbers, sentence
from hybridwatch.views.escape import as_item, escape, fenced, in_html
from hybridwatch.views.markdown import render_comment
from hybridwatch.views.page import Page, Part, page_of

LIMIT: Final = 65_535
"""GitHub takes 65,536 characters in a comment, and one less in the summary of a check. Counted in
bytes here: never fewer than characters, however these are counted there."""
SUMMARY_LIMIT: Final = 1_000_000
"""GitHub takes 1 MiB in the summary of a step."""

_NAMED: Final = 4
_ROWS: Final = 40
_LINES: Final = 20
_REASONS: Final = 3
_COMMANDS: Final = 3
_LONGEST_NAME: Final = 100

_RANK: Final = {verdict: place for place, verdict in enumerate(sentence.MARKS)}
_ACTIONS: Final = {Action.BLOCK: "stops", Action.WARN: "warns", Action.WATCH: ""}


class News(Enum):
    """What a comment told."""

    BAD = "bad"
    GOOD = "good"
    RECOVERED = "recovered"
    """Bad news before, none any more."""
    GONE = "gone"
    """Good news before, none any more."""

    @property
    def over(self) -> "News":
        """What there is to tell once this is no longer seen."""
        return News.RECOVERED if self in {News.BAD, News.RECOVERED} else News.GONE


_FAREWELLS: Final = {
    News.RECOVERED: "**Recovered: the bad news told here before is no longer seen.**",
    News.GONE: "**The improvement told here before is no longer seen.**",
}
_MARKER: Final = re.compile(r"<!-- hybridwatch: (\w+) -->\s*\Z")


def news_in(body: str) -> News | None:
    """Say what a comment told; ``None`` for one that is not ours."""
    found = _MARKER.search(body)
    return News(found[1]) if found and found[1] in {news.value for news in News} else None


def render(findings: Findings, before: News | None = None, limit: int = LIMIT) -> Page:
    """Write the comment.

    Args:
        findings: What there is to tell.
        before: What the comment that stands there now tells, if there is one.
        limit: Bytes that the text may have; parts that do not fit are named instead.
    """
    if findings.has_news:
        news = News.GOOD if findings.gate.passed and not findings.gate.warnings else News.BAD
    else:
        news = News.GONE if before is None else before.over
    farewell = "" if before is None or findings.has_news else _FAREWELLS[news]
    parts = [Part(farewell, "", 0), *_parts(findings)]
    return page_of(parts, f"<!-- hybridwatch: {news.value} -->\n", limit)


def title_of(findings: Findings) -> str:
    """Say in one plain line what was found."""
    return _sentence(findings)


def _parts(findings: Findings) -> Iterator[Part]:
    bad = sorted((told for told in findings.gated if told.is_bad), key=_rank)
    better = [told for told in findings.gated if told.is_better]
    many = len(findings.reports) + len(findings.absent) > 1
    yield Part(f"**{escape(_sentence(findings), 1000)}**", "the verdict", 0)
    yield Part(_bullets(_losses(findings, bad, many=many)), "what failed or is missing", 1)
    yield Part(_table(findings, [*bad, *better], many=many), "the table of changes", 2)
    for report in sorted(findings.reports, key=lambda report: _worst(report, bad)):
        yield _folded(report, findings.name_of(report))
    yield Part(_next_steps(findings, bad), "what to do next", 1)
    yield Part(_measured(findings.reports, many=many), "what was measured", 3)
    yield Part(_footer(findings.reports), "the footer", 1)


def _sentence(findings: Findings) -> str:
    told = findings.gated
    bad = sorted((one for one in told if one.is_bad), key=_rank)
    better = [one for one in told if one.is_better]
    named = _named(findings, [*bad, *better])
    counted = _counts(findings)
    result = findings.gate
    if bad or findings.absent:
        regressed = any(one.comparison.verdict is Verdict.REGRESSION for one in bad)
        word = "Mixed" if regressed and better else "Bad news"
        absent = _not_judged(findings)
        end = "the gate only warns" if result.passed else "the gate stops this"
        return f"{word}: {'; '.join(filter(None, (absent, named, counted, end)))}."
    if not result.passed:
        return f"Not comparable, so the gate stops this: {counted or 'nothing was measured'}."
    if better:
        return f"Improved, nothing regressed: {named}; {counted}."
    if all(one.comparison.verdict is Verdict.EQUIVALENT for one in told):
        return f"Equivalent, all within the margins: {counted}."
    return f"No regression shown, but not all settled: {counted}."


def _not_judged(findings: Findings) -> str:
    number = len(findings.absent)
    return f"{sentence.plural(number, 'scenario')} not judged" if number else ""


def _named(findings: Findings, told: Sequence[Told]) -> str:
    said = []
    for one in told[:_NAMED]:
        place = f"{findings.name_of(one.report)} " if len(findings.reports) > 1 else ""
        change = f" ({numbers.change(one.comparison)})" if one.comparison.effect else ""
        name, verdict = sentence.name_of(one.comparison), one.comparison.verdict.value
        said.append(f"{place}{name} {verdict}{change}")
    return " ".join([", ".join(said), *_more(told, _NAMED)])


def _counts(findings: Findings) -> str:
    found = [one.comparison.verdict for one in findings.gated]
    if not found:
        return ""
    place = sentence.plural(len(findings.reports), "scenario")
    return f"{_tally(found)} of {sentence.plural(len(found), 'gated comparison')} in {place}"


def _tally(verdicts: Iterable[Verdict]) -> str:
    found = Counter(verdicts)
    return ", ".join(
        sentence.plural(found[verdict], verdict.value)
        if verdict in {Verdict.REGRESSION, Verdict.IMPROVEMENT}
        else f"{found[verdict]} {verdict.value}"
        for verdict in Verdict
        if found[verdict]
    )


def _losses(findings: Findings, bad: Sequence[Told], *, many: bool) -> Iterator[str]:
    for one in findings.absent:
        yield f"{one.place}: not judged: {one.reason}"
    for one in findings.left_out:
        yield f"{one.place}: left out: {one.reason}"
    for told in bad:
        comparison = told.comparison
        if comparison.verdict in {Verdict.FAILED, Verdict.MISSING}:
            place = f"{findings.name_of(told.report)}: " if many else ""
            newly = "newly " if comparison.baseline is not None else ""
            old, new = sentence.centers_of(comparison)
            said = f"{newly}{comparison.verdict.value}, {old} -> {new}"
            yield f"{place}{sentence.name_of(comparison)}: {said}"
    for report in findings.reports:
        if any(c.verdict is Verdict.FAILED for c in report.comparisons):
            place = f"{findings.name_of(report)}: " if many else ""
            yield from (f"{place}{reason}" for reason in report.failures[:_REASONS])
    for report in findings.incomparable:
        yield f"{findings.name_of(report)}: {sentence.headline(report)}"


def _table(findings: Findings, told: Sequence[Told], *, many: bool) -> str:
    if not told:
        return ""
    names = [
        "",
        "metric",
        "baseline",
        "contender",
        "change (95 % interval)",
        "n",
        "verdict",
        "gate",
    ]
    lines = ["-", "-", "-:", "-:", "-:", "-:", "-", "-"]
    if many:
        names.insert(1, "scenario")
        lines.insert(1, "-")
    rows = [_cells(one, findings.name_of(one.report) if many else "") for one in told[:_ROWS]]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (names, lines, *rows))
    return "\n\n".join([table, *_more(told, _ROWS)])


def _cells(told: Told, name: str) -> list[str]:
    comparison = told.comparison
    return [
        sentence.MARKS[comparison.verdict],
        *([_code(name)] if name else []),
        _code(sentence.name_of(comparison)),
        *map(escape, sentence.centers_of(comparison)),
        escape(sentence.change_of(comparison)),
        numbers.n(comparison),
        comparison.verdict.value,
        _ACTIONS[told.action],
    ]


def _folded(report: Report, place: str) -> Part:
    name = in_html(place, _LONGEST_NAME)
    tally = _tally(comparison.verdict for comparison in report.comparisons) or "no measurement"
    summary = f"<summary>Report on <code>{name}</code>: {tally}</summary>"
    text = f"<details>{summary}\n\n{render_comment(report).rstrip()}\n\n</details>"
    return Part(text, f"the report on {_code(place)}", 4)


def _next_steps(findings: Findings, bad: Sequence[Told]) -> str:
    moved = [*dict.fromkeys(told.report.scenario.id for told in bad)]
    open_ones = {*moved, *(report.scenario.id for report in findings.incomparable)}
    again = [report for report in findings.reports if report.scenario.id in open_ones]
    if again or findings.absent:
        hint = "**Next:** measure this again, interleaved, on one machine; what stays is real:"
    else:
        again = list(findings.reports)
        hint = "**Next:** nothing has to be done. To see it again, interleaved:"
    commands = [_first_run(one, findings.reports) for one in findings.absent if one.scenario]
    commands += map(sentence.repeat_command, again)
    return "\n\n".join([hint, *map(fenced, commands[:_COMMANDS]), *_more(commands, _COMMANDS)])


def _first_run(absent: Absent, reports: Sequence[Report]) -> str:
    words = ["hybridwatch", "run", absent.scenario]
    for side in (reports[0].baseline, reports[0].contender) if reports else ():
        words += ["--build", side.build.label]
    return shlex.join(words)


def _more(items: Sequence[object], shown: int) -> list[str]:
    more = len(items) - shown
    return [f"and {more} more"] if more > 0 else []


def _measured(reports: Sequence[Report], *, many: bool) -> str:
    groups: dict[tuple[str, ...], list[str]] = {}
    for report in reports:
        lines = (_sides(report), *map(as_item, report.differences[:_LINES]))
        more = (f"- {rest}" for rest in _more(report.differences, _LINES))
        groups.setdefault((*lines, *more), []).append(report.scenario.id)
    told = []
    for (sides, *differences), scenarios in groups.items():
        names = [*map(_code, scenarios[:_NAMED]), *_more(scenarios, _NAMED)]
        place = f" ({', '.join(names)})" if many else ""
        what = "\n".join(differences) or "- nothing differs between the sides"
        told.append(f"{sides}{place}; what differs:\n\n{what}")
    return "\n\n".join(told)


def _sides(report: Report) -> str:
    old, new = report.baseline, report.contender
    same = old.testbed == new.testbed
    where = f"both on {_testbed(new)}" if same else f"on {_testbed(old)} and on {_testbed(new)}"
    return f"**Measured:** baseline {_build(old)}, contender {_build(new)}, {where}"


def _build(side: Side) -> str:
    build = side.build
    return f"{_code(build.label)} ({escape(f'{build.distribution} {build.release}', 100)})"


def _testbed(side: Side) -> str:
    bed = side.testbed
    gpus = f", {', '.join(bed.gpus)}" if bed.gpus else ""
    size = f"{sentence.plural(bed.cores, 'core')}, {bed.memory_bytes / 2**30:.0f} GiB"
    facts = f"{bed.cpu_model}, {size}{gpus}, kernel {bed.kernel}"
    return f"{_code(bed.id)} ({escape(facts)})"


def _footer(reports: Sequence[Report]) -> str:
    ids = dict.fromkeys(_run(side) for r in reports for side in (r.baseline, r.contender))
    runs = f"; runs {', '.join(list(ids)[:_LINES])}" if ids else ""
    told = escape(f"hybridwatch {version('hybridwatch')}{runs}")
    return f"<sub>{told}; `hybridwatch comment` wrote this</sub>"


def _run(side: Side) -> str:
    # The time, not the age: a comment is edited only when there is something new to tell.
    when = side.started_at
    return side.run_id if when is None else f"{side.run_id} of {when.date().isoformat()}"


def _worst(report: Report, bad: Sequence[Told]) -> int:
    return min((_rank(told) for told in bad if told.report is report), default=len(_RANK))


def _rank(told: Told) -> int:
    return _RANK[told.comparison.verdict]


def _bullets(lines: Iterable[str]) -> str:
    every = list(lines)
    more = (f"- {rest}" for rest in _more(every, _LINES))
    return "\n".join([*map(as_item, every[:_LINES]), *more])


def _code(text: str) -> str:
    return f"<code>{escape(text, _LONGEST_NAME)}</code>"
