"""Alerts: what is bad, since when, and who does what about it; one of them in ``alert``."""

from collections.abc import Iterator, Sequence
from typing import Final

from hybridwatch.analysis.alerts import Alert, AlertGroup, Status
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.orchestration.bisect.alert_answers import answer_line, find_answer
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import (
    Block,
    Cell,
    ChoiceField,
    Column,
    Document,
    Filters,
    Inline,
    Line,
    Link,
    Paragraph,
    Row,
    Short,
    Table,
)
from hybridwatch.pages.query import PagePart, ViewQuery, find_page, name_options
from hybridwatch.pages.screens.alert import alert_page
from hybridwatch.pages.screens.histories import machine_notice
from hybridwatch.pages.screens.runs import are_chosen
from hybridwatch.pages.screens.screen import (
    UNASSIGNED,
    ScreenSource,
    alerts_here,
    broken_in,
    empty_store,
    engine_message,
    entry_line,
    gaps_here,
    gaps_notice,
    run_line,
    shortened,
    since,
    status_line,
)
from hybridwatch.reports.alert_text import (
    alert_text,
    common,
    compute_rank,
    describe_change,
    describe_place,
    group_text,
)

_STANDING: Final = "standing"
SETTLED: Final = frozenset({Status.RELEASE, Status.CLOSED, Status.RESOLVED, Status.NOT_REPEATED})
"""An alert that no one has to look at any more."""
_ALL: Final = "all"
_NONE: Final = "none picked"


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """List the chosen alerts, or show one with its history."""
    alerts = alerts_here(source)
    by_key = {one.subject.key: (group, one) for group in alerts for one in group.members}
    picked = _picked(alerts, query)
    filters = _filters(alerts, query)
    chosen = [alert for alert in alerts if _is_chosen(alert, filters)]
    part = find_page(chosen, query)
    lead = _lead(alerts, source)
    if source.index.runs().empty:
        return Document("Alerts", empty_store(source))
    if picked.value:
        here = query.resolved().without("alert")
        group, alert = by_key[picked.value]
        above = (_way(group, chosen, here), *_members(group, alert, here, source))
        answer = find_answer(source.results, group.members)
        searched = (("Bisected", answer_line(answer)),) if answer else ()
        return alert_page(alert, picked, above, source, searched)
    count = plural(len(chosen), "alert")
    listed = tuple(_list(part, count, query.resolved(), source))
    choices = Filters((*filters, picked))
    loud = (
        *gaps_notice(gaps_here(source)),
        *machine_notice(source, source.now),
        *broken_in(source),
    )
    return Document("Alerts", (*loud, choices, *listed), lead=lead)


def listed(source: ScreenSource, here: Address) -> tuple[AlertGroup, ...]:
    """Give the alerts that the list at an address shows; none where it shows one of them."""
    query = ViewQuery(here)
    alerts = alerts_here(source)
    filters = _filters(alerts, query)
    part = find_page([alert for alert in alerts if _is_chosen(alert, filters)], query)
    return () if any(here.values("alert")) else tuple(part.shown)


def render_alert_name(group: AlertGroup) -> str:
    """Name an alert where there is one line for it."""
    return _name(describe_place(group), group.lead)


def _name(place: str, alert: Alert) -> str:
    what = alert_text(alert).what.lower()
    return f"{place}: {what} \N{MIDDLE DOT} {alert.subject.contender}"


def _picked(alerts: Sequence[AlertGroup], query: ViewQuery) -> ChoiceField:
    """Let the reader pick one; a member has an address of its own."""
    members = (one for group in alerts for one in group.members)
    named = {one.subject.key: _name(one.subject.scenario, one) for one in members}
    every = Link(plural(len(alerts), "alert"), address("alerts", status=_ALL))
    instead = ("See ", every, " of this store.")
    return query.subject("Alert", "alert", {"": _NONE, **named}, (instead,), "")


def _filters(alerts: Sequence[AlertGroup], query: ViewQuery) -> tuple[ChoiceField, ...]:
    counts = {status.value: sum(a.status is status for a in alerts) for status in Status}
    standing = sum(alert.status not in SETTLED for alert in alerts)
    statuses = {
        _STANDING: f"open, acknowledged or muted ({standing})",
        **{status: f"{status} ({count})" for status, count in counts.items()},
        Status.RELEASE.value: f"between two releases ({counts[Status.RELEASE.value]})",
        _ALL: f"all ({len(alerts)})",
    }
    names = sorted({alert.decisions.assignee for alert in alerts} - {""})
    scenarios = {one.subject.scenario for alert in alerts for one in alert.members}
    return (
        query.one("Show", "status", statuses, _STANDING),
        query.many("Scenario", "scenario", name_options(scenarios)),
        query.many("Assigned to", "assigned", {"": UNASSIGNED, **name_options(names)}),
    )


