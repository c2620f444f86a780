"""The review of a change as one comment on its pull request.

What changed in one line, then a few rows, then each scenario's own report, folded (``markdown``).
By its last line, a hidden marker, the comment is found again, and says what kind of news it
brought, so that its successor can say whether that is over.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from importlib.metadata import version
from typing import Final

from hybridwatch.analysis.change_review import Absent, ChangeReview, Found, GatedComparison
from hybridwatch.analysis.growth import growth_lines
from hybridwatch.analysis.power import ENOUGH
from hybridwatch.analysis.verdict import ORDER, Comparison, Report, Side, Verdict
from hybridwatch.analysis.wording.cause_text import cause_text
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.reports import sentence
from hybridwatch.reports.escape import Page, TextPart, cut_page, escape, fenced, in_html, one_line
from hybridwatch.reports.markdown import (
    code,
    first_death,
    folded,
    grouped,
    is_many,
    render_comment,
    render_differences,
    render_log,
    render_rows,
)
from hybridwatch.reports.reason_text import blind_sentence, cost_line, settling
from hybridwatch.reports.sentence import bugs_caught, with_rest

LIMIT: Final = 65_535
"""GitHub takes 65,536 characters in a comment, and one less in the summary of a check. Counted in
bytes here: never fewer than characters, however these are counted there."""
SUMMARY_LIMIT: Final = 1_000_000
"""GitHub takes 1 MiB in the summary of a step."""

_NAMED: Final = 4
_LINES: Final = 20
_COMMANDS: Final = 3
_LONGEST_NAME: Final = 100
_NOTHING: Final = "nothing was measured"


class ChangeNews(Enum):
    """What a comment reports."""

    BAD = "bad"
    GOOD = "good"
    RECOVERED = "recovered"
    """Bad news before, none any more."""
    GONE = "gone"
    """Good news before, none any more."""
    BLIND = "blind"
    """Nothing can be said: changes that matter would have passed unseen."""
    BLIND_TO_BAD = "blind-to-bad"
    """The same, after bad news that may be over or not."""
    SEEING = "seeing"
    """Blind before, no longer so, and nothing to tell."""
    ASKED = "asked"
    """The comment was requested, and there is no other news."""


_OVER: Final = {
    ChangeNews.BAD: ChangeNews.RECOVERED,
    ChangeNews.BLIND_TO_BAD: ChangeNews.RECOVERED,
    ChangeNews.RECOVERED: ChangeNews.RECOVERED,
    ChangeNews.GOOD: ChangeNews.GONE,
    ChangeNews.GONE: ChangeNews.GONE,
    ChangeNews.BLIND: ChangeNews.SEEING,
    ChangeNews.SEEING: ChangeNews.SEEING,
    ChangeNews.ASKED: ChangeNews.ASKED,
}
"""What there is to tell once news of a kind is no longer seen."""
_FAREWELLS: Final = {
    ChangeNews.RECOVERED: "**Recovered: the bad news reported here before is no longer seen.**",
    ChangeNews.GONE: "**The improvement reported here before is no longer seen.**",
    ChangeNews.SEEING: (
        "**Measured well enough this time: what could not be seen before is seen now.**"
    ),
    ChangeNews.BLIND_TO_BAD: "It is open whether the bad news reported here before is over.",
}
_MARKER: Final = re.compile(r"<!-- hybridwatch: ([\w-]+) -->\s*\Z")


def news_in(body: str) -> ChangeNews | None:
    """Give the kind of news of a comment; ``None`` for one that is not ours."""
    found = _MARKER.search(body)
    return next((news for news in ChangeNews if found and news.value == found[1]), None)


def render(
    findings: ChangeReview, before: ChangeNews | None = None, limit: int = LIMIT, links: str = ""
) -> Page:
    """Write the comment; ``before`` is what the present one says, ``limit`` is in bytes.

    ``links``, in Markdown, stand below what changed.
    """
    news = _news(findings, before)
    farewell = _FAREWELLS.get(news, "") if before is not None else ""
    first, changed, *rest = _parts(findings)
    rest = [changed, TextPart(links, "links to the dashboard", 1), *rest]
    over = TextPart(farewell, "", 0)
    # What is over heads the comment; a doubt about it follows the verdict.
    parts = [first, over, *rest] if news is ChangeNews.BLIND_TO_BAD else [over, first, *rest]
    return cut_page(parts, f"<!-- hybridwatch: {news.value} -->\n", limit)


def _news(findings: ChangeReview, before: ChangeNews | None) -> ChangeNews:
    if not findings.has_news:
        return ChangeNews.GONE if before is None else _OVER[before]
    result = findings.gate
    if not result.passed or result.warnings:
        return ChangeNews.BAD
    if any(one.is_better for one in findings.gated):
        return ChangeNews.GOOD
    was_bad = before in {ChangeNews.BAD, ChangeNews.BLIND_TO_BAD}
    return ChangeNews.BLIND_TO_BAD if was_bad else ChangeNews.BLIND


def render_title(findings: ChangeReview) -> str:
    """Say in one plain line what was found: what changed, by how much, and what comes of it."""
    caught = f"{bugs_caught(findings.controls)}." if findings.controls else ""
    verdict = "" if findings.controls and findings.only_controls else _verdict(findings)
    return one_line(f"{verdict} Controls: {caught}" if verdict and caught else verdict or caught)


def _parts(findings: ChangeReview) -> Iterator[TextPart]:
    many = is_many(findings)
    yield TextPart(f"**{escape(render_title(findings), 1000)}**", "the verdict", 0)
    yield TextPart(render_rows(findings), "what changed", 1)
    yield TextPart(_searched(findings, many=many), "what a search found", 1)
    yield TextPart(_grown(findings, many=many), "where the time went", 2)
    if findings.blindness.spots and (findings.absent or findings.causes):
        # Else the first line is about it.
        unseen = escape(f"{_blind_sentence(findings)}.", 1000)
        yield TextPart(unseen, "what could not be seen", 1)
    dead = first_death(findings)
    if dead is not None:
        report, death = dead
        text = render_log(death, findings.name_of(report) if many else "")
        yield TextPart(text, "the end of the engine's log", 3)
    ranked = _ranked(findings)
    for report in ranked:
        with_log = dead is None or report is not dead[0]
        yield _folded(report, findings.name_of(report), with_log=with_log)
    for control in findings.controls:
        yield _folded(control.report, control.scenario, with_log=False)
    yield TextPart(_next_steps(findings, ranked), "what to do next", 1)
    yield TextPart(_measured(findings.reports, many=many), "what was measured", 3)
    yield TextPart(_costs(findings, many=many), "what tokens cost", 3)
    yield TextPart(_footer(findings.reports), "the footer", 1)


def _searched(findings: ChangeReview, *, many: bool) -> str:
    """Say what the search of an alert found, once for all runs that show the alert."""
    places: dict[str, list[str]] = {}
    for report in findings.reports:
        for line in findings.searched.get(report.contender.run_id, ()):
            places.setdefault(line, []).append(code(findings.name_of(report)))
    return "\n\n".join(
        f"**Bisected{' in ' + ', '.join(with_rest(names, _NAMED)) if many else ''}:** "
        f"{escape(line, 1000)}"
        for line, names in places.items()
    )


def _grown(findings: ChangeReview, *, many: bool) -> str:
    """Name the functions that take more of the engine's time, of each run that was sampled."""
    sampled = [one for one in findings.reports if one.contender.run_id in findings.grown]
    parts = []
    for report in sampled[:_NAMED]:
        place = f" in {code(findings.name_of(report))}" if many else ""
        lines = growth_lines(findings.grown[report.contender.run_id], code)
        parts.append(
            "\n".join([f"**Where the time went{place}:**", "", *(f"- {x}" for x in lines)])
        )
    return "\n\n".join(parts)


