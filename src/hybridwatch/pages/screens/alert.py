"""One alert: what happened and why, what shows it, what changed, how to measure it again."""

from collections.abc import Iterator, Sequence
from typing import Final

from hybridwatch.analysis.alert_decisions import DecisionEntry, TriageAction
from hybridwatch.analysis.alert_timeline import RunVerdict, TransitionKind
from hybridwatch.analysis.alerts import Alert
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.subject import Subject
from hybridwatch.analysis.verdict import Report, Verdict, worst_first
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.cause_text import find_death, name_of_part
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.database.moment import Series
from hybridwatch.history.entry import Entry, load_trials
from hybridwatch.history.lines import Line as HistoryLine
from hybridwatch.history.lines import build_lines, list_line_names
from hybridwatch.history.overview_rows import render_name
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    ChoiceField,
    Code,
    Command,
    Document,
    Facts,
    Filters,
    Folded,
    Inline,
    Line,
    Link,
    Paragraph,
    Section,
    Table,
    When,
)
from hybridwatch.pages.screens.histories import (
    build_chart,
    changes_on,
    machine_notices,
    with_machine,
)
from hybridwatch.pages.screens.profile import profile_section
from hybridwatch.pages.screens.run import changed_answers, comparisons_table, trials_chart
from hybridwatch.pages.screens.screen import (
    UNASSIGNED,
    ScreenSource,
    broken_notice,
    entry_line,
    run_line,
    status_line,
)
from hybridwatch.pages.screens.suspects import (
    Suspects,
    list_suspects,
    search_commands,
    suspects_section,
)
from hybridwatch.records.identity import is_lasting
from hybridwatch.records.store import Broken
from hybridwatch.reports.alert_text import (
    alert_text,
    compute_rank,
    describe_change,
    is_control,
    own_report,
)
from hybridwatch.reports.figures.marks import mark_moment, mark_place
from hybridwatch.reports.sentence import repeat_command

_STORY_OPEN: Final = 8
_LOG_LINES: Final = 40
_UNMEASURED: Final = frozenset({Verdict.FAILED, Verdict.MISSING})
_CHANGED: Final = {
    TransitionKind.OPENED: "opened",
    TransitionKind.RESOLVED: "resolved",
    TransitionKind.NOT_REPEATED: "closed as not repeated",
    TransitionKind.REOPENED: "came back",
}
_NEWEST: Final = 50
"""Medians of each build, as on the scenario's own page."""
_FEWEST: Final = 2


def alert_page(
    alert: Alert,
    picked: ChoiceField,
    above: tuple[Block, ...],
    source: ScreenSource,
    searched: tuple[tuple[str, Line], ...],
) -> Document:
    """Show everything about one alert, below the ways to others; ``searched`` are facts first."""
    subject, entry = alert.subject, source.entry(alert.bad.run_id)
    report = own_report(alert, entry)
    text = alert_text(alert, report)
    found = None if is_control(alert) else list_suspects(alert, source)
    machine = machine_notices(alert, source)
    blocks = (
        *above,
        Paragraph((alert.cause.lead.verdict, "  ", *_sentence(alert, text.detail, source))),
        Facts((*searched, *_duty(alert, report, found, is_machine=bool(machine)))),
        *(search_commands(alert, found) if found else ()),
        *_again(report),
        *machine,
        *_death(alert, report),
        *profile_section(subject.testbed, (alert.bad.run_id, alert.opened_by.run_id), source),
        *suspects_section(alert, found, source),
        *history_section(alert, source),
        *_evidence(alert, entry, report),
        Section("How it stands", (Facts(tuple(_facts(alert, source))),)),
        *_timeline(alert, source),
        Filters((picked,)),
    )
    lead = f"{subject.contender} against {subject.baseline} on {subject.testbed}"
    return Document(f"{subject.scenario}: {text.what.lower()}", blocks, lead=lead)