def _is_chosen(alert: AlertGroup, filters: Sequence[ChoiceField]) -> bool:
    status, scenario, assigned = filters
    fits = {_STANDING: alert.status not in SETTLED, _ALL: True}
    scenarios = [one.subject.scenario for one in alert.members]
    return fits.get(status.value, alert.status.value == status.value) and are_chosen(
        (scenario, assigned), scenarios, alert.decisions.assignee
    )


def render_address(key: str, here: Address) -> Address:
    """Lead to the page of one alert, which remembers the list that it was chosen from."""
    return Address(here.screen, (("alert", key), *here.without("alert", "page").parameters))


def _lead(alerts: Sequence[AlertGroup], source: ScreenSource) -> Line:
    standing = [alert for alert in alerts if alert.status is Status.OPEN]
    if not standing:
        return f"Nothing is open in {plural(source.index.counts['runs'], 'run')}."
    blocking = sum(alert.rank is Action.BLOCK for alert in standing)
    newest = max(alert.opened_by.started_at for alert in standing)
    return (f"{len(standing)} open, {blocking} of them would block · newest ", source.ago(newest))


def _list(
    part: PagePart[AlertGroup], count: str, here: Address, source: ScreenSource
) -> Iterator[Block]:
    if not part.shown:
        yield Paragraph("No alert is of this status, scenario and person.")
        return
    columns: list[Column | str] = [
        "verdict",
        Column("scenario, what happened", wide=True),
        Column("change", number=True, title="Of the metric that is named"),
        "build",
        "since, run",
        "status",
    ]
    if any(alert.decisions.all for alert in part.shown):
        columns.append(Column("who did what", wide=True))
    rows = (_row(alert, here, source)[: len(columns)] for alert in part.shown)
    yield Table("Alerts", tuple(columns), tuple(rows))
    hint = "One alert stands for one cause; its page has the metrics that show it, what changed "
    yield Paragraph(f"{hint}and its story. The dashboard takes answers.", quiet=True)
    yield from part.ways(count, here, ("worse", "further"))


def _row(group: AlertGroup, here: Address, source: ScreenSource) -> Row:
    alert, last = group.lead, group.decisions.all[-1:]
    lead, way = alert.cause.lead, Link(describe_place(group), render_address(group.key, here))
    subjects = [one.subject for one in group.current]
    against = common((subject.baseline for subject in subjects), "build")
    testbeds = common((subject.testbed for subject in subjects), "testbed")
    return (
        alert.cause.lead.verdict,
        Cell(way, _happened(group, source)),
        Cell(describe_change(lead), _shown_by(alert, source), raw=lead.effect),
        Cell(
            alert.subject.contender,
            (Short(f"against\N{NO-BREAK SPACE}{against},"), " ", Short(testbeds)),
        ),
        since(group.opened_by, source),
        Cell(status_line(group), compute_rank(group)),
        Cell(shortened(entry_line(last[0])), source.ago(last[0].at)) if last else "",
    )


def _happened(group: AlertGroup, source: ScreenSource) -> str:
    """Say what happened; of an engine that failed as its run's headline does, with the reason."""
    text = group_text(group).sentence()
    if group.lead.subject.area is Area.ENGINE:
        return engine_message(group.lead.bad.run_id, source) or text
    return shortened(text)


def _members(
    group: AlertGroup, shown: Alert, here: Address, source: ScreenSource
) -> Iterator[Block]:
    """List where else one cause shows; an answer goes to all of these."""
    if len(group.members) == 1:
        return
    columns = ("scenario, builds", "testbed", Column("change", number=True), "since, run", "status")
    rows = tuple(
        (
            Cell(_way_to(one, shown, here), f"{one.subject.baseline} → {one.subject.contender}"),
            one.subject.testbed,
            Cell(describe_change(one.cause.lead), raw=one.cause.lead.effect),
            since(one.opened_by, source),
            Cell(status_line(one), compute_rank(one)),
        )
        for one in group.members
    )
    text = f"{group_text(group).sentence(f' in {describe_place(group)}')}, one alert since "
    yield Paragraph((text, source.ago(group.opened_by.started_at), ". An answer goes to all."))
    yield Table("Where it shows", columns, rows)


def _way_to(one: Alert, shown: Alert, here: Address) -> Inline:
    name = one.subject.scenario
    return f"{name} (below)" if one is shown else Link(name, render_address(one.subject.key, here))


def _shown_by(alert: Alert, source: ScreenSource) -> Line:
    """Name the run that the change is of, where it is not the one since which it is bad."""
    shown = alert.shown_by
    return "" if shown == alert.opened_by else run_line(shown, source)


def _way(group: AlertGroup, chosen: Sequence[AlertGroup], here: Address) -> Paragraph:
    """Lead back to the list, and on through it."""
    line: list[Inline] = [Link("Alerts", here)]
    keys = [each.key for each in chosen]
    if group.key in keys:
        place = keys.index(group.key)
        line.append(f" · {place + 1} of {len(chosen)}")
        for text, to in (("previous", place - 1), ("next", place + 1)):
            if 0 <= to < len(chosen):
                line += [" · ", Link(text, render_address(keys[to], here))]
    return Paragraph(tuple(line), quiet=True)