def _changes(findings: ChangeReview) -> Iterator[str]:
    """One sentence for each kind of cause, the scenarios counted and the worst one named."""
    number = len(findings.absent)
    if number:
        name = f": {findings.absent[0].place}" if number == 1 else ""
        yield f"{plural(number, 'scenario')} not judged{name}"
    groups = grouped(findings)
    for group in groups[:_NAMED]:
        worst = group[0]
        yield cause_text(worst.cause, worst.report).sentence(_place(group, findings))
    if len(groups) > _NAMED:
        yield f"{len(groups) - _NAMED} more below"


def _place(group: Sequence[Found], findings: ChangeReview) -> str:
    """In which scenarios, or in how many and where it is worst."""
    if not is_many(findings):
        return ""
    worst, number, of = group[0], len(group), len(findings.reports)
    if number == 1:
        return f" in {worst.place}"
    place = f" in all {of} scenarios" if number == of else f" in {number} of {of} scenarios"
    if len({cause_text(found.cause, found.report) for found in group}) == 1:
        return place
    sized = worst.cause.lead.effect is not None
    return f"{place}, {'most' if sized else 'for one'} in {worst.place}"


def _verdict(findings: ChangeReview) -> str:
    gated, result, blindness = findings.gated, findings.gate, findings.blindness
    changes = "".join(f"{change}. " for change in _changes(findings))
    if not result.passed:
        if changes:
            return f"{changes}The gate stops this."
        return f"Not comparable, so the gate stops this: {_counts(findings) or _NOTHING}."
    if result.warnings:
        return f"{changes}The gate only warns."
    if blindness.spots:
        if changes:
            return f"{changes}Nothing regressed."
        return f"{_blind_sentence(findings)}. No regression shown."
    if changes:
        open_ones = _unsettled(findings)
        rest = f"; {len(open_ones)} of {_gated(findings)} not settled" if open_ones else ""
        return f"{changes}Nothing regressed{rest}."
    if all(one.comparison.verdict is Verdict.EQUIVALENT for one in gated):
        return f"Equivalent, all within the margins: {_counts(findings)}."
    return f"No regression shown, but not all settled: {_counts(findings)}."