def _sentence(alert: Alert, detail: str, source: ScreenSource) -> tuple[Inline, ...]:
    opened = alert.opened_by
    when = source.ago(opened.started_at)
    last = ("since ", when, ", ", *run_line(opened, source), ".")
    if is_control(alert):
        text = "The contender lacks a fix on purpose, and was like the healthy engine in all:"
        return (f"{text} this scenario is green whatever happens, ", *last)
    shown = alert.shown_by
    if not detail or shown == opened:
        return (f"{detail}, " if detail else "", *last)
    return (f"{detail} in ", *run_line(shown, source), "; bad ", *last)


def _duty(
    alert: Alert, report: Report | None, found: Suspects | None, *, is_machine: bool
) -> Iterator[tuple[str, Line]]:
    """Answer the first questions of a person on duty."""
    if found and (commits := found.culprits.commits):
        yield "Commits", Link(commits.text, commits.url)
    lead, decided = alert.cause.lead, alert.decisions
    for one in report.comparisons if report else ():
        if (one.metric.id, one.statistic) == (lead.metric, lead.statistic):
            p = numbers.p_value(one.p_adjusted)
            yield "How sure", f"{numbers.interval(one) or 'counted'}, p {p}"
    yield "The machine", "changed that night, too" if is_machine else "unchanged"
    yield "Issue", Link(decided.issue, decided.issue) if decided.issue else "none"


def _death(alert: Alert, report: Report | None) -> Iterator[Block]:
    """Say what ended the engine, with the end of its log."""
    if alert.subject.area is not Area.ENGINE or report is None:
        return
    death = find_death(report, alert.cause)
    if death is None:
        return
    trial = death.trial
    facts = Facts((("Reason", death.reason), ("Seen by", trial.reason), ("In", trial.place)))
    tail = "\n".join(trial.log_tail.splitlines()[-_LOG_LINES:])
    log = (Code(tail, "The end of the engine's log"),) if trial.log_tail.strip() else ()
    yield Section("How it ended", (facts, *log))


def _evidence(alert: Alert, entry: Entry | Broken | None, report: Report | None) -> Iterator[Block]:
    """Lay out the metrics of the newest bad run, the answers that flipped and the raw trials."""
    if isinstance(entry, Broken):
        yield broken_notice([entry])
    if report is None or not isinstance(entry, Entry):
        return
    run, lead = alert.bad.run_id, alert.cause.lead
    full = Link("everything that it says", address("run", run=run))
    counted = plural(len(report.comparisons), "comparison")
    note = Paragraph((f"{counted} of run {run}; ", full, "."), quiet=True)
    table = comparisons_table(worst_first(report.comparisons))
    if lead.verdict in _UNMEASURED and not is_control(alert):
        # Rows without a number show nothing more than their names.
        yield Section("Evidence", (Folded(f"{counted} without a value", (table,)), note))
        return
    drawn = [
        trials_chart(one)
        for one in load_trials(entry)
        if (one.subject.metric.id, one.subject.statistic) == (lead.metric, lead.statistic)
    ]
    yield Section("Evidence", (table, note, *changed_answers(report), *drawn))


def _again(report: Report | None) -> Iterator[Block]:
    """Give the command that measures it again."""
    if report is None:
        return
    sides = (report.baseline.build, report.contender.build)
    passing = {build.label: build for build in sides if not is_lasting(build)}
    notes = (
        f"{label} is another build each day; here it was {build.distribution} {build.release}, "
        f"wheel {build.wheel_digest[:12]}."
        for label, build in passing.items()
    )
    yield Command(repeat_command(report), "Measure it again")
    yield from (Paragraph(note, quiet=True) for note in notes)


def _facts(alert: Alert, source: ScreenSource) -> Iterator[tuple[str, Line]]:
    newest, assignee = alert.newest, alert.decisions.assignee
    when = source.ago(newest.started_at)
    yield "Status", status_line(alert)
    yield "By the gate's policy it", compute_rank(alert)
    yield "Assigned to", assignee or UNASSIGNED
    yield "Newest run", (newest.verdict, " ", when, ", ", *run_line(newest, source))