def _blind_sentence(findings: ChangeReview) -> str:
    return blind_sentence(findings.blindness, findings.name_of if is_many(findings) else None)


def _counts(findings: ChangeReview) -> str:
    found = [one.comparison.verdict for one in findings.gated]
    if not found:
        return ""
    place = plural(len(findings.reports), "scenario")
    return f"{sentence.tally(found)} of {_gated(findings)} in {place}"


def _gated(findings: ChangeReview) -> str:
    return plural(len(findings.gated), "gated comparison")


def _folded(report: Report, place: str, *, with_log: bool) -> TextPart:
    name = in_html(place, _LONGEST_NAME)
    counted = sentence.tally(one.verdict for one in report.comparisons) or "no measurement"
    text = folded(
        f"Report on <code>{name}</code>: {counted}",
        render_comment(report, with_log=with_log).rstrip(),
    )
    return TextPart(text, f"the report on {code(place)}", 4)


def _next_steps(findings: ChangeReview, ranked: Sequence[Report]) -> str:
    bad = {id(one.report) for one in findings.gated if one.is_bad}
    bad |= set(map(id, findings.incomparable))
    blind = _trials_to_see(findings)
    trials: Mapping[int, int] = {}
    unsettled = {id(one.report) for one in _unsettled(findings)}
    if first_death(findings) is not None:
        again = bad
        hint = "the engine's log is above; once that is mended, measure this again, interleaved:"
    elif _only_broken(findings):
        again = bad
        hint = "this change did not break it; mend it, or name in the policy why it is `known`:"
    elif bad or findings.absent:
        again = bad
        hint = "measure this again, interleaved, on one machine; what stays is real:"
    elif findings.only_controls:
        return ""
    elif blind:
        again, trials = set(blind), blind
        hint = f"what would settle it: {settling(findings.blindness)}. Measure again, interleaved:"
    elif unsettled:
        again = unsettled
        place = sentence.place_to_repeat(one for one in findings.reports if id(one) in unsettled)
        hint = (
            f"nothing stops this; {len(_unsettled(findings))} of {_gated(findings)} not settled. "
            f"To measure again{place}, interleaved:"
        )
    else:
        again = set(map(id, findings.reports))
        hint = "nothing has to be done. To see it again, interleaved:"
    commands = [_first_run(one, findings.reports) for one in findings.absent if one.scenario]
    commands += [
        sentence.repeat_command(report, trials.get(id(report), 0))
        for report in ranked
        if id(report) in again
    ]
    return "\n\n".join([f"**Next:** {hint}", *with_rest(list(map(fenced, commands)), _COMMANDS)])


def _only_broken(findings: ChangeReview) -> bool:
    """Whether all that is bad was so before."""
    found = {one.comparison.verdict for one in findings.gated if one.is_bad}
    return found == {Verdict.BROKEN} and not findings.absent and not findings.incomparable


def _trials_to_see(findings: ChangeReview) -> dict[int, int]:
    """Trials a side that ``settling`` speaks of, by the ids of the reports that need them."""
    blind: dict[int, list[Comparison]] = {}
    for spot in findings.blindness.spots:
        blind.setdefault(id(spot.report), []).append(spot.comparison)
    return {key: sentence.recommend_trials(found) or ENOUGH for key, found in blind.items()}


def _unsettled(findings: ChangeReview) -> list[GatedComparison]:
    return [one for one in findings.gated if not one.comparison.verdict.is_good_news]


def _first_run(absent: Absent, reports: Sequence[Report]) -> str:
    words = ["hybridwatch", "run", absent.scenario]
    for side in (reports[0].baseline, reports[0].contender) if reports else ():
        words += ["--build", side.build.label]
    return shlex.join(words)


def _measured(reports: Sequence[Report], *, many: bool) -> str:
    groups: dict[tuple[str, ...], list[str]] = {}
    for report in reports:
        lines = (_sides(report), *with_rest(render_differences(report), _LINES, "- and "))
        groups.setdefault(lines, []).append(report.scenario.id)
    paragraphs = []
    for (sides, *differences), scenarios in groups.items():
        place = f" ({', '.join(with_rest(list(map(code, scenarios)), _NAMED))})" if many else ""
        what = "\n".join(differences) or "- nothing differs between the sides"
        paragraphs.append(f"{sides}{place}; what differs:\n\n{what}")
    return "\n\n".join(paragraphs)


def _costs(findings: ChangeReview, *, many: bool) -> str:
    price = findings.policy.price_per_hour
    lines = [(cost_line(one, price), code(findings.name_of(one))) for one in findings.reports]
    return "\n".join(f"- {name}: {line}" if many else line for line, name in lines if line)


def _sides(report: Report) -> str:
    old, new = report.baseline, report.contender
    same = old.testbed == new.testbed
    where = f"both on {_testbed(new)}" if same else f"on {_testbed(old)} and on {_testbed(new)}"
    return f"**Measured:** baseline {_build(old)}, contender {_build(new)}, {where}"


def _build(side: Side) -> str:
    build = side.build
    return f"{code(build.label)} ({escape(f'{build.distribution} {build.release}', 100)})"


def _testbed(side: Side) -> str:
    bed = side.testbed
    gpus = f", {', '.join(bed.gpus)}" if bed.gpus else ""
    size = f"{plural(bed.cores, 'core')}, {bed.memory_bytes / 2**30:.0f} GiB"
    facts = f"{bed.cpu_model}, {size}{gpus}, kernel {bed.kernel}"
    return f"{code(bed.id)} ({escape(facts)})"


def _footer(reports: Sequence[Report]) -> str:
    # The time, not the age: a comment is edited only when there is something new.
    ids = dict.fromkeys(
        side.run_id + (f" of {side.started_at.date().isoformat()}" if side.started_at else "")
        for report in reports
        for side in (report.baseline, report.contender)
    )
    runs = f"; runs {', '.join(list(ids)[:_LINES])}" if ids else ""
    words = escape(f"hybridwatch {version('hybridwatch')}{runs}")
    return f"<sub>{words}; `hybridwatch comment` wrote this</sub>"


def _ranked(findings: ChangeReview) -> list[Report]:
    """The reports, that with the worst verdict first."""
    ranks = {verdict: place for place, verdict in enumerate(ORDER)}
    bad = [one for one in findings.gated if one.is_bad]

    def worst(report: Report) -> int:
        mine = (ranks[one.comparison.verdict] for one in bad if one.report is report)
        return min(mine, default=len(ranks))

    return sorted(findings.reports, key=worst)