def _timeline(alert: Alert, source: ScreenSource) -> Iterator[Block]:
    """Show what the verdicts and the people did, the newest first."""
    happened: list[tuple[When, Line]] = []
    for transition in alert.transitions:
        by, change = transition.by, f"{_CHANGED[transition.change]} by "
        line = (change, *run_line(by, source), f": {_verdict_text(by)}")
        happened.append((source.ago(by.started_at), line))
    happened += [
        (source.ago(entry.at), _did(entry, is_earlier=entry in alert.decisions.earlier))
        for entry in alert.decisions.all
    ]
    happened.sort(key=lambda one: one[0].moment, reverse=True)
    columns = ("when", "what happened")
    rows = tuple((when, Cell(line)) for when, line in happened)
    table = Table("What happened, the newest first", columns, rows)
    title = f"What happened ({len(rows)})"
    yield Folded(title, (table,)) if len(rows) > _STORY_OPEN else Section(title, (table,))


def _did(entry: DecisionEntry, *, is_earlier: bool) -> Line:
    line = entry_line(entry)
    if is_earlier:
        # Its words stand as they were; only what they were about is added.
        (part,) = entry.seen.parts
        return f"{line} (about {render_name(part.metric, part.statistic)[1]} alone)"
    decision = entry.decision
    if decision.action is TriageAction.DUPLICATE and "/" not in decision.text:
        to = address("alerts", alert=decision.text)
        return (line.removesuffix(decision.text), Link(decision.text, to))
    return line


def _verdict_text(run_verdict: RunVerdict) -> str:
    if run_verdict.cause is None:
        return run_verdict.verdict.value
    lead = run_verdict.cause.lead
    change = describe_change(lead)
    named = "" if change == numbers.ABSENT else f", {name_of_part(lead)} {change}"
    return run_verdict.verdict.value + named


def history_section(alert: Alert, source: ScreenSource) -> Iterator[Block]:
    """Draw the leading metric of both builds over time; over releases where a build has one run."""
    subject, opened = alert.subject, alert.opened_by
    lead = alert.cause.lead
    metric, _ = render_name(lead.metric, lead.statistic)
    if metric is None:
        return
    charted = Subject(metric, lead.statistic)
    series = source.index.series(subject.scenario, subject.testbed, metric.id, lead.statistic)
    over_releases, names = _names(series, (subject.contender, subject.baseline))
    if not names:
        return
    machines = () if over_releases else changes_on(subject.testbed, source.index)
    lines = build_lines(
        series,
        metric,
        newest=_NEWEST,
        over_releases=over_releases,
        builds=names,
        settings=source.index.settings(subject.scenario),
        machines=machines,
    )
    chart = with_machine(build_chart(charted, lines, subject.scenario), machines)
    _mark(chart, lines, opened, over_releases=over_releases)
    view = address(
        "scenario",
        scenario=subject.scenario,
        testbed=subject.testbed,
        metric=charted.label,
        build=dict.fromkeys((subject.baseline, subject.contender)),
    )
    hint = "The upright line is the run that opened the alert. "
    way = Paragraph((hint, Link("The whole history", view), "."), quiet=True)
    is_lost = lead.verdict in _UNMEASURED
    title = f"{charted.label} until then" if is_lost else f"When {charted.label} changed"
    yield Section(title, (chart, way))


def _names(series: Series, builds: Sequence[str]) -> tuple[bool, tuple[str, ...]]:
    """Choose the lines: builds over time, or over releases if the contender has a single run."""
    levels = series.levels[series.levels["line"].isin(builds)]
    over_releases = int((levels["line"] == builds[0]).sum()) < _FEWEST
    found = dict.fromkeys(list_line_names(levels, over_releases=over_releases).tolist())
    return over_releases, tuple(found)


def _mark(
    chart: Chart, lines: Sequence[HistoryLine], opened: RunVerdict, *, over_releases: bool
) -> None:
    """Draw an upright line where the alert opened; over releases only if that left a value."""
    if not over_releases:
        mark_moment(chart.figure, opened.started_at)
    for line in lines if over_releases else ():
        for place in line.levels.loc[line.levels["run"] == opened.run_id, "place"][-1:]:
            mark_place(chart.figure, float(place))
